// A regular file opened for reading by offset. Not mapped: a file that shrinks while it is read gives an error instead of
// a signal, and what was read is not counted as resident memory twice. Symbolic links are followed (hub caches are made
// of them); directories, pipes and devices are refused.
#ifndef BATTEN_COMPILER_SPEC_INPUTFILE_H
#define BATTEN_COMPILER_SPEC_INPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace batten {

class InputFile {
public:
  /// Errors: the file does not open, or is not a regular file; the text names the path and the reason.
  static llvm::Expected<InputFile> open(llvm::StringRef path);

  InputFile(InputFile &&other) noexcept
      : filePath(std::move(other.filePath)), fd(other.fd), byteCount(other.byteCount) {
    other.fd = -1;
  }
  InputFile &operator=(InputFile &&other) = delete;
  InputFile(const InputFile &) = delete;
  ~InputFile();

  const std::string &path() const { return filePath; }
  uint64_t size() const { return byteCount; }

  /// Reads exactly `bytes` bytes at offset. Errors: read failure, or fewer bytes left, with path, offset and numbers.
  llvm::Error read(uint64_t offset, uint64_t bytes, uint8_t *out) const;

private:
  InputFile(std::string path, int fd, uint64_t bytes) : filePath(std::move(path)), fd(fd), byteCount(bytes) {}

  std::string filePath;
  int fd = -1;
  uint64_t byteCount = 0;
};

/// A whole small file. Errors: as open and read; larger than mostBytes.
llvm::Expected<std::string> readTextFile(llvm::StringRef path, uint64_t mostBytes);

/// True where path names something, of whatever kind.
bool pathExists(llvm::StringRef path);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_INPUTFILE_H
