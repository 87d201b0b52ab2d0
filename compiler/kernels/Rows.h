// What kernels of the rows domain share: addresses of rows, loops over the units of a call and over a row's columns by 16.
#ifndef BATTEN_COMPILER_KERNELS_ROWS_H
#define BATTEN_COMPILER_KERNELS_ROWS_H

#include "batten/kernel.h"
#include "compiler/kernels/EmitterContext.h"
#include "compiler/layout/RowStride.h"

namespace batten {

inline constexpr int64_t kFloatBytes = 4;

/// Bytes from one row of that width to the next.
inline int64_t strideOf(int64_t width) { return layout::rowStrideBytes(width, kFloatBytes); }

/// Pointer number `operand`, at the row of that width.
inline mlir::Value rowOf(EmitterContext &e, unsigned operand, mlir::Value row, int64_t width) {
  return e.at(e.operands[operand], e.mul(row, strideOf(width)));
}

/// An array of the batch, by its field's offset in batten_kernel_batch_t.
inline mlir::Value batchArray(EmitterContext &e, size_t field) {
  return e.loadPointer(e.batch, static_cast<int64_t>(field));
}

/// Element `index` of an array of the batch.
inline mlir::Value elementOf(EmitterContext &e, mlir::Value array, mlir::Value index) {
  return e.loadU32(e.at(array, e.mul(index, sizeof(uint32_t))));
}

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

/// Sets the lanes from `lanes` on to `filler`: what a reduction isn't changed by.
inline Lanes fillAbove(EmitterContext &e, const Lanes &value, int64_t lanes, float filler) {
  return lanes == BATTEN_LANES ? value : e.select(e.maskBelow(lanes), value, e.splat(filler));
}

/// Sets the lanes from `lanes` on to zero.
inline Lanes zeroAbove(EmitterContext &e, const Lanes &value, int64_t lanes) {
  return fillAbove(e, value, lanes, 0.0f);
}

/// Sixteen floats at the address, or the first `lanes` and zeros: for columns that begin anywhere in a row, where the last
/// ones could leave it.
inline Lanes loadColumns(EmitterContext &e, mlir::Value address, int64_t lanes) {
  return lanes == BATTEN_LANES ? e.load(address) : e.loadMasked(address, e.maskBelow(lanes));
}

/// Writes the first `lanes` of sixteen.
inline void storeColumns(EmitterContext &e, const Lanes &value, mlir::Value address, int64_t lanes) {
  if (lanes == BATTEN_LANES)
    e.store(value, address);
  else
    e.storeMasked(value, address, e.maskBelow(lanes));
}

/// Copies columns [0, width) from one place to another, both anywhere in a row.
inline void copyColumns(EmitterContext &e, mlir::Value from, mlir::Value to, int64_t width) {
  forEachColumns(e, width, {}, [&](mlir::Value offset, int64_t lanes, const Lanes &) -> Lanes {
    storeColumns(e, loadColumns(e, e.at(from, offset), lanes), e.at(to, offset), lanes);
    return {};
  });
}

/// Copies a row, pads too.
inline void copyRow(EmitterContext &e, mlir::Value from, mlir::Value to, int64_t width) {
  forEachPaddedColumns(e, width,
                       [&](mlir::Value offset) { e.store(e.load(e.at(from, offset), 64), e.at(to, offset), 64); });
}

/// Writes zeros over a row, pads too.
inline void clearRow(EmitterContext &e, mlir::Value to, int64_t width) {
  forEachPaddedColumns(e, width, [&](mlir::Value offset) { e.store(e.splat(0.0f), e.at(to, offset), 64); });
}

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_ROWS_H
