// See the header. Uses the runtime as its callers do.
#include "compiler/SelfTest.h"
#include "compiler/spec/Text.h"

#include "batten/batten.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>
#include <memory>

namespace batten {
namespace {

using OpenBundle =
    llvm::function_ref<batten_status_t(const batten_bundle_options_t &, batten_bundle_t **, batten_error_t *)>;

struct ReleaseBundle {
  void operator()(batten_bundle_t *bundle) const { batten_bundle_release(bundle); }
};
struct DestroyExecutor {
  void operator()(batten_executor_t *executor) const { batten_executor_destroy(executor); }
};

const int32_t *asSigned(const std::vector<uint32_t> &words) { return reinterpret_cast<const int32_t *>(words.data()); }
const int32_t *asSigned(const std::optional<std::vector<uint32_t>> &words) {
  return words ? asSigned(*words) : nullptr;
}

llvm::Error runInputs(batten_executor_t *executor, const ManifestLane &lane, ManifestSelfTest &test) {
  batten_batch_t batch = BATTEN_BATCH_INIT;
  batch.tokenIds = asSigned(test.ids);
  batch.tokenTypes = asSigned(test.types);
  batch.cuSeqlens = asSigned(test.cuSeqlens);
  batch.markers = asSigned(test.markers);
  batch.cuMarkers = asSigned(test.cuMarkers);
  batch.seqTypes = asSigned(test.seqTypes);
  batch.tokenCount = static_cast<uint32_t>(test.ids.size());
  batch.seqCount = static_cast<uint32_t>(test.cuSeqlens.size() - 1);
  batch.markerCount = static_cast<uint32_t>(test.markers.size());
  std::vector<batten_output_view_t> views(lane.outputs.size(), batten_output_view_t{});
  batten_error_t error;
  if (batten_run_lane(executor, test.lane, &batch, views.data(), static_cast<uint32_t>(views.size()), nullptr, &error))
    return makeError(error.message);
  llvm::SHA256 hash;
  for (const batten_output_view_t &view : views)
    for (uint32_t row = 0; row < view.rows; ++row)
      hash.update(llvm::ArrayRef<uint8_t>(static_cast<const uint8_t *>(view.data) + row * view.strideBytes,
                                          view.width * sizeof(float)));
  test.digest = hash.final();
  return llvm::Error::success();
}

llvm::Error addTests(OpenBundle open, Manifest &manifest, std::vector<std::string> &notes) {
  std::vector<ManifestSelfTest> tests;
  std::string ranOn;
  for (const ManifestTarget &target : manifest.targets) {
    batten_bundle_options_t options = BATTEN_BUNDLE_OPTIONS_INIT;
    options.target = target.name.c_str();
    options.allowWritableByOthers = true; // it has just been written here
    batten_bundle_t *opened = nullptr;
    batten_error_t error;
    batten_status_t status = open(options, &opened, &error);
    std::unique_ptr<batten_bundle_t, ReleaseBundle> bundle(opened);
    if (status == BATTEN_UNSUPPORTED)
      continue;
    if (status != BATTEN_OK)
      return makeError("the new bundle does not open: " + llvm::Twine(error.message));
    batten_executor_t *made = nullptr;
    if (batten_executor_create(bundle.get(), nullptr, &made, &error) != BATTEN_OK)
      return makeError("the new bundle does not run: " + llvm::Twine(error.message));
    std::unique_ptr<batten_executor_t, DestroyExecutor> executor(made);
    for (uint32_t lane = 0; lane < manifest.lanes.size(); ++lane) {
      ManifestSelfTest test = makeSelfTestInputs(manifest, lane);
      if (llvm::Error failed = runInputs(executor.get(), manifest.lanes[lane], test))
        return makeError("the new bundle does not run: " + llvm::toString(std::move(failed)));
      if (ranOn.empty())
        tests.push_back(std::move(test));
      else if (tests[lane].digest != test.digest)
        return makeError("lane " + manifest.lanes[lane].name + " gives other bits on " + target.name + " than on " +
                         ranOn + ": a fault of the compiler");
    }
    if (ranOn.empty())
      ranOn = target.name;
  }
  if (ranOn.empty())
    notes.push_back("no self-test in the bundle: this machine runs none of its targets");
  manifest.selfTests = std::move(tests);
  return llvm::Error::success();
}

} // namespace

ManifestSelfTest makeSelfTestInputs(const Manifest &manifest, uint32_t laneIndex) {
  const ManifestLane &lane = manifest.lanes[laneIndex];
  const bool marks = lane.inputs & BATTEN_INPUT_MARKERS;
  const std::vector<Bucket> &buckets = manifest.stages[lane.stage].buckets;
  auto roomy = std::find_if(buckets.begin(), buckets.end(), [&](const Bucket &b) { return !marks || b.markers != 0; });
  const Bucket &bucket = roomy == buckets.end() ? buckets.front() : *roomy;
  ManifestSelfTest test;
  test.lane = laneIndex;
  test.cuSeqlens.push_back(0);
  uint32_t state = 1;
  auto next = [&state](uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % bound;
  };
  std::vector<uint32_t> types;
  for (uint32_t wanted : {7u, 0u, 1u, 19u, 33u, 2u}) {
    uint32_t room = bucket.tokens - static_cast<uint32_t>(test.ids.size());
    uint32_t length = std::min(wanted, room);
    if (lane.maxSeqTokens)
      length = std::min(length, lane.maxSeqTokens);
    if (test.cuSeqlens.size() > bucket.seqs)
      break;
    for (uint32_t i = 0; i < length; ++i) {
      test.ids.push_back(next(std::max(1u, lane.idCount)));
      types.push_back(next(std::max(1u, lane.typeCount)));
    }
    test.cuSeqlens.push_back(static_cast<uint32_t>(test.ids.size()));
  }
  if (lane.typeCount > 1)
    test.types = std::move(types);
  if (lane.seqTypeCount) {
    test.seqTypes.emplace(test.cuSeqlens.size() - 1);
    for (uint32_t &type : *test.seqTypes)
      type = next(lane.seqTypeCount);
  }
  if (!marks)
    return test;
  // Up to four a sequence, repeated ones among them; sequences without any, too.
  test.cuMarkers.emplace(1, 0);
  for (size_t s = 0; s + 1 < test.cuSeqlens.size(); ++s) {
    uint32_t length = test.cuSeqlens[s + 1] - test.cuSeqlens[s];
    for (uint32_t count = length ? next(5) : 0; count > 0 && test.markers.size() < bucket.markers; --count)
      test.markers.push_back(next(length));
    test.cuMarkers->push_back(static_cast<uint32_t>(test.markers.size()));
  }
  return test;
}

llvm::Error addSelfTests(const std::string &directory, Manifest &manifest, std::vector<std::string> &notes) {
  return addTests([&](const batten_bundle_options_t &options, batten_bundle_t **bundle,
                      batten_error_t *error) { return batten_bundle_open(directory.c_str(), &options, bundle, error); },
                  manifest, notes);
}

llvm::Error addSelfTests(const std::vector<CompiledBlob> &blobs, Manifest &manifest, std::vector<std::string> &notes) {
  std::vector<batten_blob_t> views;
  for (const CompiledBlob &blob : blobs)
    views.push_back({blob.path().c_str(), blob.data(), blob.size()});
  return addTests(
      [&](const batten_bundle_options_t &options, batten_bundle_t **bundle, batten_error_t *error) {
        return batten_bundle_open_blobs(views.data(), views.size(), &options, bundle, error);
      },
      manifest, notes);
}

} // namespace batten
