// Reading a file whole or in parts, and replacing one atomically. Errors name the path and the system's reason.
#ifndef BATTEN_TOOLS_COMMON_FILES_H
#define BATTEN_TOOLS_COMMON_FILES_H

#include <cstdint>
#include <string>
#include <string_view>

namespace batten::tools {

/// A regular file opened for reading.
class InputFile {
public:
  /// Errors: Failure where it can't be opened or isn't a regular file.
  explicit InputFile(const std::string &path);
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  uint64_t bytes() const { return fileBytes; }
  const std::string &path() const { return filePath; }
  /// Fills data with [offset, offset + count). Errors: Failure, also where the file ends earlier.
  void read(uint64_t offset, void *data, size_t count) const;

private:
  std::string filePath;
  int fd;
  uint64_t fileBytes;
};

/// A file that appears at its path whole or not at all: written beside it, then renamed over it. A path that is a
/// device or a pipe is written directly; a link is followed.
class OutputFile {
public:
  /// Errors: Failure where the folder can't be written or path is a folder.
  explicit OutputFile(const std::string &path);
  ~OutputFile(); ///< without commit, leaves what was there
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void write(std::string_view data);
  void commit();

private:
  std::string givenPath, finalPath, tempPath; ///< tempPath is "" where written directly
  int fd = -1;
};

/// The folder that this program's binary is in, without a final slash.
std::string programFolder();

} // namespace batten::tools

#endif // BATTEN_TOOLS_COMMON_FILES_H
