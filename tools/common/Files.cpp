// Files over the plain system calls.
#include "tools/common/Files.h"

#include "tools/common/Output.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace batten::tools {

namespace {

[[noreturn]] void failSystem(const std::string &path, const char *what, int error) {
  fail(path + ": cannot " + what + ": " + std::strerror(error));
}

} // namespace

InputFile::InputFile(const std::string &path)
    : filePath(path), fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd < 0)
    failSystem(path, "open", errno);
  struct stat status;
  int statError = ::fstat(fd, &status) != 0 ? errno : 0;
  if (statError == 0 && S_ISREG(status.st_mode)) {
    fileBytes = uint64_t(status.st_size);
    return;
  }
  ::close(fd); // no destructor runs after a throw from here
  if (statError != 0)
    failSystem(path, "read", statError);
  fail(path + ": not a regular file");
}

InputFile::~InputFile() { ::close(fd); }

void InputFile::read(uint64_t offset, void *data, size_t count) const {
  char *to = static_cast<char *>(data);
  while (count > 0) {
    ssize_t got = ::pread(fd, to, count, off_t(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      failSystem(filePath, "read", errno);
    if (got == 0)
      fail(filePath + ": ends at byte " + std::to_string(offset) + ", " + std::to_string(count) + " more wanted");
    to += got;
    offset += uint64_t(got);
    count -= size_t(got);
  }
}

OutputFile::OutputFile(const std::string &path) : givenPath(path), finalPath(path) {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode))
      fail(path + ": is a folder, not a file");
    if (!S_ISREG(status.st_mode)) {
      fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd < 0)
        failSystem(path, "open", errno);
      return;
    }
    if (char *real = ::realpath(path.c_str(), nullptr)) {
      finalPath = real;
      ::free(real);
    }
  }
  size_t slash = finalPath.rfind('/');
  std::string folder = slash == std::string::npos ? "" : finalPath.substr(0, slash + 1);
  tempPath = folder + ".batten-" + std::to_string(::getpid()) + "-XXXXXX";
  fd = ::mkostemp(tempPath.data(), O_CLOEXEC);
  if (fd < 0) {
    tempPath.clear();
    failSystem(path, "create", errno);
  }
  mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd, 0666 & ~mask);
}

OutputFile::~OutputFile() {
  if (fd >= 0)
    ::close(fd);
  if (!tempPath.empty())
    ::unlink(tempPath.c_str());
}

void OutputFile::write(std::string_view data) {
  while (!data.empty()) {
    ssize_t count = ::write(fd, data.data(), data.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      failSystem(givenPath, "write", errno);
    data.remove_prefix(size_t(count));
  }
}

void OutputFile::commit() {
  if (!tempPath.empty() && ::fsync(fd) != 0)
    failSystem(givenPath, "write", errno);
  int closed = ::close(fd);
  fd = -1;
  if (closed != 0)
    failSystem(givenPath, "write", errno);
  if (tempPath.empty())
    return;
  if (::rename(tempPath.c_str(), finalPath.c_str()) != 0)
    failSystem(givenPath, "replace", errno);
  tempPath.clear();
}

std::string programFolder() {
  std::vector<char> path(4096);
  ssize_t count = ::readlink("/proc/self/exe", path.data(), path.size());
  if (count <= 0 || size_t(count) == path.size())
    fail("cannot tell where this program lies: /proc/self/exe is unreadable");
  std::string text(path.data(), size_t(count));
  return text.substr(0, text.rfind('/'));
}

} // namespace batten::tools
