// From the first run on nothing is allocated, freed, mapped or unmapped, on any thread; and without profiling no clock is
// read. This binary has an allocator and a clock of its own that count: they stand before libc's, so that libc's own calls
// and those of workers count too.
#include "TestModel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {
std::atomic<bool> counting{false};
std::atomic<uint64_t> calls{0}, clockReads{0};
void count() {
  if (counting.load(std::memory_order_relaxed))
    calls.fetch_add(1, std::memory_order_relaxed);
}
} // namespace

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t size) { return count(), __libc_malloc(size); }
void *calloc(size_t items, size_t size) { return count(), __libc_calloc(items, size); }
void *realloc(void *memory, size_t size) { return count(), __libc_realloc(memory, size); }
void *aligned_alloc(size_t alignment, size_t size) { return count(), __libc_memalign(alignment, size); }
void *memalign(size_t alignment, size_t size) { return count(), __libc_memalign(alignment, size); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
  count();
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
void free(void *memory) {
  if (memory)
    count();
  __libc_free(memory);
}
void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  count();
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}
int clock_gettime(clockid_t clock, timespec *time) noexcept {
  if (counting.load(std::memory_order_relaxed))
    clockReads.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}
int munmap(void *address, size_t length) {
  count();
  return static_cast<int>(syscall(SYS_munmap, address, length));
}
}

namespace batten::test {
namespace {

TEST(NoAllocTest, TheCounterCounts) {
  counting = true;
  void *volatile memory = std::malloc(10); // volatile: the pair must not be optimized away
  std::free(memory);
  counting = false;
  EXPECT_EQ(calls.exchange(0), 2u);
}

TEST(NoAllocTest, RunsAllocateNothingFromTheFirstOn) {
  const Blobs blobs(serialize(modelSpec()));
  const BundlePtr bundle = openBlobs(blobs);
  ASSERT_TRUE(bundle);
  std::vector<Batch> batches;
  for (const std::vector<uint32_t> &lengths :
       {std::vector<uint32_t>{}, {3}, {0, 0}, {8}, {20, 3, 0}, {150, 50}, {1, 1, 1}})
    batches.push_back(makeBatch(lengths, 5));
  Batch wrong = makeBatch({4}, 1);
  wrong.ids[2] = -1;
  const Batch large = makeBatch({201}, 1);
  std::vector<float> copy(200 * kWidth);
  for (uint32_t threads = 1; threads <= 3; ++threads)
    for (const bool profile : {false, true}) {
      const PoolPtr pool = makePool(threads, 20);
      const ExecutorPtr executor = makeExecutor(bundle.get(), pool.get());
      ASSERT_EQ(batten_executor_set_profile(executor.get(), profile), BATTEN_OK);
      std::vector<batten_batch_t> views;
      for (const Batch &batch : batches)
        views.push_back(batch.view());
      const batten_batch_t wrongView = wrong.view(), largeView = large.view();
      batten_error_t error;
      batten_status_t status = BATTEN_OK, refused = BATTEN_OK, unfit = BATTEN_OK;
      counting = true;
      for (int round = 0; round < 50 && status == BATTEN_OK; ++round)
        for (size_t i = 0; i < views.size() && status == BATTEN_OK; ++i) {
          batten_output_view_t outputs[2] = {};
          outputs[0].copyTo = copy.data(), outputs[0].copyBytes = copy.size() * 4;
          uint32_t bucket;
          status = batten_run_lane(executor.get(), 1, &views[i], outputs, 2, &bucket, &error);
          refused = batten_run(executor.get(), &wrongView, nullptr, 0, nullptr, &error);
          unfit = batten_check_batch(executor.get(), 0, &largeView, nullptr, &error);
          if (round % 10 == 0)
            usleep(200); // so that workers fall asleep and are woken, too
        }
      counting = false;
      EXPECT_EQ(calls.exchange(0), 0u) << threads << " threads";
      EXPECT_EQ(clockReads.exchange(0) != 0, profile) << threads << " threads";
      EXPECT_EQ(status, BATTEN_OK);
      EXPECT_EQ(refused, BATTEN_BAD_BATCH);
      EXPECT_EQ(unfit, BATTEN_NO_BUCKET);
    }
}

} // namespace
} // namespace batten::test
