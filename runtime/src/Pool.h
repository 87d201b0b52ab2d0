// Threads that share the steps of a run. One job at a time: every worker runs the same function, meets the others at
// barriers inside it, and all meet at the end. A second run that comes meanwhile is told so and goes on alone. In a forked
// child, which has none of the threads, the pool is never to be had.
//
//   caller:  tryAcquire -> run(job): publish, do share 0, meet the others -> release
//   worker:  wait for a new epoch (spin, then sleep) -> do its share -> meet the others
//
// A waiting thread spins for a bounded time by the CPU's tick counter, then sleeps in a futex.
#ifndef BATTEN_RT_POOL_H
#define BATTEN_RT_POOL_H

#include "OsLinux.h"

namespace batten::rt {

class Pool {
public:
  /// Does the share of one worker; may call barrier.
  using Job = void (*)(void *context, u32 worker, u32 workers);

  static constexpr u32 kMaxThreads = 1024;

  Pool() = default;
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  /// Starts threads - 1 workers and waits until they are there: a thread's first system calls are over then, so that a
  /// process may forbid them. threads 0: as many as the process may use. spinMicroseconds UINT32_MAX: the default.
  /// Errors: BAD_ARGUMENT, OUT_OF_MEMORY (no thread to be had).
  [[nodiscard]] Status start(u32 threads, u32 spinMicroseconds, const Report &report) noexcept;

  [[nodiscard]] u32 threads() const noexcept { return threads_; }
  /// True where the pool is the caller's now: no other run has it, and this is the process that made it.
  [[nodiscard]] bool tryAcquire() noexcept;
  void release() noexcept { busy_.store(0, std::memory_order_release); }
  /// Runs job on all threads, the caller's as worker 0; returns when all are done.
  void run(Job job, void *context) noexcept;
  /// All workers of the running job meet here; what each wrote before, each sees behind it.
  void barrier() noexcept;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  /// True for the last reference.
  [[nodiscard]] bool releaseReference() noexcept { return references_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

private:
  struct Worker {
    os::Thread thread;
    Pool *pool;
    u32 index;
  };
  // What threads write often sits on a cache line pair of its own.
  struct alignas(128) Line {
    std::atomic<u32> value{0};
  };

  static void workerMain(void *worker) noexcept;
  void workerLoop(u32 index) noexcept;
  void awaitChange(std::atomic<u32> &word, u32 seen, std::atomic<u32> &sleepers) noexcept;
  void publish(std::atomic<u32> &word, u32 value, std::atomic<u32> &sleepers) noexcept;
  [[nodiscard]] bool isForked() const noexcept;

  std::atomic<u32> references_{1};
  std::atomic<u32> busy_{0};
  u32 threads_ = 1;
  u32 started_ = 0;
  u64 spinTicks_ = 0;
  u64 processId_ = 0;     // 0 where the fork page tells
  os::Mapping forkPage_;  // first byte 1; 0 in a forked child
  Array<Worker> workers_; // [threads - 1]

  Job job_ = nullptr;
  void *context_ = nullptr;
  bool stop_ = false;
  std::atomic<u32> ready_{0}; // workers that have come to wait for work
  Line epoch_, epochSleepers_;
  Line arrived_, generation_, generationSleepers_;
};

} // namespace batten::rt

#endif // BATTEN_RT_POOL_H
