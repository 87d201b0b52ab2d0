// Where a worker's scratch block keeps a slab's rows as dot instructions read them. Pure arithmetic, shared by the emitter
// and the planner, and the same on every target.
//
//   bf16   rows of roundUp(k, 2) bf16, zeros past k
//   i8     rows of roundUp(k, 4) numbers of 16 bits, of which a target uses what its instruction wants; then a scale a row
//
// Rows lie dotRowBytes apart.
#ifndef BATTEN_COMPILER_LAYOUT_DOTSCRATCH_H
#define BATTEN_COMPILER_LAYOUT_DOTSCRATCH_H

#include "compiler/layout/RowStride.h"
#include "compiler/layout/WeightExpr.h"

namespace batten::layout {

/// Bytes from one row to the next, a multiple of 64 and none of 4096. Units: k in elements.
constexpr int64_t dotRowBytes(int64_t k) { return rowStrideBytes(roundUp(k, 4), 2); }

/// Offset of the rows' scales.
constexpr int64_t dotScales(int64_t k) { return slabRows(k) * dotRowBytes(k); }

/// Bytes of a worker's block, a multiple of 64.
constexpr int64_t dotScratchBytes(Elem math, int64_t k) {
  return dotScales(k) + (math == Elem::I8 ? roundUp(slabRows(k) * 4, kAlignment) : 0);
}

} // namespace batten::layout

#endif // BATTEN_COMPILER_LAYOUT_DOTSCRATCH_H
