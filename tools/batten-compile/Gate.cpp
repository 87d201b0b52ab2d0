// See the header. Runs bundles as `batten compare` does and shares its arithmetic.
#include "tools/batten-compile/Gate.h"

#include "tools/batten/Agreement.h"

#include <bit>
#include <memory>

namespace batten::tools {

using nlohmann::ordered_json;

namespace {

Thresholds thresholdsOf(const GateSpec &gate) {
  return {gate.maxAbs, gate.maxMean, gate.maxRel, gate.minCosine, gate.minArgmax, gate.margin};
}

constexpr char kReference[] = "the f32 reference", kNewBundle[] = "the new bundle";

/// The best target that runs here. Errors: Failure where none does.
batten_target_info_t bestTarget(const batten_bundle_t *bundle) {
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle, &info);
  batten_target_info_t best = {};
  std::string names;
  for (uint32_t i = 0; i < info.targetCount; ++i) {
    batten_target_info_t target;
    checkIndex(batten_bundle_get_target(bundle, i, &target));
    names += (names.empty() ? "" : ", ") + toString(target.name);
    if (target.supported && (!best.supported || std::popcount(target.features) > std::popcount(best.features)))
      best = target;
  }
  if (!best.supported)
    fail("gate: nothing measured, since this machine runs no target of the bundle: " + names);
  return best;
}

/// The reference in memory, as long as its bundle is open.
struct Reference {
  std::vector<CompiledBlob> blobs;
  BundlePtr bundle;
};

Reference compileReference(CompileRequest request, const std::string &target) {
  request.targets = {target};
  request.weights = request.math = "f32";
  request.selfTest = false;
  request.progress = nullptr;
  llvm::Expected<std::vector<CompiledBlob>> blobs = compileToMemory(request);
  if (!blobs)
    fail("gate: the f32 reference: " + llvm::toString(blobs.takeError()));
  Reference reference{std::move(*blobs), nullptr};
  std::vector<batten_blob_t> views;
  for (const CompiledBlob &blob : reference.blobs)
    views.push_back({blob.path().c_str(), blob.data(), blob.size()});
  batten_bundle_options_t options = BATTEN_BUNDLE_OPTIONS_INIT;
  options.target = target.c_str();
  batten_bundle_t *opened = nullptr;
  batten_error_t error = {};
  check(batten_bundle_open_blobs(views.data(), views.size(), &options, &opened, &error), error,
        "gate: the f32 reference");
  reference.bundle.reset(opened);
  return reference;
}

/// What the lane reads of a batch.
Batch readBy(const Lane &lane, Batch batch) {
  if (!lane.info.readsMarkers) {
    batch.hasMarkers = false;
    batch.markers.clear();
    batch.cuMarkers.assign(batch.cuSeqlens.size(), 0);
  }
  if (!lane.info.readsSeqTypes) {
    batch.hasSeqTypes = false;
    batch.seqTypes.clear();
  }
  return batch;
}

std::vector<ordered_json> measure(const CompileRequest &request, const std::string &directory, const GateSpec &gate) {
  const Thresholds thresholds = thresholdsOf(gate);
  std::vector<Batch> batches;
  for (const std::string &path : gate.batches)
    batches.push_back(readBatch(path));
  BundleOptions options;
  options.path = directory;
  options.allowWritableByOthers = true; // it has just been written here
  const BundlePtr asked = options.openToInspect(BATTEN_VERIFY_STRUCTURE);
  const batten_target_info_t target = bestTarget(asked.get());
  options.target = toString(target.name);
  const std::string weights = elemName(target.weights), math = elemName(target.math);
  const BundlePtr made = options.open();
  const Reference reference =
      weights == "f32" && math == "f32" ? Reference{{}, options.open()} : compileReference(request, options.target);
  const Engine engineA(reference.bundle.get(), kReference, 0), engineB(made.get(), kNewBundle, 0);
  batten_bundle_info_t info;
  batten_bundle_get_info(made.get(), &info);
  if (!gate.lane.empty())
    findLane(made.get(), "gate", gate.lane);

  std::vector<ordered_json> rows;
  std::vector<std::string> failures;
  for (uint32_t index = 0; index < info.laneCount; ++index) {
    const Lane lane = readLane(made.get(), index);
    if (!gate.lane.empty() && lane.name != gate.lane)
      continue;
    const Lane laneA = findLane(reference.bundle.get(), kReference, lane.name);
    Agreement agreement(laneA, lane, kReference, kNewBundle);
    for (size_t i = 0; i < batches.size(); ++i) {
      const std::string where = gate.batches[i] + ": lane " + lane.name;
      const Batch batch = readBy(lane, batches[i]);
      agreement.add(runLane(engineA, laneA, batch, where), runLane(engineB, lane, batch, where), gate.batches[i],
                    thresholds.margin.value_or(0));
    }
    for (const OutputAgreement &found : agreement.outputs()) {
      ordered_json row = {{"weights", weights}, {"math", math}, {"lane", lane.name}, {"batches", batches.size()}};
      row.update(found.describe());
      row["thresholds"] = thresholds.describe();
      rows.push_back(std::move(row));
    }
    agreement.addFailures(thresholds, failures);
  }
  std::string message;
  for (const std::string &failure : failures)
    message += (message.empty() ? "gate: " : "\ngate: ") + failure;
  if (!failures.empty())
    fail(message);
  return rows;
}

} // namespace

llvm::Expected<std::vector<ordered_json>> measureGate(const CompileRequest &request, const std::string &directory,
                                                      const GateSpec &gate) {
  try { // the compiler, which calls this, is built without exceptions
    return measure(request, directory, gate);
  } catch (const std::exception &failure) {
    return llvm::createStringError(failure.what());
  }
}

} // namespace batten::tools
