// Executor's hot path: bucket, batch check, steps, outputs. No allocation, no lock, no system call on one thread.
#include "Executor.h"

namespace batten::rt {
namespace {

struct Counts {
  u32 tokens, seqs, markers;
};

bool holds(const batten_bucket_t &bucket, const Counts &counts) noexcept {
  return counts.tokens <= bucket.tokens && counts.seqs <= bucket.seqs && counts.markers <= bucket.markers;
}

u32 rowsOf(const batten_batch_t &batch, u32 rowKind) noexcept {
  return rowKind == BATTEN_ROWS_TOKENS    ? batch.tokenCount
         : rowKind == BATTEN_ROWS_SEQS    ? batch.seqCount
         : rowKind == BATTEN_ROWS_MARKERS ? batch.markerCount
                                          : batch.seqCount != 0;
}

} // namespace

Status Executor::chooseBucket(u32 lane, u32 wanted, const batten_batch_t &batch, u32 *bucket,
                              batten_error_t &error) const noexcept {
  const Manifest &manifest = bundle_->manifest();
  const u32 count = manifest.bucketCount(lane);
  const Counts counts{batch.tokenCount, batch.seqCount, batch.markerCount};
  const u32 first = wanted == kAnyBucket ? 0 : wanted, end = wanted == kAnyBucket ? count : wanted + 1;
  batten_bucket_t largest = {};
  for (u32 i = first; i < end; ++i) {
    const batten_bucket_t candidate = manifest.bucket(lane, i);
    if (holds(candidate, counts)) {
      *bucket = i;
      return BATTEN_OK;
    }
    largest.tokens = candidate.tokens > largest.tokens ? candidate.tokens : largest.tokens;
    largest.seqs = candidate.seqs > largest.seqs ? candidate.seqs : largest.seqs;
    largest.markers = candidate.markers > largest.markers ? candidate.markers : largest.markers;
  }
  struct Side {
    const char *name;
    u32 found, limit;
  };
  const Side sides[] = {{"tokens", counts.tokens, largest.tokens},
                        {"seqs", counts.seqs, largest.seqs},
                        {"markers", counts.markers, largest.markers}};
  Side over = sides[0]; // where no single side is too large, no bucket has all three: tokens are named
  for (int i = 2; i >= 0; --i)
    over = sides[i].found > sides[i].limit ? sides[i] : over;
  const Text stage = manifest.text(manifest.stages.at(manifest.lanes.at(lane).stage).name);
  Status status = Report(error, {}).fail(
      BATTEN_NO_BUCKET, "", 0, over.found, over.limit,
      "%u tokens, %u sequences, %u markers: no bucket of stage \"%.*s\" holds them, the largest have %u, %u and %u",
      counts.tokens, counts.seqs, counts.markers, BATTEN_TEXT(stage), largest.tokens, largest.seqs, largest.markers);
  copyText(error.where, sizeof error.where, textOf(over.name));
  copyText(error.section, sizeof error.section, stage);
  return status;
}

Status Executor::checkOutputs(u32 lane, const batten_batch_t &batch, const batten_output_view_t *outputs,
                              u32 outputCount, batten_error_t &error) const noexcept {
  const Manifest &manifest = bundle_->manifest();
  const batten_lane_t record = manifest.lanes.at(lane);
  if (!outputs && outputCount == 0)
    return BATTEN_OK;
  if (!outputs || outputCount != record.outputCount)
    return Report(error, {}).fail(BATTEN_BAD_ARGUMENT, "", 0, outputCount, record.outputCount,
                                  "%u output entries, the lane has %u", outputCount, record.outputCount);
  for (u32 i = 0; i < outputCount; ++i) {
    const batten_output_t output = manifest.outputs.at(record.firstOutput + u64{i});
    u64 bytes;
    if (!outputs[i].copyTo)
      continue;
    if (!checkedMul(u64{rowsOf(batch, output.rowKind)} * output.width, elemBytes(output.elem), &bytes) ||
        outputs[i].copyBytes < bytes)
      return Report(error, {}).fail(BATTEN_BAD_ARGUMENT, "", i, outputs[i].copyBytes, bytes,
                                    "output %u: room for %zu bytes, %llu are needed", i, outputs[i].copyBytes,
                                    static_cast<unsigned long long>(bytes));
  }
  return BATTEN_OK;
}

Status Executor::noLane(u32 lane, batten_error_t &error) const noexcept {
  const u64 count = bundle_->manifest().lanes.count;
  return Report(error, {}).fail(BATTEN_BAD_ARGUMENT, "", 0, lane, count, "no lane %u, the bundle has %llu", lane,
                                static_cast<unsigned long long>(count));
}

Status Executor::check(u32 lane, const batten_batch_t &batch, u32 *bucket, batten_error_t &error) const noexcept {
  u32 found = 0;
  if (lane >= bundle_->manifest().lanes.count)
    return noLane(lane, error);
  BATTEN_TRY(chooseBucket(lane, kAnyBucket, batch, &found, error));
  BATTEN_TRY(checkBatch(batch, bundle_->manifest().lanes.at(lane), error));
  if (bucket)
    *bucket = found;
  return BATTEN_OK;
}

Status Executor::run(u32 lane, u32 bucket, const batten_batch_t &batch, batten_output_view_t *outputs, u32 outputCount,
                     u32 *bucketUsed, batten_error_t &error) noexcept {
  const Manifest &manifest = bundle_->manifest();
  const Report report(error, {});
  if (lane >= manifest.lanes.count)
    return noLane(lane, error);
  if (bucket != kAnyBucket && bucket >= manifest.bucketCount(lane))
    return report.fail(BATTEN_BAD_ARGUMENT, "", 0, bucket, manifest.bucketCount(lane), "no bucket %u", bucket);
  u32 chosen = 0;
  BATTEN_TRY(chooseBucket(lane, bucket, batch, &chosen, error));
  BATTEN_TRY(checkOutputs(lane, batch, outputs, outputCount, error));
  if (!tryEnter())
    return report.fail(BATTEN_BUSY, "", 0, 0, 0, "the executor is running on another thread");
  const Status status = checkAndFillBatch(batch, manifest.lanes.at(lane), tables_, batch_, error);
  if (status == BATTEN_OK) {
    runPlan(plans_[manifest.planIndex(lane, chosen)]);
    fillOutputs(lane, chosen, outputs, outputCount);
    if (bucketUsed)
      *bucketUsed = chosen;
  }
  leave();
  return status;
}

void Executor::runPlan(PlanRun &plan) noexcept {
  if (batch_.rows[BATTEN_ROWS_SEQS] == 0)
    return;
  if (profile_)
    ++plan.runs;
  if (pool_ && pool_->tryAcquire()) {
    Job job{this, &plan};
    pool_->run(
        [](void *context, u32 worker, u32 workers) {
          Job copy = *static_cast<Job *>(context);
          copy.executor->runSteps(*copy.plan, worker, workers);
        },
        &job);
    pool_->release();
  } else {
    runSteps(plan, 0, 1);
  }
}

bool Executor::isEmpty(const WorkShape &shape) const noexcept {
  return shape.domain == BATTEN_DOMAIN_TASKS ? batch_.taskStart[batch_.rows[BATTEN_ROWS_SEQS]] == 0
                                             : batch_.rows[shape.rowKind] == 0;
}

batten_output_view_t Executor::viewOf(const batten_buffer_t &buffer) const noexcept {
  batten_output_view_t view = {};
  view.data = arena_.data() + buffer.offset;
  view.rows = batch_.rows[buffer.rowKind];
  view.width = buffer.width;
  view.strideBytes = buffer.strideBytes;
  return view;
}

// The buffer that a step writes is its last operand.
void Executor::traceStep(const PlanRun &run, u32 index) const noexcept {
  const batten_step_t step = run.plan->steps.at(index);
  const batten_operand_t operand = run.plan->operands.at(u64{step.firstOperand} + step.operandCount - 1);
  const batten_buffer_t buffer = run.plan->buffers.at(operand.index);
  const batten_output_view_t view = viewOf(buffer);
  trace_(traceUser_, index, buffer.rowKind, &view);
}

// UBSan's check of function pointers reads a mark before the kernel's first byte, which may lie before the mapping.
#if defined(__clang__)
#define BATTEN_CALLS_KERNELS [[clang::no_sanitize("function")]]
#else
#define BATTEN_CALLS_KERNELS
#endif

// Every worker walks the same steps and skips the same ones, so that all come to the same barriers. A traced step is
// followed by two: all have written it, and the next one, which may be in place, waits for the trace.
BATTEN_CALLS_KERNELS void Executor::runSteps(PlanRun &plan, u32 worker, u32 workers) noexcept {
  const FpState state;
  const bool timed = profile_ && worker == 0, meets = workers > 1, meetsAtEnd = meets && profile_,
             traced = trace_ != nullptr;
  StepRun *before = nullptr;
  u64 started = 0;
  auto account = [&] {
    const u64 now = os::nanoseconds();
    if (before)
      before->nanoseconds += now - started;
    started = now;
  };
  for (StepRun *step = plan.steps, *end = plan.steps + plan.stepCount; step != end; ++step) {
    if (isEmpty(step->shape))
      continue;
    if (before && meets && !traced)
      pool_->barrier();
    if (timed)
      account();
    before = step;
    const UnitRange units = partition(step->shape, batch_, tables_.cost, worker, workers);
    if (units.first < units.last)
      step->kernel(&step->args, units.first, units.last, worker);
    if (traced) {
      if (meets)
        pool_->barrier();
      if (worker == 0)
        traceStep(plan, static_cast<u32>(step - plan.steps));
      if (meets)
        pool_->barrier();
    }
  }
  if (meetsAtEnd)
    pool_->barrier();
  if (timed)
    account();
}

void Executor::fillOutputs(u32 lane, u32 bucket, batten_output_view_t *outputs, u32 outputCount) const noexcept {
  const Plan &plan = bundle_->plan(lane, bucket);
  for (u32 i = 0; i < outputCount; ++i) {
    const batten_buffer_t buffer = plan.buffers.at(plan.outputs.at(i).buffer);
    batten_output_view_t &view = outputs[i];
    void *const copyTo = view.copyTo;
    const size_t copyBytes = view.copyBytes;
    view = viewOf(buffer);
    view.copyTo = copyTo;
    view.copyBytes = copyBytes;
    if (!copyTo)
      continue;
    const u8 *data = static_cast<const u8 *>(view.data);
    const u64 rowBytes = buffer.width * elemBytes(buffer.elem);
    for (u32 row = 0; row < view.rows; ++row)
      std::memcpy(static_cast<u8 *>(view.copyTo) + row * rowBytes, data + row * buffer.strideBytes, rowBytes);
    view.data = view.copyTo;
    view.strideBytes = rowBytes;
  }
}

} // namespace batten::rt
