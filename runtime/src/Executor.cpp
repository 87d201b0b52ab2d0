// See Executor.h. Making an executor and what is asked of it; the run itself is in ExecutorRun.cpp.
#include "Executor.h"

namespace batten::rt {

using ull = unsigned long long;

Status Executor::create(Bundle &bundle, Pool *pool, bool profile, batten_error_t &error) noexcept {
  bundle.retain();
  bundle_ = &bundle;
  if (pool) {
    pool->retain();
    pool_ = pool;
  }
  profile_ = profile;
  if (!bundle.hasCode())
    return Report(error, {}).fail(BATTEN_BAD_ARGUMENT, "", 0, 0, 0, "the bundle was opened to be inspected only");
  return allocate(Report(error, {}));
}

Executor::~Executor() {
  if (pool_ && pool_->releaseReference())
    destroy(pool_);
  if (bundle_ && bundle_->release())
    destroy(bundle_);
}

Status Executor::allocate(const Report &report) noexcept {
  const Manifest &manifest = bundle_->manifest();
  u64 arenaBytes = 0, stepCount = 0;
  u32 tokens = 0, seqs = 0, markers = 0;
  for (u64 i = 0; i < bundle_->files().plans.count(); ++i) {
    const Plan &plan = bundle_->files().plans[i];
    arenaBytes = plan.plan.arenaBytes > arenaBytes ? plan.plan.arenaBytes : arenaBytes;
    scratchBytes_ = plan.plan.scratchBytes > scratchBytes_ ? plan.plan.scratchBytes : scratchBytes_;
    tokens = plan.plan.tokens > tokens ? plan.plan.tokens : tokens;
    seqs = plan.plan.seqs > seqs ? plan.plan.seqs : seqs;
    markers = plan.plan.markers > markers ? plan.plan.markers : markers;
    stepCount += plan.steps.count;
  }
  const u32 workers = pool_ ? pool_->threads() : 1;
  u64 scratchTotal;
  if (!checkedMul(scratchBytes_, workers, &scratchTotal))
    return report.outOfMemory(UINT64_MAX);
  BATTEN_TRY(os::mapMemory(arenaBytes, arena_, report));
  BATTEN_TRY(os::mapMemory(scratchTotal, scratch_, report));
  BATTEN_TRY(os::mapMemory(batchTableBytes(tokens, seqs, markers), batchMemory_, report));
  tables_ = placeBatchTables(batchMemory_.data(), tokens, seqs, markers);
  (void)os::mapForkPage(forkPage_);
  if (forkPage_.data())
    busy_ = new (forkPage_.data()) std::atomic<u32>(0);
  if (!plans_.create(manifest.plansPerTarget()) || !steps_.create(stepCount))
    return report.outOfMemory(stepCount * sizeof(StepRun));
  StepRun *next = steps_.data();
  for (u64 i = 0; i < plans_.count(); ++i) {
    const Plan &plan = bundle_->files().plans[i];
    plans_[i] = {&plan, next, static_cast<u32>(plan.steps.count), 0};
    resolve(plan, plans_[i]);
    next += plan.steps.count;
  }
  return BATTEN_OK;
}

// Every address that a run needs, once.
void Executor::resolve(const Plan &plan, PlanRun &run) noexcept {
  StepRun *streams =
      nullptr; // the last step with panels: it prefetches the start of the next one's, whatever is between
  for (u32 i = 0; i < run.stepCount; ++i) {
    const batten_step_t step = plan.steps.at(i);
    const batten_kernel_t kernel = plan.kernels.at(step.kernel);
    StepRun &out = run.steps[i];
    const u8 *entry = bundle_->entry(kernel);
    std::memcpy(&out.kernel, &entry, sizeof entry);
    out.shape = {kernel.domain, step.rowKind, kernel.panels, kernel.slabRows, kernel.heads, step.pairWindow != 0};
    out.args.batch = &batch_;
    out.args.rows = batch_.rows + step.rowKind;
    out.args.scratch = scratch_.data();
    out.args.scratchBytes = scratchBytes_;
    u32 pointers = 0;
    for (u32 k = 0; k < step.operandCount; ++k) {
      const batten_operand_t operand = plan.operands.at(u64{step.firstOperand} + k);
      void *address;
      if (operand.kind == BATTEN_OPERAND_WEIGHT) {
        const batten_weight_t weight = plan.weights.at(operand.index);
        address = const_cast<u8 *>(bundle_->weight(weight)); // kernels only read it: the mapping is read-only
        if (isPanels(weight.layout)) {
          if (streams && streams != &out) {
            streams->args.next = address;
            streams->args.nextBytes = weight.bytes;
          }
          streams = &out;
        }
      } else {
        address = arena_.data() + plan.buffers.at(operand.index).offset;
      }
      out.args.ptr[pointers++] = address;
      if (operand.access == BATTEN_ACCESS_READWRITE)
        out.args.ptr[pointers++] = address;
    }
  }
}

void Executor::getMemory(batten_memory_t &memory) const noexcept {
  const Bundle &bundle = *bundle_;
  const batten_target_t target = bundle.manifest().targets.at(bundle.target());
  const u32 packs[2] = {target.commonPack, target.panelsPack};
  memory = {};
  for (u32 pack : {BATTEN_PACK_COMMON, BATTEN_PACK_PANELS}) {
    const u64 bytes = bundle.manifest().files.at(packs[pack]).bytes;
    memory.weightsMapped += bytes;
    memory.weightsResident += os::residentBytes(bundle.files().packData[pack], bytes);
  }
  memory.imageMapped = bundle.files().code.bytes();
  memory.imageResident = os::residentBytes(bundle.files().code.data(), bundle.files().code.bytes());
  memory.planTables = bundle.planBytes() + steps_.count() * sizeof(StepRun) + plans_.count() * sizeof(PlanRun) +
                      bundle.files().plans.count() * sizeof(Plan);
  memory.arena = arena_.bytes();
  memory.batchTables = batchMemory_.bytes() + forkPage_.bytes();
  memory.scratch = scratch_.bytes();
}

Status Executor::prepare(u32 lane, u32 bucket, batten_error_t &error) const noexcept {
  const Manifest &manifest = bundle_->manifest();
  if (lane >= manifest.lanes.count || bucket >= manifest.bucketCount(lane))
    return Report(error, {}).fail(BATTEN_BAD_ARGUMENT, "", lane, bucket, 0, "no lane %u with a bucket %u", lane,
                                  bucket);
  const Plan &plan = bundle_->plan(lane, bucket);
  for (u64 i = 0; i < plan.weights.count; ++i) {
    const batten_weight_t weight = plan.weights.at(i);
    os::populate(bundle_->weight(weight), weight.bytes);
  }
  os::populate(bundle_->files().code.data(), bundle_->files().code.bytes());
  return BATTEN_OK;
}

Status Executor::setProfile(bool on) noexcept {
  if (!tryEnter())
    return BATTEN_BUSY;
  profile_ = on;
  for (u64 i = 0; i < steps_.count(); ++i)
    steps_[i].nanoseconds = 0;
  for (u64 i = 0; i < plans_.count(); ++i)
    plans_[i].runs = 0;
  leave();
  return BATTEN_OK;
}

Status Executor::setTrace(batten_trace_fn *trace, void *user) noexcept {
  if (!tryEnter())
    return BATTEN_BUSY;
  trace_ = trace;
  traceUser_ = user;
  leave();
  return BATTEN_OK;
}

Status Executor::getStepTime(u32 lane, u32 bucket, u32 step, u64 *nanoseconds, u64 *runs) const noexcept {
  const Manifest &manifest = bundle_->manifest();
  if (lane >= manifest.lanes.count || bucket >= manifest.bucketCount(lane))
    return BATTEN_BAD_ARGUMENT;
  const PlanRun &plan = plans_[manifest.planIndex(lane, bucket)];
  if (step >= plan.stepCount)
    return BATTEN_BAD_ARGUMENT;
  if (!tryEnter())
    return BATTEN_BUSY;
  *nanoseconds = plan.steps[step].nanoseconds;
  *runs = plan.runs;
  leave();
  return BATTEN_OK;
}

Status Executor::selfTest(u32 index, batten_self_test_result_t &result, batten_error_t &error) noexcept {
  const Manifest &manifest = bundle_->manifest();
  const Report report(error, textOf("manifest.bin"));
  result = {};
  if (index >= manifest.selfTests.count)
    return report.fail(BATTEN_BAD_ARGUMENT, "SELF_TESTS", index, index, manifest.selfTests.count, "no such self-test");
  const batten_self_test_t test = manifest.selfTests.at(index);
  auto words = [&](u32 first) {
    return first == UINT32_MAX ? nullptr : reinterpret_cast<const int32_t *>(manifest.words + first);
  };
  batten_batch_t batch = BATTEN_BATCH_INIT;
  batch.tokenIds = words(test.ids);
  batch.tokenTypes = words(test.types);
  batch.cuSeqlens = words(test.cuSeqlens);
  batch.markers = words(test.markerPos);
  batch.cuMarkers = words(test.cuMarkers);
  batch.seqTypes = words(test.seqTypes);
  batch.tokenCount = test.tokens, batch.seqCount = test.seqs, batch.markerCount = test.markers;
  result.lane = test.lane;
  std::memcpy(result.expected, test.digest, sizeof result.expected);
  const batten_lane_t lane = manifest.lanes.at(test.lane);
  Array<batten_output_view_t> views;
  if (!views.create(lane.outputCount))
    return report.outOfMemory(lane.outputCount * sizeof(batten_output_view_t));
  BATTEN_TRY(run(test.lane, kAnyBucket, batch, views.data(), lane.outputCount, nullptr, error));
  Sha256 hash(bundle_->cpu().hasSha);
  for (u32 i = 0; i < lane.outputCount; ++i)
    for (u32 row = 0; row < views[i].rows; ++row)
      hash.update(static_cast<const u8 *>(views[i].data) + row * views[i].strideBytes,
                  views[i].width * elemBytes(manifest.outputs.at(lane.firstOutput + u64{i}).elem));
  hash.finish(result.found);
  result.passed = std::memcmp(result.found, result.expected, sizeof result.found) == 0;
  if (!result.passed)
    return report.fail(BATTEN_CORRUPT, "SELF_TESTS", index, 0, 0, "the outputs differ from the expected digest");
  return BATTEN_OK;
}

} // namespace batten::rt
