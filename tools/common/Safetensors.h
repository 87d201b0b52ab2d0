// A small reader and writer of safetensors files, for batches and outputs. Checks the whole header before it reads a
// tensor. Does not map files and does not read checkpoints: the compiler has its own reader.
#ifndef BATTEN_TOOLS_COMMON_SAFETENSORS_H
#define BATTEN_TOOLS_COMMON_SAFETENSORS_H

#include "tools/common/Files.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace batten::tools {

/// A tensor of a file. begin and end are file offsets.
struct StoredTensor {
  std::string name, dtype;
  std::vector<uint64_t> shape;
  uint64_t begin, end;
};

class SafetensorsReader {
public:
  /// Reads and checks the header.
  ///
  /// Errors: Failure naming file, tensor, found and wanted: header longer than the file, text after the object, a
  /// repeated
  ///         name, unknown type, bytes that don't match the shape, gaps, overlaps, bytes after the last tensor.
  explicit SafetensorsReader(const std::string &path);

  const std::string &path() const { return file.path(); }
  const std::vector<StoredTensor> &tensors() const { return entries; }
  /// NULL where there is none.
  const StoredTensor *find(const std::string &name) const;
  /// A tensor of rank 1 and type I32 or I64 as int32. Errors: Failure naming the element that doesn't fit.
  std::vector<int32_t> readInt32(const StoredTensor &tensor) const;

private:
  InputFile file;
  std::vector<StoredTensor> entries; ///< by offset
};

/// A tensor of f32 that will be written.
struct TensorShape {
  std::string name;
  uint64_t rows, width;
};
/// Facts about a file, by key; text only, as the format has it.
using TensorMetadata = std::vector<std::pair<std::string, std::string>>;

/// Writes a file whose shapes are known before its values: the header at once, then values as they come, in the order of
/// the tensors. The file appears whole with commit, or not at all.
class SafetensorsWriter {
public:
  SafetensorsWriter(const std::string &path, const std::vector<TensorShape> &tensors,
                    const TensorMetadata &metadata = {});
  /// count values; all calls together give every value of every tensor once.
  void write(const float *values, uint64_t count);
  void commit();

private:
  OutputFile file;
};

/// A tensor to write: f32, rows x width.
struct OutputTensor {
  std::string name;
  uint64_t rows, width;
  const float *data; ///< dense
};

/// Writes the tensors in that order, atomically.
void writeSafetensors(const std::string &path, const std::vector<OutputTensor> &tensors);

} // namespace batten::tools

#endif // BATTEN_TOOLS_COMMON_SAFETENSORS_H
