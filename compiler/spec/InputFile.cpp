// Reading by offset with pread; see the header.
#include "compiler/spec/InputFile.h"
#include "compiler/spec/Text.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace batten {

llvm::Expected<InputFile> InputFile::open(llvm::StringRef path) {
  std::string name = path.str();
  if (name.size() != std::strlen(name.c_str()))
    return makeError(quoted(path) + ": a path can't hold a zero byte");
  int fd;
  do
    fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe without a writer must not hang
  while (fd < 0 && errno == EINTR);
  if (fd < 0)
    return makeError(name + ": cannot open: " + std::strerror(errno));
  InputFile file(name, fd, 0);
  struct stat info;
  if (::fstat(fd, &info) != 0)
    return makeError(name + ": cannot read its size: " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return makeError(name + ": " + (S_ISDIR(info.st_mode) ? "a directory" : "not a regular file") + ", a file wanted");
  file.byteCount = static_cast<uint64_t>(info.st_size);
  return file;
}

InputFile::~InputFile() {
  if (fd >= 0)
    ::close(fd);
}

llvm::Error InputFile::read(uint64_t offset, uint64_t bytes, uint8_t *out) const {
  constexpr uint64_t kMostRead = 1u << 30;
  uint64_t done = 0;
  while (done < bytes) {
    ssize_t got = ::pread(fd, out + done, std::min(bytes - done, kMostRead), static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return makeError(filePath + ": cannot read " + llvm::Twine(bytes) + " bytes at " + llvm::Twine(offset) + ": " +
                       std::strerror(errno));
    if (got == 0)
      return makeError(filePath + ": " + llvm::Twine(bytes) + " bytes wanted at " + llvm::Twine(offset) + ", " +
                       llvm::Twine(done) + " found: the file has shrunk since it was opened");
    done += static_cast<uint64_t>(got);
  }
  return llvm::Error::success();
}

llvm::Expected<std::string> readTextFile(llvm::StringRef path, uint64_t mostBytes) {
  llvm::Expected<InputFile> file = InputFile::open(path);
  if (!file)
    return file.takeError();
  if (file->size() > mostBytes)
    return makeError(path + ": " + llvm::Twine(file->size()) + " bytes, at most " + llvm::Twine(mostBytes) +
                     " are read");
  std::string text(file->size(), '\0');
  if (llvm::Error error = file->read(0, text.size(), reinterpret_cast<uint8_t *>(text.data())))
    return std::move(error);
  return text;
}

bool pathExists(llvm::StringRef path) {
  struct stat info;
  return ::stat(path.str().c_str(), &info) == 0;
}

} // namespace batten
