// A safetensors file: its header checked wholly before anything else, its tensors read by offset.
//
//   bytes 0..7     N, the header's length, little endian
//   8..8+N         JSON: {"name": {"dtype", "shape", "data_offsets": [begin, end)}, .., "__metadata__": {string: string}}
//   8+N..          data: every byte belongs to exactly one tensor; no alignment of any kind
//
// Every dtype of the format is understood as far as its size; which ones can be used is the caller's matter.
#ifndef BATTEN_COMPILER_SPEC_SAFETENSORS_H
#define BATTEN_COMPILER_SPEC_SAFETENSORS_H

#include "compiler/spec/InputFile.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace batten {

/// Most bytes of a header. The format's own bound is 100 MB; this one is some 100,000 tensors.
inline constexpr uint64_t kMostHeaderBytes = 16u << 20;

/// A tensor as the header states it.
struct StoredTensor {
  std::string name;
  std::string dtype; ///< as spelled: "F32", "BF16", "I64", ..
  std::vector<int64_t> shape;
  int64_t elements = 0;
  uint64_t offset = 0; ///< in the file
  uint64_t bytes = 0;
};

class SafetensorsFile {
public:
  /// Opens a file and checks its header against its size.
  ///
  /// Errors, each with the path, tensor names and numbers: a file that is too short for its header, a header beyond
  /// kMostHeaderBytes, anything parseJson refuses, an entry that is not of the form above, an unknown dtype, a size that
  /// overflows or differs from shape times element, data that overlaps, leaves a gap or ends before or after the file does.
  static llvm::Expected<SafetensorsFile> open(llvm::StringRef path);

  const std::string &path() const { return file.path(); }
  /// All tensors, by name.
  const std::vector<StoredTensor> &tensors() const { return entries; }
  const std::map<std::string, std::string> &metadata() const { return strings; }
  /// Nothing where there is no such tensor.
  const StoredTensor *find(llvm::StringRef name) const;

  /// Reads bytes [begin, begin + count) of a tensor of this file; within its bounds. Errors: the read fails.
  llvm::Error read(const StoredTensor &tensor, uint64_t begin, uint64_t count, uint8_t *out) const;

private:
  explicit SafetensorsFile(InputFile file) : file(std::move(file)) {}
  llvm::Error parseHeader();
  llvm::Error checkCoverage(uint64_t dataBytes, uint64_t headerBytes) const;

  InputFile file;
  std::vector<StoredTensor> entries;
  std::map<std::string, std::string> strings;
};

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_SAFETENSORS_H
