// Linear in bf16 or i8: rows brought into the form that dot instructions take, the dot itself, and what i8 adds to the
// epilogue. A dot is 4 bytes: two bf16 or four i8 that are neighbours along k.
#ifndef BATTEN_COMPILER_KERNELS_DOT_H
#define BATTEN_COMPILER_KERNELS_DOT_H

#include "compiler/kernels/EmitterContext.h"

namespace batten {

/// Elements of a dot.
inline int64_t dotElems(layout::Elem math) { return math == layout::Elem::I8 ? 4 : 2; }

/// Whether the target multiplies four i8 at once. Otherwise rows of i8 are kept as 16-bit numbers, and a dot takes 8 bytes of them.
bool hasByteDot(const Target &target);

/// Bytes of a row's dot as emitRowsForDot writes it.
int64_t rowDotBytes(const Target &target, layout::Elem math);

/// Most rows of a tile in that math, so that no register is spilled.
unsigned dotTileRows(const Target &target, layout::Elem math);

/// Emits rows [first, first + count) of x, k wide and strideX bytes apart, into a worker's scratch (layout/DotScratch.h), and
/// for i8 their scales and zeros.
void emitRowsForDot(EmitterContext &e, layout::Elem math, mlir::Value x, int64_t strideX, int64_t k, mlir::Value first,
                    mlir::Value count, mlir::Value scratch);

/// A vector of a dot panel, ready for emitDot.
Lanes loadDotWeights(EmitterContext &e, layout::Elem math, mlir::Value address, unsigned alignment);

/// A row's dot in every lane, ready for emitDot.
Lanes splatDot(EmitterContext &e, layout::Elem math, mlir::Value address);

/// sum + row . weights, a vector of f32 for bf16 and of i32 for i8. Targets without the instruction for bf16 take its two steps
/// one by one: right and slow, for tests; checkMath keeps it from bundles.
mlir::Value emitDot(EmitterContext &e, layout::Elem math, mlir::Value sum, const Lanes &row, const Lanes &weights);

/// What a row's i8 sums of a group add to `before`: `pair` has the row's scale and zero, `columns` the weight's scales, from the
/// sums' first column on, and a panel's width behind them the columns' sums.
Lanes emitScaledSums(EmitterContext &e, const Lanes &integers, mlir::Value pair, mlir::Value columns,
                     const Lanes &before);

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_DOT_H
