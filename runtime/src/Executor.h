// Runs batches: owns everything that a run writes. All memory is had and touched when it is made; a run allocates nothing,
// takes no lock and, on one thread, makes no system call. One run at a time; a second one is told so.
#ifndef BATTEN_RT_EXECUTOR_H
#define BATTEN_RT_EXECUTOR_H

#include "BatchCheck.h"
#include "Bundle.h"
#include "Partition.h"
#include "Pool.h"

namespace batten::rt {

class Executor {
public:
  /// Errors: OUT_OF_MEMORY. Retains bundle and pool (which may be null).
  [[nodiscard]] Status create(Bundle &bundle, Pool *pool, bool profile, batten_error_t &error) noexcept;
  ~Executor();

  static constexpr u32 kAnyBucket = UINT32_MAX;
  /// Checks, chooses the smallest bucket that holds the batch (or takes the one given), runs, fills outputs.
  [[nodiscard]] Status run(u32 lane, u32 bucket, const batten_batch_t &batch, batten_output_view_t *outputs,
                           u32 outputCount, u32 *bucketUsed, batten_error_t &error) noexcept;
  /// Checks only; writes nothing of the executor.
  [[nodiscard]] Status check(u32 lane, const batten_batch_t &batch, u32 *bucket, batten_error_t &error) const noexcept;
  void getMemory(batten_memory_t &memory) const noexcept;
  [[nodiscard]] Status prepare(u32 lane, u32 bucket, batten_error_t &error) const noexcept;
  /// BUSY during a run.
  [[nodiscard]] Status setProfile(bool on) noexcept;
  /// BUSY during a run.
  [[nodiscard]] Status setTrace(batten_trace_fn *trace, void *user) noexcept;
  [[nodiscard]] Status getStepTime(u32 lane, u32 bucket, u32 step, u64 *nanoseconds, u64 *runs) const noexcept;
  [[nodiscard]] Status selfTest(u32 index, batten_self_test_result_t &result, batten_error_t &error) noexcept;
  [[nodiscard]] const Bundle &bundle() const noexcept { return *bundle_; }

private:
  /// A step, resolved. args is what the kernel is called with, shape what the partition needs.
  struct StepRun {
    batten_kernel_fn *kernel;
    WorkShape shape;
    batten_kernel_args_t args;
    u64 nanoseconds;
  };
  struct PlanRun {
    const Plan *plan;
    StepRun *steps;
    u32 stepCount;
    u64 runs;
  };
  struct Job {
    Executor *executor;
    PlanRun *plan;
  };

  [[nodiscard]] Status allocate(const Report &report) noexcept;
  void resolve(const Plan &plan, PlanRun &run) noexcept;
  [[nodiscard]] Status chooseBucket(u32 lane, u32 wanted, const batten_batch_t &batch, u32 *bucket,
                                    batten_error_t &error) const noexcept;
  [[nodiscard]] Status noLane(u32 lane, batten_error_t &error) const noexcept;
  [[nodiscard]] Status checkOutputs(u32 lane, const batten_batch_t &batch, const batten_output_view_t *outputs,
                                    u32 outputCount, batten_error_t &error) const noexcept;
  void fillOutputs(u32 lane, u32 bucket, batten_output_view_t *outputs, u32 outputCount) const noexcept;
  void runPlan(PlanRun &plan) noexcept;
  void runSteps(PlanRun &plan, u32 worker, u32 workers) noexcept;
  void traceStep(const PlanRun &plan, u32 step) const noexcept;
  [[nodiscard]] batten_output_view_t viewOf(const batten_buffer_t &buffer) const noexcept;
  [[nodiscard]] bool isEmpty(const WorkShape &shape) const noexcept;
  [[nodiscard]] bool tryEnter() const noexcept { return busy_->exchange(1, std::memory_order_acquire) == 0; }
  void leave() const noexcept { busy_->store(0, std::memory_order_release); }

  Bundle *bundle_ = nullptr;
  Pool *pool_ = nullptr;
  std::atomic<u32> *busy_ = &ownBusy_; // on forkPage_ where there is one: a child forked during a run isn't busy
  std::atomic<u32> ownBusy_{0};
  bool profile_ = false;
  batten_trace_fn *trace_ = nullptr;
  void *traceUser_ = nullptr;
  u64 scratchBytes_ = 0; // a worker
  batten_kernel_batch_t batch_ = {};
  BatchTables tables_ = {};
  Array<PlanRun> plans_; // by Manifest::planIndex
  Array<StepRun> steps_;
  os::Mapping arena_, batchMemory_, scratch_, forkPage_;
};

} // namespace batten::rt

#endif // BATTEN_RT_EXECUTOR_H
