// Every call to the operating system: files below a bundle's directory, mappings, sealed images, futex, threads, CPUs and
// quotas, the clock. Linux only. Nothing here knows the format of a bundle.
#ifndef BATTEN_RT_OSLINUX_H
#define BATTEN_RT_OSLINUX_H

#include "Report.h"
#include "Sha256.h"

#include <atomic>

namespace batten::rt::os {

/// An open file or directory; closed with the object.
class Fd {
public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(const Fd &) = delete;
  Fd &operator=(const Fd &) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool isOpen() const noexcept { return fd_ >= 0; }
  void reset(int fd = -1) noexcept;

private:
  int fd_ = -1;
};

/// A range of pages; unmapped with the object.
class Mapping {
public:
  Mapping() = default;
  ~Mapping() { reset(); }
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  [[nodiscard]] u8 *data() const noexcept { return data_; }
  /// Bytes of the range, whole pages.
  [[nodiscard]] u64 bytes() const noexcept { return bytes_; }
  void reset(void *data = nullptr, u64 bytes = 0) noexcept;

private:
  u8 *data_ = nullptr;
  u64 bytes_ = 0;
};

[[nodiscard]] u64 pageBytes() noexcept;

/// Opens the directory of a bundle. path itself may be a symbolic link (that is how a bundle is replaced atomically).
/// Errors: IO where it can't be opened; CORRUPT where group or others may write it and that isn't allowed.
[[nodiscard]] Status openDirectory(const char *path, bool allowWritableByOthers, Fd &directory,
                                   const Report &report) noexcept;

/// True where path names another directory than the one that is open.
[[nodiscard]] bool isReplaced(const char *path, const Fd &directory) noexcept;

/// Opens files below a directory, component by component, never through a symbolic link, and remembers the last folder.
class Opener {
public:
  Opener(int directory, bool allowWritableByOthers) noexcept : root_(directory), allow_(allowWritableByOthers) {}
  /// path is relative: names joined by '/', none of them "." or "..". *bytes is the file's size.
  /// Errors: IO; CORRUPT for a symbolic link, something that is no regular file, or what group or others may write.
  [[nodiscard]] Status open(Text path, Fd &file, u64 *bytes, const Report &report) noexcept;

private:
  [[nodiscard]] Status enter(Text folder, const Report &report) noexcept;

  int root_;
  bool allow_;
  Fd folder_;
  char folderPath_[256] = {};
  u32 folderPathBytes_ = 0;
};

/// Reads exactly [offset, offset + bytes). Errors: IO, also where the file ends before.
[[nodiscard]] Status readAt(const Fd &file, void *data, u64 bytes, u64 offset, const Report &report) noexcept;
/// Maps a file for reading, without faulting pages in: a plan reads each weight page once, in order, and populating the
/// whole pack first costs more than the faults of fault-around (measured), most of all where a plan uses part of it.
[[nodiscard]] Status mapFile(const Fd &file, u64 bytes, Mapping &mapping, const Report &report) noexcept;
/// Zeroed memory, every page touched. Large blocks ask for huge pages; a refusal doesn't matter.
[[nodiscard]] Status mapMemory(u64 bytes, Mapping &mapping, const Report &report) noexcept;
/// One page that reads as zeros in a forked child. False where the kernel can't do that.
[[nodiscard]] bool mapForkPage(Mapping &mapping) noexcept;

/// A sealed memory file that is being filled. Not open where the system denies it.
[[nodiscard]] bool createMemoryFile(Fd &file) noexcept;
[[nodiscard]] Status writeAll(const Fd &file, const void *data, u64 bytes, const Report &report) noexcept;
[[nodiscard]] bool seal(const Fd &file) noexcept;
/// Maps [offset, offset + bytes) read and execute, never writable. False, with *osError, where that is denied.
[[nodiscard]] bool mapCode(const Fd &file, u64 offset, u64 bytes, Mapping &mapping, int *osError) noexcept;

/// Bytes of a range that this process has in memory (what counts in its resident size).
[[nodiscard]] u64 residentBytes(const void *data, u64 bytes) noexcept;
/// Faults a readable range in.
void populate(const void *data, u64 bytes) noexcept;

/// Sleeps while *word holds value; may return early.
void futexWait(std::atomic<u32> *word, u32 value) noexcept;
void futexWakeAll(std::atomic<u32> *word) noexcept;

/// A worker thread. It blocks every signal.
class Thread {
public:
  /// False, with *osError, where no thread can be had.
  [[nodiscard]] bool start(void (*body)(void *), void *argument, int *osError) noexcept;
  void join() noexcept;

private:
  void (*body_)(void *) = nullptr;
  void *argument_ = nullptr;
  unsigned long handle_ = 0;
  static void *enter(void *self) noexcept;
};

[[nodiscard]] u64 processId() noexcept;
/// CPUs of the calling thread's affinity mask, at least 1.
[[nodiscard]] u32 allowedCpus() noexcept;
/// ceil of the smallest CPU quota of the process's cgroups (v1 and v2), 0 where there is none. root is put before /proc and
/// /sys: "" for the real ones.
[[nodiscard]] u32 quotaCpus(const char *root) noexcept;
/// min(allowed, quota), at least 1; quota 0 means none.
[[nodiscard]] u32 defaultThreads(u32 allowed, u32 quota) noexcept;
/// Monotonic clock.
[[nodiscard]] u64 nanoseconds() noexcept;

} // namespace batten::rt::os

#endif // BATTEN_RT_OSLINUX_H
