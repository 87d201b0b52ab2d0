// See OsLinux.h. Files, mappings and residency; threads, futex and quotas are in OsThreads.cpp.
#include "OsLinux.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace batten::rt::os {
namespace {

constexpr u64 kHugePageBytes = u64{2} << 20;

// The mode bits that make a file or directory somebody else's to change.
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

int openRetrying(int directory, const char *name, int flags) noexcept {
  int fd;
  do
    fd = ::openat(directory, name, flags | O_RDONLY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  return fd;
}

Status checkMode(const struct stat &info, bool allowWritableByOthers, const Report &report) noexcept {
  if ((info.st_mode & kWritableByOthers) == 0 || allowWritableByOthers)
    return BATTEN_OK;
  return report.fail(BATTEN_CORRUPT, "", 0, info.st_mode & 0777, info.st_mode & 0777 & ~kWritableByOthers,
                     "mode %o lets group or others write; chmod go-w it, or allow it in the options",
                     static_cast<unsigned>(info.st_mode & 0777));
}

// A link where none may be is an unsafe bundle, not a failed read.
Status failOpen(int osError, const Report &report) noexcept {
  return report.failOs(osError == ELOOP ? BATTEN_CORRUPT : BATTEN_IO, osError, "open");
}

} // namespace

void Fd::reset(int fd) noexcept {
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = fd;
}

void Mapping::reset(void *data, u64 bytes) noexcept {
  if (data_)
    ::munmap(data_, bytes_);
  data_ = static_cast<u8 *>(data);
  bytes_ = bytes;
}

u64 pageBytes() noexcept { return static_cast<u64>(::sysconf(_SC_PAGESIZE)); }

Status openDirectory(const char *path, bool allowWritableByOthers, Fd &directory, const Report &report) noexcept {
  directory.reset(openRetrying(AT_FDCWD, path, O_DIRECTORY));
  struct stat info;
  if (!directory.isOpen())
    return report.failOs(BATTEN_IO, errno, "open");
  if (::fstat(directory.get(), &info) != 0)
    return report.failOs(BATTEN_IO, errno, "stat");
  return checkMode(info, allowWritableByOthers, report);
}

bool isReplaced(const char *path, const Fd &directory) noexcept {
  struct stat now, opened;
  return directory.isOpen() && ::stat(path, &now) == 0 && ::fstat(directory.get(), &opened) == 0 &&
         (now.st_ino != opened.st_ino || now.st_dev != opened.st_dev);
}

Status Opener::enter(Text folder, const Report &report) noexcept {
  if (folder_.isOpen() && folder.equals({folderPath_, folderPathBytes_}))
    return BATTEN_OK;
  folder_.reset();
  if (folder.bytes >= sizeof folderPath_)
    return report.failOs(BATTEN_IO, ENAMETOOLONG, "open");
  Fd current;
  for (u32 begin = 0; begin < folder.bytes;) {
    u32 end = begin;
    while (end < folder.bytes && folder.data[end] != '/')
      ++end;
    char name[256];
    copyText(name, sizeof name, {folder.data + begin, end - begin});
    int parent = current.isOpen() ? current.get() : root_;
    int fd = openRetrying(parent, name, O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0) {
      // A link to a directory fails as "not a directory" under O_NOFOLLOW: tell the two apart.
      struct stat info;
      int osError = errno;
      bool isLink =
          osError == ENOTDIR && ::fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
      return failOpen(isLink ? ELOOP : osError, report);
    }
    current.reset(fd);
    struct stat info;
    if (::fstat(fd, &info) != 0)
      return report.failOs(BATTEN_IO, errno, "stat");
    BATTEN_TRY(checkMode(info, allow_, report));
    begin = end + 1;
  }
  folder_.reset(current.isOpen() ? ::fcntl(current.get(), F_DUPFD_CLOEXEC, 0) : ::fcntl(root_, F_DUPFD_CLOEXEC, 0));
  if (!folder_.isOpen())
    return report.failOs(BATTEN_IO, errno, "open");
  std::memcpy(folderPath_, folder.data, folder.bytes);
  folderPathBytes_ = folder.bytes;
  return BATTEN_OK;
}

Status Opener::open(Text path, Fd &file, u64 *bytes, const Report &report) noexcept {
  u32 slash = path.bytes;
  while (slash > 0 && path.data[slash - 1] != '/')
    --slash;
  BATTEN_TRY(enter({path.data, slash ? slash - 1 : 0}, report));
  char name[256];
  copyText(name, sizeof name, {path.data + slash, path.bytes - slash});
  // O_NONBLOCK: a FIFO in a file's place must not hang the open.
  file.reset(openRetrying(folder_.get(), name, O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (!file.isOpen())
    return failOpen(errno, report);
  if (::fstat(file.get(), &info) != 0)
    return report.failOs(BATTEN_IO, errno, "stat");
  if (!S_ISREG(info.st_mode))
    return report.fail(BATTEN_CORRUPT, "", 0, 0, 0, "not a regular file");
  BATTEN_TRY(checkMode(info, allow_, report));
  *bytes = static_cast<u64>(info.st_size);
  return BATTEN_OK;
}

Status readAt(const Fd &file, void *data, u64 bytes, u64 offset, const Report &report) noexcept {
  u8 *at = static_cast<u8 *>(data);
  while (bytes > 0) {
    ssize_t got = ::pread(file.get(), at, bytes < (u64{1} << 30) ? bytes : u64{1} << 30, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return report.failOs(BATTEN_IO, errno, "read");
    if (got == 0)
      return report.fail(BATTEN_IO, "", offset, offset, offset + bytes,
                         "ends at byte %llu, %llu more were there at open", static_cast<unsigned long long>(offset),
                         static_cast<unsigned long long>(bytes));
    at += got, offset += static_cast<u64>(got), bytes -= static_cast<u64>(got);
  }
  return BATTEN_OK;
}

Status mapFile(const Fd &file, u64 bytes, Mapping &mapping, const Report &report) noexcept {
  void *data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED)
    return report.failOs(errno == ENOMEM ? BATTEN_OUT_OF_MEMORY : BATTEN_IO, errno, "map");
  mapping.reset(data, roundUp(bytes, pageBytes()));
  return BATTEN_OK;
}

Status mapMemory(u64 bytes, Mapping &mapping, const Report &report) noexcept {
  const u64 page = pageBytes();
  if (bytes > u64{1} << 47)
    return report.outOfMemory(bytes);
  bytes = roundUp(bytes ? bytes : 1, page);
  // The kernel's overcommit would let a size through that kills the process at the touch: ask for the memory in earnest.
  void *data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return report.outOfMemory(bytes);
  mapping.reset(data, bytes);
  if (bytes >= kHugePageBytes)
    (void)::madvise(data, bytes, MADV_HUGEPAGE);
  for (u64 at = 0; at < bytes; at += page)
    static_cast<volatile u8 *>(data)[at] = 0;
  return BATTEN_OK;
}

bool mapForkPage(Mapping &mapping) noexcept {
  const u64 page = pageBytes();
  void *data = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return false;
  mapping.reset(data, page);
  return ::madvise(data, page, MADV_WIPEONFORK) == 0;
}

bool createMemoryFile(Fd &file) noexcept {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  file.reset(::memfd_create("batten-image", kFlags | MFD_EXEC)); // kernels before 6.3 don't know MFD_EXEC
  if (!file.isOpen() && errno == EINVAL)
    file.reset(::memfd_create("batten-image", kFlags));
  return file.isOpen();
}

Status writeAll(const Fd &file, const void *data, u64 bytes, const Report &report) noexcept {
  for (const u8 *at = static_cast<const u8 *>(data); bytes > 0;) {
    ssize_t written = ::write(file.get(), at, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return errno == ENOSPC || errno == ENOMEM ? report.outOfMemory(bytes) : report.failOs(BATTEN_IO, errno, "write");
    at += written, bytes -= static_cast<u64>(written);
  }
  return BATTEN_OK;
}

bool seal(const Fd &file) noexcept {
  return ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

bool mapCode(const Fd &file, u64 offset, u64 bytes, Mapping &mapping, int *osError) noexcept {
  void *data = ::mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), static_cast<off_t>(offset));
  if (data == MAP_FAILED) {
    *osError = errno;
    return false;
  }
  mapping.reset(data, roundUp(bytes, pageBytes()));
  return true;
}

u64 residentBytes(const void *data, u64 bytes) noexcept {
  if (!data || bytes == 0)
    return 0;
  const u64 page = pageBytes(), first = reinterpret_cast<u64>(data) / page;
  const u64 pages = ceilDiv(reinterpret_cast<u64>(data) + bytes, page) - first;
  u64 resident = 0, buffer[512];
  // pagemap tells this process's own pages; mincore would tell the page cache's, whoever filled it.
  Fd pagemap(openRetrying(AT_FDCWD, "/proc/self/pagemap", 0));
  for (u64 done = 0; done < pages;) {
    u64 chunk = pages - done < 512 ? pages - done : 512;
    ssize_t got =
        pagemap.isOpen() ? ::pread(pagemap.get(), buffer, chunk * 8, static_cast<off_t>((first + done) * 8)) : -1;
    if (got == static_cast<ssize_t>(chunk * 8)) {
      for (u64 i = 0; i < chunk; ++i)
        resident += buffer[i] >> 63;
    } else {
      u8 *cached = reinterpret_cast<u8 *>(buffer);
      if (::mincore(reinterpret_cast<void *>((first + done) * page), chunk * page, cached) == 0)
        for (u64 i = 0; i < chunk; ++i)
          resident += cached[i] & 1;
    }
    done += chunk;
  }
  return resident * page;
}

void populate(const void *data, u64 bytes) noexcept {
  const u64 page = pageBytes();
  const u64 begin = reinterpret_cast<u64>(data) / page * page, end = reinterpret_cast<u64>(data) + bytes;
  if (bytes == 0 || ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_POPULATE_READ) == 0)
    return;
  for (u64 at = reinterpret_cast<u64>(data); at < end; at = (at / page + 1) * page) // kernels before 5.14
    (void)*reinterpret_cast<const volatile u8 *>(at);
}

} // namespace batten::rt::os
