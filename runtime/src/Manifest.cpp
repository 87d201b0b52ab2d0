// See Manifest.h. Each check names section, record, value found and bound.
#include "Manifest.h"

#include "Names.h"

namespace batten::rt {
namespace {

using ull = unsigned long long;

constexpr u32 kMaxPathBytes = 240, kMaxNameBytes = 200;
/// Rows of a bucket are counted by int32 arrays of the batch.
constexpr u32 kMaxRows = INT32_MAX;

bool allZero(const u8 *data, u64 bytes) noexcept {
  for (u64 i = 0; i < bytes; ++i)
    if (data[i])
      return false;
  return true;
}

// folder/name or folder/folder/name; names are not empty, not "." or "..", and hold no control character or backslash.
bool isBundlePath(Text path) noexcept {
  u32 parts = 0;
  if (path.bytes > kMaxPathBytes)
    return false;
  for (u32 begin = 0; begin <= path.bytes; ++parts) {
    u32 end = begin;
    for (; end < path.bytes && path.data[end] != '/'; ++end)
      if (static_cast<u8>(path.data[end]) < 0x20 || path.data[end] == 0x7F || path.data[end] == '\\')
        return false;
    Text name{path.data + begin, end - begin};
    if (name.bytes == 0 || name.bytes > kMaxNameBytes || name.equals(textOf(".")) || name.equals(textOf("..")))
      return false;
    begin = end + 1;
  }
  return parts == 2 || parts == 3;
}

// -1, 0, 1: a is before, equal to, behind b in the order of a stage.
int compareBuckets(const batten_bucket_t &a, const batten_bucket_t &b) noexcept {
  if (a.tokens != b.tokens)
    return a.tokens < b.tokens ? -1 : 1;
  if (a.seqs != b.seqs)
    return a.seqs < b.seqs ? -1 : 1;
  return a.markers < b.markers ? -1 : a.markers > b.markers;
}

} // namespace

Status Manifest::open(const u8 *data, u64 bytes, bool accelerated, const Report &report) noexcept {
  BATTEN_TRY(view.open(data, bytes, BATTEN_FILE_MANIFEST, report));
  BATTEN_TRY(view.checkDigest(bytes, accelerated, report));
  files = view.records<batten_file_t>(BATTEN_SECTION_FILES);
  targets = view.records<batten_target_t>(BATTEN_SECTION_TARGETS);
  stages = view.records<batten_stage_t>(BATTEN_SECTION_STAGES);
  buckets = view.records<batten_bucket_t>(BATTEN_SECTION_BUCKETS);
  lanes = view.records<batten_lane_t>(BATTEN_SECTION_LANES);
  outputs = view.records<batten_output_t>(BATTEN_SECTION_OUTPUTS);
  plans = view.records<batten_plan_ref_t>(BATTEN_SECTION_PLANS);
  notes = view.records<batten_note_t>(BATTEN_SECTION_NOTES);
  selfTests = view.records<batten_self_test_t>(BATTEN_SECTION_SELF_TESTS);
  wordCount = view.section(BATTEN_SECTION_WORDS).count;
  words = reinterpret_cast<const u32 *>(data + view.section(BATTEN_SECTION_WORDS).offset);
  for (u32 kind : {BATTEN_SECTION_FILES, BATTEN_SECTION_TARGETS, BATTEN_SECTION_STAGES, BATTEN_SECTION_BUCKETS,
                   BATTEN_SECTION_LANES, BATTEN_SECTION_OUTPUTS, BATTEN_SECTION_PLANS})
    if (view.section(kind).count == 0)
      return report.fail(BATTEN_CORRUPT, sectionName(kind), 0, 0, 1, "is missing or empty");
  BATTEN_TRY(verifyProducer(report));
  BATTEN_TRY(verifyFiles(report));
  BATTEN_TRY(verifyTargets(report));
  BATTEN_TRY(verifyStages(report));
  BATTEN_TRY(verifyLanes(report));
  BATTEN_TRY(verifyPlans(report));
  BATTEN_TRY(verifyNotes(report));
  return verifySelfTests(report);
}

Status Manifest::verifyProducer(const Report &report) noexcept {
  if (view.section(BATTEN_SECTION_PRODUCER).count != 1)
    return report.fail(BATTEN_CORRUPT, "PRODUCER", 0, view.section(BATTEN_SECTION_PRODUCER).count, 1,
                       "one record was expected");
  producer = view.records<batten_producer_t>(BATTEN_SECTION_PRODUCER).at(0);
  Text ignored, version;
  if (!view.text(producer.name, &ignored) || !view.text(producer.version, &version) ||
      !view.text(producer.llvm, &ignored))
    return report.fail(BATTEN_CORRUPT, "PRODUCER", 0, producer.name.offset, view.section(BATTEN_SECTION_STRINGS).count,
                       "a string is no UTF-8 or leaves the strings");
  if (producer.kernelAbi != BATTEN_KERNEL_ABI_VERSION)
    return report.fail(BATTEN_VERSION, "PRODUCER", 0, producer.kernelAbi, BATTEN_KERNEL_ABI_VERSION,
                       "kernel ABI %u, made by compiler %.*s; this runtime calls ABI %u: compile again",
                       producer.kernelAbi, BATTEN_TEXT(version), BATTEN_KERNEL_ABI_VERSION);
  if (view.checksReserved() && producer.reserved != 0)
    return report.fail(BATTEN_CORRUPT, "PRODUCER", 0, producer.reserved, 0, "reserved field is not 0");
  return BATTEN_OK;
}

Status Manifest::verifyFiles(const Report &report) noexcept {
  BATTEN_TRY(verifyNames(view, BATTEN_SECTION_FILES, files.count, [&](u32 i) { return files.at(i).path; }, report));
  for (u32 i = 0; i < files.count; ++i) {
    batten_file_t file = files.at(i);
    if (Text path = text(file.path); !isBundlePath(path))
      return report.fail(BATTEN_CORRUPT, "FILES", i, path.bytes, kMaxPathBytes,
                         "path \"%.*s\" is not folder/name or folder/folder/name", BATTEN_TEXT(path));
    if (file.kind < BATTEN_FILE_PACK || file.kind > BATTEN_FILE_IMAGE)
      return report.fail(BATTEN_CORRUPT, "FILES", i, file.kind, BATTEN_FILE_IMAGE, "unknown kind %u", file.kind);
    if (view.checksReserved() && file.reserved != 0)
      return report.fail(BATTEN_CORRUPT, "FILES", i, file.reserved, 0, "reserved field is not 0");
    const bool pack = file.kind == BATTEN_FILE_PACK;
    if (file.bytes == 0 || file.bytes > u64{INT64_MAX})
      return report.fail(BATTEN_CORRUPT, "FILES", i, file.bytes, INT64_MAX, "size %llu is out of range",
                         ull{file.bytes});
    if (pack
            ? file.headBytes < sizeof(batten_file_header_t) || file.headBytes > file.bytes || file.headBytes % 4096 != 0
            : file.headBytes != 0 || !allZero(file.headDigest, sizeof file.headDigest))
      return report.fail(BATTEN_CORRUPT, "FILES", i, file.headBytes, file.bytes,
                         "head of %llu bytes is out of range, or is given for a file that is no pack",
                         ull{file.headBytes});
  }
  return BATTEN_OK;
}

Status Manifest::verifyTargets(const Report &report) noexcept {
  BATTEN_TRY(
      verifyNames(view, BATTEN_SECTION_TARGETS, targets.count, [&](u32 i) { return targets.at(i).name; }, report));
  for (u32 i = 0; i < targets.count; ++i) {
    batten_target_t target = targets.at(i);
    if (target.arch != BATTEN_ARCH_X86_64 && target.arch != BATTEN_ARCH_AARCH64)
      return report.fail(BATTEN_CORRUPT, "TARGETS", i, target.arch, BATTEN_ARCH_AARCH64, "unknown architecture %u",
                         target.arch);
    if (elemBytes(target.weights) == 0 || elemBytes(target.math) == 0)
      return report.fail(BATTEN_CORRUPT, "TARGETS", i, elemBytes(target.weights) ? target.math : target.weights,
                         BATTEN_ELEM_I8, "unknown element type of weights or math");
    auto fileIs = [&](u32 index, u32 kind) { return index < files.count && files.at(index).kind == kind; };
    if (!fileIs(target.image, BATTEN_FILE_IMAGE))
      return report.fail(BATTEN_CORRUPT, "TARGETS", i, target.image, files.count, "image %u is no image of FILES",
                         target.image);
    for (u32 pack : {target.commonPack, target.panelsPack})
      if (!fileIs(pack, BATTEN_FILE_PACK))
        return report.fail(BATTEN_CORRUPT, "TARGETS", i, pack, files.count, "pack %u is no pack of FILES", pack);
    if (target.commonPack == target.panelsPack)
      return report.fail(BATTEN_CORRUPT, "TARGETS", i, target.panelsPack, 0, "its two packs are the same file");
    if (u64 bytes = files.at(target.image).bytes;
        target.codeOffset % 4096 != 0 || target.codeBytes == 0 || !inRange(target.codeOffset, target.codeBytes, bytes))
      return report.fail(BATTEN_CORRUPT, "TARGETS", i, target.codeOffset, bytes,
                         "code of %llu bytes at %llu is not page-aligned or passes the image's %llu bytes",
                         ull{target.codeBytes}, ull{target.codeOffset}, ull{bytes});
  }
  return BATTEN_OK;
}

Status Manifest::verifyStages(const Report &report) noexcept {
  BATTEN_TRY(verifyNames(view, BATTEN_SECTION_STAGES, stages.count, [&](u32 i) { return stages.at(i).name; }, report));
  for (u32 i = 0; i < buckets.count; ++i) {
    batten_bucket_t bucket = buckets.at(i);
    u32 largest = bucket.tokens > bucket.seqs ? bucket.tokens : bucket.seqs;
    largest = largest > bucket.markers ? largest : bucket.markers;
    if (bucket.tokens == 0 || bucket.seqs == 0 || largest > kMaxRows)
      return report.fail(BATTEN_CORRUPT, "BUCKETS", i, largest, kMaxRows,
                         "%u tokens, %u sequences, %u markers: no batch fits, or more than an index can count",
                         bucket.tokens, bucket.seqs, bucket.markers);
    if (view.checksReserved() && bucket.reserved != 0)
      return report.fail(BATTEN_CORRUPT, "BUCKETS", i, bucket.reserved, 0, "reserved field is not 0");
  }
  u64 total = 0;
  for (u32 i = 0; i < stages.count; ++i) {
    batten_stage_t stage = stages.at(i);
    if (stage.bucketCount == 0 || !inRange(stage.firstBucket, stage.bucketCount, buckets.count))
      return report.fail(BATTEN_CORRUPT, "STAGES", i, stage.firstBucket, buckets.count,
                         "%u buckets from %u on: there are %llu", stage.bucketCount, stage.firstBucket,
                         ull{buckets.count});
    // Stages don't share buckets: this bounds the loop below by the file's size.
    if ((total += stage.bucketCount) > buckets.count)
      return report.fail(BATTEN_CORRUPT, "STAGES", i, total, buckets.count, "stages have more buckets than there are");
    for (u32 b = 1; b < stage.bucketCount; ++b)
      if (compareBuckets(buckets.at(stage.firstBucket + u64{b} - 1), buckets.at(stage.firstBucket + u64{b})) >= 0)
        return report.fail(BATTEN_CORRUPT, "BUCKETS", stage.firstBucket + u64{b}, b, stage.bucketCount,
                           "is not larger than the bucket before it in its stage");
  }
  return BATTEN_OK;
}

Status Manifest::verifyLanes(const Report &report) noexcept {
  BATTEN_TRY(verifyNames(view, BATTEN_SECTION_LANES, lanes.count, [&](u32 i) { return lanes.at(i).name; }, report));
  Array<u32> laneOf; // output -> lane
  if (!laneOf.create(outputs.count) || !laneStart_.create(lanes.count + 1))
    return report.outOfMemory(outputs.count * 4);
  u64 total = 0, planCount = 0;
  constexpr u32 kKnownInputs = BATTEN_INPUT_TOKEN_TYPES | BATTEN_INPUT_MARKERS | BATTEN_INPUT_SEQ_TYPES;
  for (u32 i = 0; i < lanes.count; ++i) {
    batten_lane_t lane = lanes.at(i);
    if (lane.stage >= stages.count)
      return report.fail(BATTEN_CORRUPT, "LANES", i, lane.stage, stages.count, "stage %u of %llu", lane.stage,
                         ull{stages.count});
    if (lane.outputCount == 0 || !inRange(lane.firstOutput, lane.outputCount, outputs.count) ||
        (total += lane.outputCount) > outputs.count)
      return report.fail(BATTEN_CORRUPT, "LANES", i, lane.firstOutput, outputs.count,
                         "%u outputs from %u on: there are %llu, and lanes don't share them", lane.outputCount,
                         lane.firstOutput, ull{outputs.count});
    if (lane.inputs & ~kKnownInputs)
      return report.fail(BATTEN_CORRUPT, "LANES", i, lane.inputs, kKnownInputs, "unknown inputs 0x%x", lane.inputs);
    if (lane.idCount == 0 || lane.idCount > kMaxRows || lane.typeCount > kMaxRows || lane.seqTypeCount > kMaxRows)
      return report.fail(BATTEN_CORRUPT, "LANES", i, lane.idCount, kMaxRows, "%u ids, %u types, %u sequence types",
                         lane.idCount, lane.typeCount, lane.seqTypeCount);
    if (((lane.inputs & BATTEN_INPUT_TOKEN_TYPES) != 0) != (lane.typeCount != 0) ||
        ((lane.inputs & BATTEN_INPUT_SEQ_TYPES) != 0) != (lane.seqTypeCount != 0))
      return report.fail(BATTEN_CORRUPT, "LANES", i, lane.inputs, kKnownInputs,
                         "inputs 0x%x and the counts of types (%u) and sequence types (%u) disagree", lane.inputs,
                         lane.typeCount, lane.seqTypeCount);
    for (u32 k = 0; k < lane.outputCount; ++k)
      laneOf[lane.firstOutput + u64{k}] = i;
    laneStart_[i] = static_cast<u32>(planCount);
    planCount += stages.at(lane.stage).bucketCount;
    if (planCount > plans.count)
      return report.fail(BATTEN_CORRUPT, "PLANS", 0, plans.count, planCount,
                         "lanes have more buckets than there are plans");
  }
  laneStart_[lanes.count] = static_cast<u32>(planCount);
  for (u32 i = 0; i < outputs.count; ++i) {
    batten_output_t output = outputs.at(i);
    if (output.rowKind > BATTEN_ROWS_ONE || output.width == 0 || elemBytes(output.elem) == 0)
      return report.fail(BATTEN_CORRUPT, "OUTPUTS", i, output.rowKind, BATTEN_ROWS_ONE,
                         "row kind %u, width %u, element type %u", output.rowKind, output.width, output.elem);
    if (view.checksReserved() && output.reserved != 0)
      return report.fail(BATTEN_CORRUPT, "OUTPUTS", i, output.reserved, 0, "reserved field is not 0");
  }
  return verifyNames(
      view, BATTEN_SECTION_OUTPUTS, outputs.count, [&](u32 i) { return outputs.at(i).name; },
      [&](u32 i) { return laneOf[i]; }, report);
}

Status Manifest::verifyPlans(const Report &report) noexcept {
  const u64 perTarget = plansPerTarget();
  u64 wanted;
  if (!checkedMul(perTarget, targets.count, &wanted) || wanted != plans.count)
    return report.fail(BATTEN_CORRUPT, "PLANS", 0, plans.count, perTarget * targets.count,
                       "%llu plans; %llu targets with %llu buckets over all lanes need one each", ull{plans.count},
                       ull{targets.count}, ull{perTarget});
  if (!planFile_.create(wanted))
    return report.outOfMemory(wanted * 4);
  for (u64 i = 0; i < wanted; ++i)
    planFile_[i] = UINT32_MAX;
  for (u32 i = 0; i < plans.count; ++i) {
    batten_plan_ref_t plan = plans.at(i);
    if (plan.lane >= lanes.count || plan.target >= targets.count)
      return report.fail(BATTEN_CORRUPT, "PLANS", i, plan.lane >= lanes.count ? plan.lane : plan.target,
                         plan.lane >= lanes.count ? lanes.count : targets.count, "lane %u, target %u: out of range",
                         plan.lane, plan.target);
    batten_stage_t stage = stages.at(lanes.at(plan.lane).stage);
    if (plan.bucket < stage.firstBucket || plan.bucket - stage.firstBucket >= stage.bucketCount)
      return report.fail(BATTEN_CORRUPT, "PLANS", i, plan.bucket, stage.firstBucket + u64{stage.bucketCount},
                         "bucket %u is not of the lane's stage", plan.bucket);
    if (plan.file >= files.count || files.at(plan.file).kind != BATTEN_FILE_PLAN)
      return report.fail(BATTEN_CORRUPT, "PLANS", i, plan.file, files.count, "file %u is no plan of FILES", plan.file);
    u32 &slot = planFile_[plan.target * perTarget + planIndex(plan.lane, plan.bucket - stage.firstBucket)];
    if (slot != UINT32_MAX)
      return report.fail(BATTEN_CORRUPT, "PLANS", i, slot, 0, "a second plan of lane %u, bucket %u, target %u",
                         plan.lane, plan.bucket, plan.target);
    slot = plan.file;
  }
  return BATTEN_OK;
}

Status Manifest::verifyNotes(const Report &report) noexcept {
  for (u32 i = 0; i < notes.count; ++i) {
    Text ignored;
    if (!view.text(notes.at(i).key, &ignored) || !view.text(notes.at(i).value, &ignored))
      return report.fail(BATTEN_CORRUPT, "NOTES", i, notes.at(i).key.offset, view.section(BATTEN_SECTION_STRINGS).count,
                         "a string is no UTF-8 or leaves the strings");
  }
  return BATTEN_OK;
}

Status Manifest::verifySelfTests(const Report &report) noexcept {
  for (u32 i = 0; i < selfTests.count; ++i) {
    batten_self_test_t test = selfTests.at(i);
    if (test.lane >= lanes.count)
      return report.fail(BATTEN_CORRUPT, "SELF_TESTS", i, test.lane, lanes.count, "lane %u of %llu", test.lane,
                         ull{lanes.count});
    auto bad = [&](u32 first, u64 count, bool optional) {
      return first == UINT32_MAX ? !optional : !inRange(first, count, wordCount);
    };
    const bool noMarkers = test.markers == 0;
    if (bad(test.ids, test.tokens, false) || bad(test.types, test.tokens, true) ||
        bad(test.cuSeqlens, u64{test.seqs} + 1, false) || bad(test.markerPos, test.markers, noMarkers) ||
        bad(test.cuMarkers, u64{test.seqs} + 1, noMarkers) || bad(test.seqTypes, test.seqs, true))
      return report.fail(BATTEN_CORRUPT, "SELF_TESTS", i, test.tokens, wordCount,
                         "an input of %u tokens, %u sequences, %u markers leaves the %llu words", test.tokens,
                         test.seqs, test.markers, ull{wordCount});
  }
  return BATTEN_OK;
}

} // namespace batten::rt
