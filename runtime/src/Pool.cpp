// See Pool.h. Spinning uses the tick counter of the CPU, not the clock: a clock may cost a system call.
#include "Pool.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace batten::rt {
namespace {

constexpr u32 kDefaultSpinMicroseconds = 50;
constexpr u32 kMaxSpinMicroseconds = 1000000;

u64 ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  u64 value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#endif
}

void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#else
  __asm__ volatile("yield");
#endif
}

// Measured over 20 microseconds: good to some percent, which is all that a spin needs.
u64 ticksPerMicrosecond() noexcept {
  const u64 startTicks = ticks(), start = os::nanoseconds();
  u64 now;
  do
    now = os::nanoseconds();
  while (now - start < 20000);
  return (ticks() - startTicks) * 1000 / (now - start) + 1;
}

} // namespace

Status Pool::start(u32 threads, u32 spinMicroseconds, const Report &report) noexcept {
  const u32 allowed = os::allowedCpus();
  const u32 usable = os::defaultThreads(allowed, os::quotaCpus(""));
  threads = threads ? threads : usable;
  if (threads > kMaxThreads)
    return report.fail(BATTEN_BAD_ARGUMENT, "", 0, threads, kMaxThreads, "%u threads, at most %u", threads,
                       kMaxThreads);
  if (spinMicroseconds == UINT32_MAX)
    spinMicroseconds = threads > usable ? 0 : kDefaultSpinMicroseconds;
  if (spinMicroseconds > kMaxSpinMicroseconds)
    return report.fail(BATTEN_BAD_ARGUMENT, "", 0, spinMicroseconds, kMaxSpinMicroseconds, "spin of %u us, at most %u",
                       spinMicroseconds, kMaxSpinMicroseconds);
  if (os::mapForkPage(forkPage_))
    *forkPage_.data() = 1;
  else
    processId_ = os::processId();
  if (!workers_.create(threads - 1))
    return report.outOfMemory((threads - 1) * sizeof(Worker));
  threads_ = threads;
  spinTicks_ = spinMicroseconds && threads > 1 ? spinMicroseconds * ticksPerMicrosecond() : 0;
  for (; started_ < threads - 1; ++started_) {
    Worker &worker = workers_[started_];
    worker.pool = this;
    worker.index = started_ + 1;
    int osError = 0;
    if (!worker.thread.start(workerMain, &worker, &osError))
      return report.failOs(BATTEN_OUT_OF_MEMORY, osError, "start a thread");
  }
  for (u32 ready; (ready = ready_.load(std::memory_order_acquire)) != started_;)
    os::futexWait(&ready_, ready);
  return BATTEN_OK;
}

Pool::~Pool() {
  if (started_ == 0 || isForked())
    return; // a forked child has no threads to join
  stop_ = true;
  publish(epoch_.value, epoch_.value.load(std::memory_order_relaxed) + 1, epochSleepers_.value);
  for (u32 i = 0; i < started_; ++i)
    workers_[i].thread.join();
}

bool Pool::isForked() const noexcept {
  if (processId_)
    return os::processId() != processId_;
  return *static_cast<const volatile u8 *>(forkPage_.data()) == 0;
}

bool Pool::tryAcquire() noexcept {
  return threads_ > 1 && !isForked() && busy_.load(std::memory_order_relaxed) == 0 &&
         busy_.exchange(1, std::memory_order_acquire) == 0;
}

// A sleeper announces itself, then looks at the word again; who changes the word looks for sleepers afterwards. All four
// accesses are sequentially consistent, so one of the two sees the other.
void Pool::awaitChange(std::atomic<u32> &word, u32 seen, std::atomic<u32> &sleepers) noexcept {
  if (word.load(std::memory_order_acquire) != seen)
    return;
  for (const u64 start = ticks(); spinTicks_ && ticks() - start < spinTicks_;)
    for (int i = 0; i < 16; ++i) {
      if (word.load(std::memory_order_acquire) != seen)
        return;
      relax();
    }
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (word.load(std::memory_order_seq_cst) == seen)
    os::futexWait(&word, seen);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void Pool::publish(std::atomic<u32> &word, u32 value, std::atomic<u32> &sleepers) noexcept {
  word.store(value, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    os::futexWakeAll(&word);
}

void Pool::barrier() noexcept {
  const u32 generation = generation_.value.load(std::memory_order_relaxed);
  if (arrived_.value.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.value.store(0, std::memory_order_relaxed);
    publish(generation_.value, generation + 1, generationSleepers_.value);
  } else {
    awaitChange(generation_.value, generation, generationSleepers_.value);
  }
}

void Pool::run(Job job, void *context) noexcept {
  job_ = job;
  context_ = context;
  publish(epoch_.value, epoch_.value.load(std::memory_order_relaxed) + 1, epochSleepers_.value);
  job(context, 0, threads_);
  barrier();
}

void Pool::workerMain(void *argument) noexcept {
  Worker *worker = static_cast<Worker *>(argument);
  worker->pool->workerLoop(worker->index);
}

void Pool::workerLoop(u32 index) noexcept {
  if (ready_.fetch_add(1, std::memory_order_acq_rel) + 2 == threads_)
    os::futexWakeAll(&ready_);
  for (u32 seen = 0;; ++seen) {
    awaitChange(epoch_.value, seen, epochSleepers_.value);
    if (stop_)
      return;
    job_(context_, index, threads_);
    barrier();
  }
}

} // namespace batten::rt
