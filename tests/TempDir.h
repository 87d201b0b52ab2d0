// A directory of a test's own, removed with all that is in it. Plain C++: shared by all test rooms.
#ifndef BATTEN_TESTS_TEMPDIR_H
#define BATTEN_TESTS_TEMPDIR_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace batten::test {

class TempDir {
public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "batten-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      std::abort();
    root = pattern;
  }
  TempDir(const TempDir &) = delete;
  TempDir &operator=(const TempDir &) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }

  std::string path(std::string_view name = "") const { return name.empty() ? root : root + "/" + std::string(name); }
  /// Writes a file below the directory, making folders on the way; gives its path.
  std::string write(std::string_view name, std::string_view bytes) const {
    std::filesystem::path file = path(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return file.string();
  }

private:
  std::string root;
};

inline std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// The last line of an error text, which must hold the first cause.
inline std::string lastLine(const std::string &text) {
  size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

} // namespace batten::test

#endif // BATTEN_TESTS_TEMPDIR_H
