// Evaluates weight expressions over checkpoint tensors and writes their bytes in a pack's layouts. Streamed: tensors come
// in row blocks from a source, bytes leave in blocks to a sink, and at most a few blocks are in memory at a time.
// It opens no file and knows no format of one; it refuses values that are not finite.
#ifndef BATTEN_COMPILER_LAYOUT_WEIGHTPACKER_H
#define BATTEN_COMPILER_LAYOUT_WEIGHTPACKER_H

#include "compiler/layout/WeightExpr.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace batten::layout {

/// Checkpoint tensors as raw little-endian elements.
class TensorSource {
public:
  struct Info {
    Elem elem = Elem::F32;
    int64_t elements = 0; ///< product of the dimensions
    std::string where;    ///< for error texts: file and tensor
  };

  virtual ~TensorSource() = default;

  /// Finds a tensor of dir ("" or a sub-directory). Errors: false with text where it is missing or not F32, F16 or BF16.
  [[nodiscard]] virtual bool find(const std::string &dir, const std::string &tensor, Info &info,
                                  std::string &error) = 0;

  /// Reads elements [first, first + count) into out, which has count times the element's bytes and may be unaligned.
  /// Only called for tensors that find has found, and within their bounds. Errors: false with text.
  [[nodiscard]] virtual bool read(const std::string &dir, const std::string &tensor, int64_t first, int64_t count,
                                  uint8_t *out, std::string &error) = 0;
};

/// Takes bytes in order.
class ByteSink {
public:
  virtual ~ByteSink() = default;
  /// Errors: false with text.
  [[nodiscard]] virtual bool write(const uint8_t *data, size_t bytes, std::string &error) = 0;
};

/// Writes exactly entryBytes() bytes of an entry to the sink: its value in its layout, zeros up to the end.
///
/// Errors: false with text where the source or the sink fails; where an expression's shape disagrees with its operands or
///         with the tensor; and where a value is not finite, as
///         "<file>: <tensor>: NaN at row 0, column 7" (inf, -inf alike; row and column in the tensor), also
///         after a scale or a cast.
[[nodiscard]] bool packEntry(const PackEntry &entry, TensorSource &source, ByteSink &sink, std::string &error);

/// The value of an expression as rows*cols floats, for tests and small weights. Errors: as packEntry.
[[nodiscard]] bool evaluate(const WeightExpr &expr, TensorSource &source, float *out, std::string &error);

} // namespace batten::layout

#endif // BATTEN_COMPILER_LAYOUT_WEIGHTPACKER_H
