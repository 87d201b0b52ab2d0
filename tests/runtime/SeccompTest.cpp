// What a run may ask of the system: nothing on one thread (seccomp strict, which kills for any call but read, write and
// exit), futex alone on several (a filter that kills for any other, on every thread). Each run is a child process.
#include "TestModel.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace batten::test {
namespace {

constexpr int kRight = 0, kWrong = 1, kNoSeccomp = 77;

/// Ends the calling thread's process as strict mode allows it.
[[noreturn]] void leave(int code) {
  syscall(SYS_exit, code);
  __builtin_unreachable();
}

/// Everything that is needed is made before the door closes.
struct Prepared {
  explicit Prepared(uint32_t threads) : blobs(serialize(modelSpec())), bundle(openBlobs(blobs)) {
    pool = makePool(threads, 30);
    executor = makeExecutor(bundle.get(), pool.get());
    for (const std::vector<uint32_t> &lengths : {std::vector<uint32_t>{5, 0, 3}, {150, 30}, {}, {20}}) {
      batches.push_back(makeBatch(lengths, 3));
      expected.push_back(reference(batches.back()));
    }
    for (const Batch &batch : batches)
      views.push_back(batch.view());
    pooled.resize(64 * kWidth);
  }
  /// Some hundred runs of all batches; true where every answer is right. No call that isn't the runtime's.
  bool run() {
    bool right = true;
    for (int round = 0; round < 100; ++round)
      for (size_t i = 0; i < views.size(); ++i) {
        batten_output_view_t output = {};
        output.copyTo = pooled.data(), output.copyBytes = pooled.size() * 4;
        batten_error_t error;
        right &= batten_run(executor.get(), &views[i], &output, 1, nullptr, &error) == BATTEN_OK;
        for (size_t k = 0; k < expected[i].pooled.size(); ++k)
          right &= pooled[k] == expected[i].pooled[k];
        // Longer than a worker spins: it sleeps, and is woken.
        for (int wait = 0; round % 20 == 0 && wait < 300000; ++wait)
          __asm__ volatile("");
      }
    batten_batch_t bad = views[0];
    bad.tokenCount += 1;
    batten_error_t error;
    return right & (batten_run(executor.get(), &bad, nullptr, 0, nullptr, &error) == BATTEN_BAD_BATCH);
  }

  Blobs blobs;
  BundlePtr bundle;
  PoolPtr pool;
  ExecutorPtr executor;
  std::vector<Batch> batches;
  std::vector<Outputs> expected;
  std::vector<batten_batch_t> views;
  std::vector<float> pooled;
};

void expectRight(const std::function<void()> &child) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    alarm(60);
    child();
    leave(kWrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSeccomp)
    GTEST_SKIP() << "this system has no seccomp";
  ASSERT_FALSE(WIFSIGNALED(status)) << "killed by signal " << WTERMSIG(status) << ": a run made a system call";
  EXPECT_EQ(WEXITSTATUS(status), kRight);
}

TEST(SeccompTest, OneThreadMakesNoSystemCall) {
  expectRight([] {
    Prepared prepared(1);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
      leave(kNoSeccomp);
    leave(prepared.run() ? kRight : kWrong);
  });
}

TEST(SeccompTest, StrictModeKillsForOtherCalls) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
      leave(kNoSeccomp);
    syscall(SYS_getpid);
    leave(kWrong);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSeccomp)
    GTEST_SKIP() << "this system has no seccomp";
  EXPECT_TRUE(WIFSIGNALED(status)); // else the tests here show nothing
}

#if defined(__x86_64__)
constexpr uint32_t kAuditArch = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kAuditArch = AUDIT_ARCH_AARCH64;
#endif

/// futex and the end of a thread or process; everything else kills the process. For all threads of the process.
bool allowFutexOnly() {
  const uint32_t allowed[] = {SYS_futex, SYS_exit, SYS_exit_group};
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAuditArch, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[0], 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[1], 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[2], 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof code / sizeof code[0], code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

TEST(SeccompTest, SeveralThreadsUseFutexOnly) {
  for (const uint32_t threads : {2u, 4u})
    expectRight([threads] {
      Prepared prepared(threads);
      if (!allowFutexOnly())
        leave(kNoSeccomp);
      const bool right = prepared.run();
      syscall(SYS_exit_group, right ? kRight : kWrong);
    });
}

TEST(SeccompTest, FilterKillsForOtherCalls) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    if (!allowFutexOnly())
      leave(kNoSeccomp);
    syscall(SYS_getpid);
    syscall(SYS_exit_group, kWrong);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSeccomp)
    GTEST_SKIP() << "this system has no seccomp";
  EXPECT_TRUE(WIFSIGNALED(status));
}

} // namespace
} // namespace batten::test
