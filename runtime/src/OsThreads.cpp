// See OsLinux.h: threads, futex, CPUs and quotas, the clock.
#include "OsLinux.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace batten::rt::os {
namespace {

// Kernels stay below 4 KB; the rest is for sanitizers and libc's own use.
constexpr size_t kStackBytes = 512 * 1024;
// Longest /proc/self/cgroup and quota path that are read; longer ones count as "no quota".
constexpr size_t kCgroupBytes = 8192, kPathBytes = 1024;

bool readSmallFile(const char *path, char *text, size_t size) noexcept {
  Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file.isOpen())
    return false;
  size_t used = 0;
  for (ssize_t got; used < size - 1 && (got = ::read(file.get(), text + used, size - 1 - used)) > 0;)
    used += static_cast<size_t>(got);
  text[used] = '\0';
  return used > 0;
}

// An unsigned number at *at, which then stands behind it; false where there is none or it doesn't fit.
bool parseNumber(const char **at, u64 *value) noexcept {
  const char *p = *at;
  while (*p == ' ')
    ++p;
  if (*p < '0' || *p > '9')
    return false;
  for (*value = 0; *p >= '0' && *p <= '9'; ++p)
    if (!checkedMul(*value, 10, value) || !checkedAdd(*value, static_cast<u64>(*p - '0'), value))
      return false;
  *at = p;
  return true;
}

u32 ceilQuota(u64 quota, u64 period) noexcept {
  u64 cpus = period ? ceilDiv(quota, period) : 0;
  return cpus == 0 ? 0 : cpus > 65536 ? 65536 : static_cast<u32>(cpus);
}

// Quota of one cgroup directory, 0 where it has none. v2: cpu.max "quota period"; v1: two files, quota -1 is none.
u32 groupQuota(const char *directory, bool v2) noexcept {
  char path[kPathBytes + 32], text[128];
  u64 quota = 0, period = 0;
  std::snprintf(path, sizeof path, "%s/%s", directory, v2 ? "cpu.max" : "cpu.cfs_quota_us");
  const char *at = text;
  if (!readSmallFile(path, text, sizeof text) || !parseNumber(&at, &quota))
    return 0;
  if (!v2) {
    std::snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
    at = text;
    if (!readSmallFile(path, text, sizeof text))
      return 0;
  }
  return parseNumber(&at, &period) ? ceilQuota(quota, period) : 0;
}

u32 smaller(u32 a, u32 b) noexcept { return a == 0 ? b : b == 0 ? a : a < b ? a : b; }

// Smallest quota from the group up to its hierarchy's root: a parent's quota binds its children.
u32 hierarchyQuota(const char *mount, Text group, bool v2) noexcept {
  char path[kPathBytes];
  int mountBytes = std::snprintf(path, sizeof path, "%s", mount);
  if (mountBytes < 0 || static_cast<size_t>(mountBytes) + group.bytes >= sizeof path)
    return 0;
  std::memcpy(path + mountBytes, group.data, group.bytes);
  size_t bytes = static_cast<size_t>(mountBytes) + group.bytes;
  path[bytes] = '\0';
  u32 quota = 0;
  for (;;) {
    quota = smaller(quota, groupQuota(path, v2));
    if (bytes <= static_cast<size_t>(mountBytes))
      return quota;
    while (bytes > static_cast<size_t>(mountBytes) && path[bytes - 1] != '/')
      --bytes;
    if (bytes > static_cast<size_t>(mountBytes))
      --bytes;
    path[bytes] = '\0';
  }
}

bool listHas(Text list, const char *name) noexcept {
  for (u32 begin = 0; begin <= list.bytes;) {
    u32 end = begin;
    while (end < list.bytes && list.data[end] != ',')
      ++end;
    if (textOf(name).equals({list.data + begin, end - begin}))
      return true;
    begin = end + 1;
  }
  return false;
}

} // namespace

void futexWait(std::atomic<u32> *word, u32 value) noexcept {
  (void)::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futexWakeAll(std::atomic<u32> *word) noexcept {
  (void)::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void *Thread::enter(void *self) noexcept {
  Thread *thread = static_cast<Thread *>(self);
  thread->body_(thread->argument_);
  return nullptr;
}

bool Thread::start(void (*body)(void *), void *argument, int *osError) noexcept {
  static_assert(sizeof(pthread_t) == sizeof handle_);
  body_ = body;
  argument_ = argument;
  pthread_attr_t attributes;
  sigset_t all, before;
  pthread_t handle;
  if ((*osError = ::pthread_attr_init(&attributes)) != 0)
    return false;
  (void)::pthread_attr_setstacksize(&attributes, kStackBytes); // too small for the system: its default then
  ::sigfillset(&all);
  // A new thread inherits the mask: no signal reaches a worker even for a moment.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  *osError = ::pthread_create(&handle, &attributes, enter, this);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (*osError != 0)
    return false;
  std::memcpy(&handle_, &handle, sizeof handle_);
  (void)::pthread_setname_np(handle, "batten");
  return true;
}

void Thread::join() noexcept {
  pthread_t handle;
  std::memcpy(&handle, &handle_, sizeof handle);
  (void)::pthread_join(handle, nullptr);
}

u64 processId() noexcept { return static_cast<u64>(::getpid()); }

u32 allowedCpus() noexcept {
  // The kernel's mask may be larger than cpu_set_t: ask with growing sizes.
  for (int cpus = 1024; cpus <= 65536; cpus *= 4) {
    cpu_set_t *set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (!set)
      return 1;
    size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    int count = ::sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : -1;
    CPU_FREE(set);
    if (count > 0)
      return static_cast<u32>(count);
    if (errno != EINVAL)
      return 1;
  }
  return 1;
}

u32 quotaCpus(const char *root) noexcept {
  char path[kPathBytes], mount[kPathBytes], text[kCgroupBytes];
  std::snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (!readSmallFile(path, text, sizeof text))
    return 0;
  u32 quota = 0;
  for (const char *line = text; *line;) {
    const char *end = line;
    while (*end && *end != '\n')
      ++end;
    // "hierarchy:controllers:group"; no controllers: v2
    const char *first = line;
    while (first < end && *first != ':')
      ++first;
    const char *second = first < end ? first + 1 : end;
    while (second < end && *second != ':')
      ++second;
    if (second < end) {
      Text controllers{first + 1, static_cast<u32>(second - first - 1)};
      Text group{second + 1, static_cast<u32>(end - second - 1)};
      if (group.bytes == 1) // "/"
        group.bytes = 0;
      if (controllers.bytes == 0) {
        for (const char *where : {"", "/unified"}) {
          std::snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, where);
          quota = smaller(quota, hierarchyQuota(mount, group, true));
        }
      } else if (listHas(controllers, "cpu")) {
        for (const char *where : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
          std::snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, where);
          quota = smaller(quota, hierarchyQuota(mount, group, false));
        }
      }
    }
    line = *end ? end + 1 : end;
  }
  return quota;
}

u32 defaultThreads(u32 allowed, u32 quota) noexcept {
  u32 threads = smaller(allowed, quota);
  return threads ? threads : 1;
}

u64 nanoseconds() noexcept {
  struct timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<u64>(now.tv_sec) * 1000000000u + static_cast<u64>(now.tv_nsec);
}

} // namespace batten::rt::os
