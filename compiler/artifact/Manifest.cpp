// See the header; the records are format.h's.
#include "compiler/artifact/Manifest.h"
#include "compiler/artifact/SectionFile.h"
#include "compiler/spec/Text.h"

#include <algorithm>
#include <tuple>

namespace batten {

std::string imagePath(llvm::StringRef target) { return ("images/" + target + ".img").str(); }

std::string planPath(llvm::StringRef target, llvm::StringRef lane, const Bucket &bucket) {
  return ("plans/" + target + "/" + lane + "-" + llvm::Twine(bucket.tokens) + "x" + llvm::Twine(bucket.seqs) + "x" +
          llvm::Twine(bucket.markers) + ".plan")
      .str();
}

static llvm::Error checkIndices(const Manifest &m) {
  auto fileIs = [&](uint32_t index, batten_file_kind kind) {
    return index < m.files.size() && m.files[index].kind == kind;
  };
  for (const ManifestTarget &target : m.targets)
    if (!fileIs(target.image, BATTEN_FILE_IMAGE) || !fileIs(target.commonPack, BATTEN_FILE_PACK) ||
        !fileIs(target.panelsPack, BATTEN_FILE_PACK) || target.commonPack == target.panelsPack)
      return makeError("manifest: target " + quoted(target.name) + " names files of the wrong kind");
  size_t plansWanted = 0;
  for (const ManifestLane &lane : m.lanes) {
    if (lane.stage >= m.stages.size())
      return makeError("manifest: lane " + quoted(lane.name) + " has stage " + llvm::Twine(lane.stage) + " of " +
                       llvm::Twine(m.stages.size()));
    plansWanted += m.stages[lane.stage].buckets.size();
  }
  plansWanted *= m.targets.size();
  if (m.plans.size() != plansWanted)
    return makeError("manifest: " + llvm::Twine(m.plans.size()) + " plans, " + llvm::Twine(plansWanted) + " wanted");
  std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> seen;
  for (const ManifestPlan &plan : m.plans) {
    if (plan.lane >= m.lanes.size() || plan.target >= m.targets.size() || !fileIs(plan.file, BATTEN_FILE_PLAN) ||
        plan.bucket >= m.stages[m.lanes[plan.lane].stage].buckets.size())
      return makeError("manifest: a plan of lane " + llvm::Twine(plan.lane) + ", bucket " + llvm::Twine(plan.bucket) +
                       ", target " + llvm::Twine(plan.target) + ", file " + llvm::Twine(plan.file) +
                       " is out of range");
    seen.emplace_back(plan.target, plan.lane, plan.bucket);
  }
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end())
    return makeError("manifest: two plans of one target, lane and bucket");
  auto has = [](const std::optional<std::vector<uint32_t>> &values, size_t count) {
    return !values || values->size() == count;
  };
  for (const ManifestSelfTest &test : m.selfTests)
    if (test.lane >= m.lanes.size() || test.cuSeqlens.empty() || !has(test.types, test.ids.size()) ||
        !has(test.cuMarkers, test.cuSeqlens.size()) || !has(test.seqTypes, test.cuSeqlens.size() - 1) ||
        (!test.cuMarkers && !test.markers.empty()))
      return makeError("manifest: a self-test of lane " + llvm::Twine(test.lane) + " is out of range");
  return llvm::Error::success();
}

static void addFiles(const Manifest &m, SectionFile &file) {
  std::vector<batten_file_t> records;
  for (const ManifestFile &entry : m.files) {
    batten_file_t record = {};
    record.path = file.string(entry.file.path);
    record.kind = entry.kind;
    record.bytes = entry.file.bytes;
    std::copy(entry.file.digest.begin(), entry.file.digest.end(), record.digest);
    if (entry.kind == BATTEN_FILE_PACK) {
      record.headBytes = entry.file.headBytes;
      std::copy(entry.file.headDigest.begin(), entry.file.headDigest.end(), record.headDigest);
    }
    records.push_back(record);
  }
  file.section(BATTEN_SECTION_FILES, records);
  std::vector<batten_target_t> targets;
  for (const ManifestTarget &t : m.targets)
    targets.push_back({file.string(t.name), t.arch, t.weights, t.math, t.image, t.commonPack, t.panelsPack, t.features,
                       t.codeOffset, t.codeBytes});
  file.section(BATTEN_SECTION_TARGETS, targets);
}

