// The pool: shared by executors, one run at a time, fork, signals, idle cost, threads that come and go. Runs have to be
// right whatever the pool does.
#include "TestModel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace batten::test {
namespace {

class PoolTest : public ::testing::Test {
protected:
  PoolTest() : blobs_(serialize(modelSpec())) { bundle_ = openBlobs(blobs_); }
  Blobs blobs_;
  BundlePtr bundle_;
};

TEST_F(PoolTest, IsSharedByThreeExecutors) {
  const PoolPtr pool = makePool(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
      for (uint32_t i = 0; i < 60; ++i) {
        const Batch batch = makeBatch({i % 50, 3 * t, 20}, i);
        const Outputs expected = reference(batch), found = runModel(executor.get(), batch);
        wrong += !sameBits(found.hidden, expected.hidden) || !sameBits(found.pooled, expected.pooled);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(PoolTest, EightExecutorsOnOneBundle) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      batten_bundle_retain(bundle_.get());
      {
        const ExecutorPtr executor = makeExecutor(bundle_.get());
        for (uint32_t i = 0; i < 30; ++i) {
          const Batch batch = makeBatch({i, t, 7}, i + t);
          wrong += !sameBits(runModel(executor.get(), batch).hidden, reference(batch).hidden);
          wrong += inspectAll(bundle_.get()) == 0;
        }
      }
      batten_bundle_release(bundle_.get());
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(PoolTest, OutlivesItsHandleWhileAnExecutorUsesIt) {
  ExecutorPtr executor;
  {
    const PoolPtr pool = makePool(2);
    executor = makeExecutor(bundle_.get(), pool.get());
  }
  bundle_.reset();
  const Batch batch = makeBatch({20, 4}, 1);
  EXPECT_TRUE(sameBits(runModel(executor.get(), batch).hidden, reference(batch).hidden));
}

TEST_F(PoolTest, WorkersWakeAfterSleep) {
  for (uint32_t spin : {0u, 1u, 200u}) {
    const PoolPtr pool = makePool(3, spin);
    const ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
    for (uint32_t i = 0; i < 20; ++i) {
      const Batch batch = makeBatch({40, 4}, i);
      EXPECT_TRUE(sameBits(runModel(executor.get(), batch).hidden, reference(batch).hidden));
      std::this_thread::yield();
    }
  }
}

TEST_F(PoolTest, ForkedChildAnswersWithTheSameBits) {
  if (kThreadSanitized)
    GTEST_SKIP() << "ThreadSanitizer does not follow a fork of a process with threads";
  const PoolPtr pool = makePool(3);
  const ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
  const Batch batch = makeBatch({60, 0, 20}, 4);
  const Outputs before = runModel(executor.get(), batch);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(5); // a hang ends the child with a signal
    const Outputs found = runModel(executor.get(), batch);
    _exit(sameBits(found.hidden, before.hidden) && sameBits(found.pooled, before.pooled) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(sameBits(runModel(executor.get(), batch).hidden, before.hidden)); // the parent is unaffected
}

TEST_F(PoolTest, ForkDuringARunLeavesAUsableChildThatCanDestroyAll) {
  if (kThreadSanitized)
    GTEST_SKIP() << "ThreadSanitizer does not follow a fork of a process with threads";
  PoolPtr pool = makePool(2);
  ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
  const Batch batch = makeBatch({130, 60}, 4);
  const Outputs expected = reference(batch);
  std::atomic<bool> stop{false};
  std::thread runner([&] {
    const batten_batch_t view = batch.view();
    while (!stop)
      (void)batten_run(executor.get(), &view, nullptr, 0, nullptr, nullptr);
  });
  int failures = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      // No allocation here: another thread of the parent may have held the allocator's lock.
      static float copy[2 * kWidth];
      batten_output_view_t output = {};
      output.copyTo = copy, output.copyBytes = sizeof copy;
      const batten_batch_t view = batch.view();
      const batten_status_t status = batten_run(executor.get(), &view, &output, 1, nullptr, nullptr);
      const bool right = status == BATTEN_OK && std::memcmp(copy, expected.pooled.data(), sizeof copy) == 0;
      batten_executor_destroy(executor.release());
      batten_pool_release(pool.release());
      _exit(right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failures += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  stop = true;
  runner.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(PoolTest, WorkersBlockEverySignal) {
  const PoolPtr pool = makePool(3);
  int workers = 0;
  DIR *tasks = opendir("/proc/self/task");
  ASSERT_TRUE(tasks);
  while (const dirent *entry = readdir(tasks)) {
    const std::string path = std::string("/proc/self/task/") + entry->d_name;
    std::string name, line;
    std::ifstream(path + "/comm") >> name;
    if (name != "batten")
      continue;
    ++workers;
    std::ifstream status(path + "/status");
    while (std::getline(status, line))
      if (line.starts_with("SigBlk:")) {
        const uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
        for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM, SIGPIPE, SIGPROF})
          EXPECT_TRUE(blocked >> (signal - 1) & 1) << signal;
      }
  }
  closedir(tasks);
  EXPECT_EQ(workers, 2);
}

double processCpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST_F(PoolTest, IdlePoolUsesNoCpu) {
  const PoolPtr pool = makePool(4, 100);
  const ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
  (void)runModel(executor.get(), makeBatch({20}, 1));
  const timespec wait = {0, 20000000}, observed = {0, 300000000};
  nanosleep(&wait, nullptr); // the workers' spin ends
  const double before = processCpuSeconds();
  nanosleep(&observed, nullptr);
  EXPECT_LT(processCpuSeconds() - before, 0.015);
}

TEST(PoolOptionsTest, CountsAndBounds) {
  EXPECT_EQ(batten_pool_threads(makePool(1).get()), 1u);
  EXPECT_EQ(batten_pool_threads(makePool(5).get()), 5u);
  EXPECT_EQ(batten_pool_threads(nullptr), 1u);
  const PoolPtr pool = makePool(0);
  EXPECT_EQ(batten_pool_threads(pool.get()), batten_default_threads());
  batten_pool_t *none = nullptr;
  batten_error_t error;
  batten_pool_options_t options = BATTEN_POOL_OPTIONS_INIT;
  options.threads = 1025;
  EXPECT_EQ(batten_pool_create(&options, &none, &error), BATTEN_BAD_ARGUMENT);
  EXPECT_EQ(error.limit, 1024u);
  options.threads = 2, options.spinMicroseconds = 2000000;
  EXPECT_EQ(batten_pool_create(&options, &none, &error), BATTEN_BAD_ARGUMENT);
  options.structBytes = 4;
  EXPECT_EQ(batten_pool_create(&options, &none, &error), BATTEN_BAD_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  batten_pool_release(nullptr);
}

TEST(PoolOptionsTest, MadeAndReleasedOftenLeavesNoThreads) {
  for (int i = 0; i < 50; ++i)
    (void)makePool(4);
  int tasks = 0;
  DIR *directory = opendir("/proc/self/task");
  ASSERT_TRUE(directory);
  while (const dirent *entry = readdir(directory)) {
    std::string name;
    std::ifstream(std::string("/proc/self/task/") + entry->d_name + "/comm") >> name;
    tasks += name == "batten";
  }
  closedir(directory);
  EXPECT_EQ(tasks, 0);
}

} // namespace
} // namespace batten::test
