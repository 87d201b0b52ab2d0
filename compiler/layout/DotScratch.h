// Where a worker's scratch block keeps a slab's rows as dot instructions read them. Pure arithmetic, shared by the emitter
// and the planner, and the same on every target.
//
//   bf16   rows of roundUp(k, 2) bf16, zeros past k
//   i8     rows of roundUp(k, 4) numbers of 16 bits, of which a target uses what its instruction wants; then for each row and
//          group of dots (format.h) a scale and a zero, both f32; then a tile of f32 sums
//
// Rows lie dotRowBytes apart.
#ifndef BATTEN_COMPILER_LAYOUT_DOTSCRATCH_H
#define BATTEN_COMPILER_LAYOUT_DOTSCRATCH_H

#include "compiler/layout/RowStride.h"
#include "compiler/layout/WeightExpr.h"

namespace batten::layout {

/// Bytes that a dot instruction takes for each column: two bf16 or four i8.
inline constexpr int64_t kDotBytes = 4;
/// Most dots of i8 that share a scale: a sum of that many products of 255 and 127, four a dot, is below 2^24, so exact in f32.
inline constexpr int64_t kGroupDots = 96;
static_assert(kGroupDots * 4 * 255 * 127 < int64_t(1) << 24);

/// Dots of i8 for k elements, and groups of them.
constexpr int64_t i8Dots(int64_t k) { return ceilDiv(k, 4); }
constexpr int64_t i8Groups(int64_t k) { return ceilDiv(i8Dots(k), kGroupDots); }

/// Bytes from one row to the next, a multiple of 64 and none of 4096: 16 elements more than there are may be written.
constexpr int64_t dotRowBytes(int64_t k) { return rowStrideBytes(k + kLanes, 2); }

/// Offset of the rows' scales and zeros, pair by pair, and bytes of a row's.
constexpr int64_t dotScales(int64_t k) { return slabRows(k) * dotRowBytes(k); }
constexpr int64_t dotScaleBytes(int64_t k) { return i8Groups(k) * 8; }

/// Offset of the sums, and their bytes: rows of a panel's width, as many as a tile has on any target.
constexpr int64_t dotSums(int64_t k) { return dotScales(k) + roundUp(slabRows(k) * dotScaleBytes(k), kAlignment); }
inline constexpr int64_t kDotSumsBytes = 16 * kPanelCols * 4;

/// Bytes of a worker's block, a multiple of 64.
constexpr int64_t dotScratchBytes(Elem math, int64_t k) {
  return math == Elem::I8 ? dotSums(k) + kDotSumsBytes : dotScales(k);
}

} // namespace batten::layout

#endif // BATTEN_COMPILER_LAYOUT_DOTSCRATCH_H