/// First index into BUCKETS of each stage.
static std::vector<uint32_t> addStages(const Manifest &m, SectionFile &file) {
  std::vector<batten_stage_t> stages;
  std::vector<batten_bucket_t> buckets;
  std::vector<uint32_t> first;
  for (const StageSpec &stage : m.stages) {
    first.push_back(static_cast<uint32_t>(buckets.size()));
    stages.push_back({file.string(stage.name), first.back(), static_cast<uint32_t>(stage.buckets.size())});
    for (const Bucket &bucket : stage.buckets)
      buckets.push_back({bucket.tokens, bucket.seqs, bucket.markers, 0});
  }
  file.section(BATTEN_SECTION_STAGES, stages);
  file.section(BATTEN_SECTION_BUCKETS, buckets);
  return first;
}

static void addLanes(const Manifest &m, SectionFile &file) {
  std::vector<batten_lane_t> lanes;
  std::vector<batten_output_t> outputs;
  for (const ManifestLane &lane : m.lanes) {
    lanes.push_back({file.string(lane.name), lane.stage, static_cast<uint32_t>(outputs.size()),
                     static_cast<uint32_t>(lane.outputs.size()), lane.inputs, lane.idCount, lane.typeCount,
                     lane.seqTypeCount, lane.maxSeqTokens});
    for (const ManifestOutput &output : lane.outputs)
      outputs.push_back({file.string(output.name), output.rowKind, output.width, output.elem, 0});
  }
  file.section(BATTEN_SECTION_LANES, lanes);
  file.section(BATTEN_SECTION_OUTPUTS, outputs);
}

static void addSelfTests(const Manifest &m, SectionFile &file) {
  std::vector<uint32_t> words;
  std::vector<batten_self_test_t> tests;
  auto add = [&](const std::vector<uint32_t> &values) {
    auto first = static_cast<uint32_t>(words.size());
    words.insert(words.end(), values.begin(), values.end());
    return first;
  };
  auto addIfAny = [&](const std::optional<std::vector<uint32_t>> &values) {
    return values ? add(*values) : UINT32_MAX;
  };
  for (const ManifestSelfTest &test : m.selfTests) {
    batten_self_test_t record = {};
    record.lane = test.lane;
    record.tokens = static_cast<uint32_t>(test.ids.size());
    record.seqs = static_cast<uint32_t>(test.cuSeqlens.size() - 1);
    record.markers = static_cast<uint32_t>(test.markers.size());
    record.ids = add(test.ids);
    record.types = addIfAny(test.types);
    record.cuSeqlens = add(test.cuSeqlens);
    record.markerPos = test.cuMarkers ? add(test.markers) : UINT32_MAX;
    record.cuMarkers = addIfAny(test.cuMarkers);
    record.seqTypes = addIfAny(test.seqTypes);
    std::copy(test.digest.begin(), test.digest.end(), record.digest);
    tests.push_back(record);
  }
  file.section(BATTEN_SECTION_WORDS, words);
  file.section(BATTEN_SECTION_SELF_TESTS, tests);
}

llvm::Expected<std::vector<uint8_t>> manifestBytes(const Manifest &m) {
  if (llvm::Error error = checkIndices(m))
    return std::move(error);
  SectionFile file;
  std::vector<batten_producer_t> producer = {{file.string("batten"), file.string(m.producerVersion),
                                              file.string(m.llvmVersion), BATTEN_KERNEL_ABI_VERSION, 0}};
  file.section(BATTEN_SECTION_PRODUCER, producer);
  addFiles(m, file);
  std::vector<uint32_t> firstBucket = addStages(m, file);
  addLanes(m, file);
  std::vector<ManifestPlan> plans = m.plans;
  std::sort(plans.begin(), plans.end(), [](const ManifestPlan &a, const ManifestPlan &b) {
    return std::tuple(a.target, a.lane, a.bucket) < std::tuple(b.target, b.lane, b.bucket);
  });
  std::vector<batten_plan_ref_t> refs;
  for (const ManifestPlan &plan : plans)
    refs.push_back({plan.lane, firstBucket[m.lanes[plan.lane].stage] + plan.bucket, plan.target, plan.file});
  file.section(BATTEN_SECTION_PLANS, refs);
  std::vector<batten_note_t> notes;
  for (const auto &[key, value] : m.notes)
    notes.push_back({file.string(key), file.string(value)});
  file.section(BATTEN_SECTION_NOTES, notes);
  addSelfTests(m, file);
  return file.finish(BATTEN_FILE_MANIFEST);
}

} // namespace batten
