// Loops that kernels of the rows domain share: over the units of a call, and over a row's columns by 16.
#ifndef BATTEN_COMPILER_KERNELS_ROWS_H
#define BATTEN_COMPILER_KERNELS_ROWS_H

#include "batten/kernel.h"
#include "compiler/kernels/EmitterContext.h"

namespace batten {

inline constexpr int64_t kFloatBytes = 4;

/// Emits body(row) in a loop over the call's units.
inline void forEachRow(EmitterContext &e, llvm::function_ref<void(mlir::Value)> body) {
  e.loop(e.first, e.last, 1, body);
}

/// As forEachRow, but most rows come `atOnce` together: their chains then run side by side. body may be emitted twice.
inline void forEachRows(EmitterContext &e, int64_t atOnce, llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> body) {
  mlir::Value count = e.sub(e.last, e.first);
  mlir::Value grouped = e.add(e.first, e.mul(e.div(count, e.constant(atOnce)), atOnce));
  e.loop(e.first, grouped, atOnce, [&](mlir::Value row) {
    llvm::SmallVector<mlir::Value> rows;
    for (int64_t i = 0; i < atOnce; ++i)
      rows.push_back(e.add(row, i));
    body(rows);
  });
  e.loop(grouped, e.last, 1, [&](mlir::Value row) { body(row); });
}

/// Emits body(offset, lanes, carried) for each 16 columns: offset in bytes, lanes how many of them are below width (16 or
/// the rest, a constant). carried goes from one to the next; gives its last state.
using ColumnBody = llvm::function_ref<Lanes(mlir::Value offset, int64_t lanes, const Lanes &carried)>;
inline Lanes forEachColumns(EmitterContext &e, int64_t width, const Lanes &carried, ColumnBody body) {
  int64_t whole = width / BATTEN_LANES, rest = width % BATTEN_LANES;
  Lanes result =
      e.loop(e.constant(0), e.constant(whole * BATTEN_LANES * kFloatBytes), BATTEN_LANES * kFloatBytes, carried,
             [&](mlir::Value offset, mlir::ValueRange values) { return body(offset, BATTEN_LANES, Lanes(values)); });
  if (rest != 0)
    result = body(e.constant(whole * BATTEN_LANES * kFloatBytes), rest, result);
  return result;
}

/// Emits body(offset) for each 16 columns up to width rounded up: for what may read and write pads.
inline void forEachPaddedColumns(EmitterContext &e, int64_t width, llvm::function_ref<void(mlir::Value)> body) {
  int64_t groups = (width + BATTEN_LANES - 1) / BATTEN_LANES;
  e.loop(e.constant(0), e.constant(groups * BATTEN_LANES * kFloatBytes), BATTEN_LANES * kFloatBytes, body);
}

/// Sets the lanes from `lanes` on to zero.
inline Lanes zeroAbove(EmitterContext &e, const Lanes &value, int64_t lanes) {
  return lanes == BATTEN_LANES ? value : e.select(e.maskBelow(lanes), value, e.splat(0.0f));
}

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_ROWS_H
