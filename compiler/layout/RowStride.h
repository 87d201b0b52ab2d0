// The layout rules that the whole compiler shares: alignment, row stride, panel and slab sizes. Pure arithmetic; the
// same numbers stand in runtime/abi/batten/{kernel,format}.h, and PackWriter.cpp and the kernels assert that they agree.
// Callers bound their widths (checkedMul and checkedAdd are for sizes that come from a file).
#ifndef BATTEN_COMPILER_LAYOUT_ROWSTRIDE_H
#define BATTEN_COMPILER_LAYOUT_ROWSTRIDE_H

#include <cstdint>
#include <optional>

namespace batten::layout {

/// Alignment in bytes of every operand, stride, pack entry and scratch block.
inline constexpr int64_t kAlignment = 64;
/// Virtual lanes of a reduction: widths are padded to this many elements.
inline constexpr int64_t kLanes = 16;
/// Columns of a weight panel on every CPU target.
inline constexpr int64_t kPanelCols = 32;

/// value rounded up to a multiple of `multiple` (> 0); value >= 0.
constexpr int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// ceil(value / divisor) for value >= 0, divisor > 0.
constexpr int64_t ceilDiv(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

/// a + b, or nothing where it would overflow. Both are >= 0.
constexpr std::optional<int64_t> checkedAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    return std::nullopt;
  return sum;
}

/// a * b, or nothing where it would overflow. Both are >= 0.
constexpr std::optional<int64_t> checkedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

/// Bytes from one row of an activation buffer to the next.
///
/// Units: width in elements. A multiple of 64, at least the width rounded up to 16 elements; one cache line more where it
///        would be a multiple of 4096, because rows that alias in the L1 cache halve the speed of a linear.
constexpr int64_t rowStrideBytes(int64_t width, int64_t elemBytes) {
  int64_t stride = roundUp(roundUp(width, kLanes) * elemBytes, kAlignment);
  return stride % 4096 == 0 ? stride + kAlignment : stride;
}

/// Panels of a weight with n output columns.
constexpr int64_t panelCount(int64_t n) { return ceilDiv(n, kPanelCols); }

/// Most rows of a slab of the panels domain for inner width k: the largest multiple of 84 (the least common multiple of
/// the row tiles 12 and 14) whose f32 input fits 512 KiB of L2, within [84, 672].
constexpr int64_t slabRows(int64_t k) {
  constexpr int64_t kTile = 84, kMost = 672, kBytes = 512 * 1024;
  int64_t rows = kBytes / (k * 4) / kTile * kTile;
  return rows < kTile ? kTile : rows > kMost ? kMost : rows;
}

/// A linear of at most this many rows goes through its panels in chunks of k, and keeps 32 sums a row in scratch meanwhile.
inline constexpr int64_t kChunkedRows = 96;
/// Bytes of these sums.
inline constexpr int64_t kLinearSumsBytes = kChunkedRows * kPanelCols * 4;

static_assert(rowStrideBytes(384, 4) == 1536 && rowStrideBytes(1, 4) == 64);
static_assert(rowStrideBytes(1024, 4) == 4096 + 64);
static_assert(slabRows(768) == 168);

} // namespace batten::layout

#endif // BATTEN_COMPILER_LAYOUT_ROWSTRIDE_H
