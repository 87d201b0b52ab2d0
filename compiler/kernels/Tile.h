// The matrix tile that linear and attention share: rows x vectors accumulators, one chain of fma over k each, whatever
// the tile's size. A chain may go on where an earlier tile left it; it is never cut into several that are added up.
#ifndef BATTEN_COMPILER_KERNELS_TILE_H
#define BATTEN_COMPILER_KERNELS_TILE_H

#include "compiler/kernels/EmitterContext.h"

#include <functional>

namespace batten {

/// acc[i][j] = fma(a[i][k], b[k][j], acc[i][j]) for k = 0 .. count-1; in bf16 and i8, a dot (Dot.h) instead of the fma.
struct Tile {
  unsigned rows = 0;
  mlir::Value a;       ///< a[i][k] is the float at a + i * aStride + k * aStep
  int64_t aStride = 0; ///< bytes
  int64_t aStep = 4;   ///< bytes
  layout::Elem math = layout::Elem::F32;
  mlir::Value b;       ///< vector j of row k is at b + k * bStride + bOffsets[j]
  mlir::Value bStride; ///< bytes
  llvm::SmallVector<int64_t, 8> bOffsets;
  unsigned bAlignment = 4;
  layout::Elem bElem = layout::Elem::F32; ///< what b holds; widened as it is read
  Lanes lastMask;                         ///< of the last vector; empty: the whole vector is read
  mlir::Value count;
  bool isCountEven = false; ///< count is known to be even
  /// Called in each turn of the loop with its first k and how many it takes, for prefetches; may be empty.
  std::function<void(mlir::Value k, int64_t steps)> eachTurn;
};

/// Accumulators row by row; init has rows * vectors values, or none for zeros. Gives the same order. Small tiles take two
/// steps of k a turn, which saves them a fifth of their instructions.
llvm::SmallVector<mlir::Value> emitTile(EmitterContext &e, const Tile &tile, mlir::ValueRange init = {});

/// 1 .. most, as cases of EmitterContext::dispatch.
llvm::SmallVector<int64_t> rowCases(unsigned most);

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_TILE_H
