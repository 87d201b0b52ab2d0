// linear: out = act(x w^T + bias) + residual, w in panels [ceil(n/32)][k][32] of f32, f16 or bf16. In bf16 or i8 a call
// first brings a slab's rows into scratch as dots (Dot.h); dots of 4 bytes then stand where floats stand otherwise.
//
//   columns  a group is a tile's width: a panel on 512-bit vectors, half a panel on 256-bit ones
//   rows     a slab's rows are cut into balanced blocks of at most tileRows, one tile variant per size
//   1 to 3 rows take several groups at once, which fills the pipes: each output is still one chain over k
//
// A tile goes to a block on the stack, then one row loop applies the epilogue and writes out. That way the residual may
// be the output's memory, code for the epilogue is there once, and a last panel of 16 columns or less is cut by the loop.
// Meanwhile the k loops prefetch the panel that comes next, each row block its share of it.
#include "batten/kernel.h"
#include "compiler/kernels/Dot.h"
#include "compiler/kernels/Emitters.h"
#include "compiler/kernels/Tile.h"
#include "compiler/kernels/VectorMath.h"
#include "compiler/layout/DotScratch.h"
#include "compiler/layout/PackLayout.h"
#include "compiler/layout/RowStride.h"

#include <cstddef>

using namespace batten;
using namespace mlir;

namespace {

constexpr int64_t kElem = 4; ///< of activations
/// Rows of a panel between a k step and what it prefetches of the same panel.
constexpr int64_t kNearRows = 128;
/// Bytes of all panels between a k step of several groups and what it prefetches. More would not fit the L1 cache.
constexpr int64_t kWideAheadBytes = 8192;
/// Blocks of fewer rows than this wait for their own weights: they prefetch near, not the next panel.
constexpr int64_t kNearBelowRows = 8;
/// Accumulator vectors that tiles of few rows are widened to, at most.
constexpr unsigned kWideAccumulators = 12;

class LinearEmitter {
public:
  LinearEmitter(EmitterContext &e, const KernelKey &key)
      : e(e), key(key), isDot(key.math != layout::Elem::F32), vectors(e.target.tileVectors),
        tileRows(isDot ? dotTileRows(e.target, key.math) : e.target.tileRows), groupCols(e.target.tileCols()),
        groupsPerPanel(BATTEN_PANEL_COLS / groupCols), panels(layout::panelCount(key.n)),
        storedCols(layout::roundUp(key.n, BATTEN_LANES)), weightBytes(isDot ? kElem : layout::elemBytes(key.storage)),
        depth(isDot ? layout::ceilDiv(key.k, dotElems(key.math)) : key.k),
        panelRowBytes(BATTEN_PANEL_COLS * weightBytes),
        panelBytes(isDot ? *layout::dotPanelBytes(key.storage, key.k) : depth * panelRowBytes),
        strideX(layout::rowStrideBytes(key.k, kElem)), strideOut(layout::rowStrideBytes(key.n, kElem)) {
    // A single half panel needs half a tile.
    if (storedCols < groupCols)
      vectors = storedCols / e.lanesPerVector;
    unsigned next = 0;
    x = e.operands[next++];
    w = e.operands[next++];
    bias = key.bias ? e.operands[next++] : Value();
    residual = key.residual ? e.operands[next++] : Value();
    out = e.operands[next];
  }

  void emit() {
    tile = e.stackBlock(tileRowPitch() * mostTileRows());
    next = e.loadPointer(e.args, offsetof(batten_kernel_args_t, next));
    nextBytes = e.loadU64(e.at(e.args, offsetof(batten_kernel_args_t, nextBytes)));
    Value hasNext = e.less(e.constant(0), nextBytes);
    next = e.select(hasNext, next, w);
    nextBytes = e.minimum(nextBytes, e.constant(panelBytes));
    slabs = e.ceilDiv(e.rows, layout::slabRows(key.k));
    if (isDot) {
      Value offset = e.mul(e.loadU64(e.at(e.args, offsetof(batten_kernel_args_t, scratchBytes))), e.worker);
      scratch = e.at(e.loadPointer(e.args, offsetof(batten_kernel_args_t, scratch)), offset);
    }
    e.loopBelow({e.first}, e.last, [&](ValueRange state) -> SmallVector<Value> { return {emitSlab(state[0])}; });
  }

private:
  int64_t tileRowPitch() const { return groupCols * kElem; }
  /// Groups that a tile of that many rows takes at once.
  unsigned groupsAtOnce(unsigned rows) const {
    unsigned groups = 1, most = std::min<int64_t>(4, layout::ceilDiv(storedCols, groupCols));
    while (2 * groups <= most && 2 * groups * vectors * rows <= std::min(kWideAccumulators, tileRows * vectors))
      groups *= 2;
    return groups;
  }
  unsigned mostTileRows() const {
    unsigned most = tileRows;
    for (unsigned rows = 1; rows <= kWideRows; ++rows)
      most = std::max(most, kWideRows * groupsAtOnce(rows));
    return most;
  }

  /// The units from `unit` on that are in the same slab; gives the unit after them.
  Value emitSlab(Value unit) {
    Value panelsValue = e.constant(panels);
    Value slab = e.div(unit, panelsValue), panel = e.rem(unit, panelsValue);
    Value panelEnd = e.minimum(panelsValue, e.add(panel, e.sub(e.last, unit)));
    auto [row, count] = e.balanced(e.rows, slabs, slab);
    firstRow = row;
    rowCount = count;
    if (isDot)
      emitRowsForDot(e, key.math, x, strideX, key.k, firstRow, rowCount, scratch);
    blocks = e.ceilDiv(rowCount, tileRows);
    // The call's last panel is followed by the next step's weights, a slab's last one by the first of the next slab.
    Value unitEnd = e.add(unit, e.sub(panelEnd, panel));
    moreSlabs = e.less(unitEnd, e.last);
    Value groupEnd = e.minimum(e.mul(panelEnd, groupsPerPanel), e.constant(layout::ceilDiv(storedCols, groupCols)));
    lastPanel = e.sub(panelEnd, e.constant(1));
    e.loopBelow({e.mul(panel, groupsPerPanel)}, groupEnd, [&](ValueRange state) -> SmallVector<Value> {
      group = state[0];
      Value most = e.constant(1);
      for (unsigned rows = kWideRows; rows >= 1; --rows)
        most = e.select(e.less(rowCount, e.constant(rows + 1)), e.constant(groupsAtOnce(rows)), most);
      Value enough = e.less(e.sub(most, e.constant(1)), e.sub(groupEnd, group));
      groups = e.select(enough, most, e.constant(1));
      emitGroup();
      return {e.add(group, groups)};
    });
    return unitEnd;
  }

  /// All row blocks of one column group, or of several at once.
  void emitGroup() {
    Value panel = e.div(group, e.constant(groupsPerPanel));
    Value part = e.rem(group, e.constant(groupsPerPanel));
    weights = e.at(e.at(w, e.mul(panel, panelBytes)), e.mul(part, groupCols * weightBytes));
    Value following = e.at(w, e.mul(e.add(panel, e.constant(1)), panelBytes));
    Value atEnd = e.less(lastPanel, e.add(panel, e.constant(1)));
    Value afterSlab = e.select(moreSlabs, w, next);
    Value ahead = e.select(atEnd, afterSlab, following);
    Value panelBytesValue = e.constant(panelBytes);
    Value aheadBytes = e.select(atEnd, e.select(moreSlabs, panelBytesValue, nextBytes), panelBytesValue);
    Value shares = e.mul(blocks, groupsPerPanel);
    Value share = e.div(aheadBytes, shares);
    Value isNear = e.logicalAnd(e.less(blocks, e.constant(2)), e.less(rowCount, e.constant(kNearBelowRows)));
    prefetchStride = e.select(isNear, e.constant(panelRowBytes), e.div(share, e.constant(depth)));
    e.loop(e.constant(0), blocks, 1, [&](Value block) {
      auto [row, count] = e.balanced(rowCount, blocks, block);
      blockRow = e.add(firstRow, row);
      blockRows = count;
      Value index = e.add(e.mul(part, blocks), block);
      prefetchFrom = e.select(isNear, e.at(weights, kNearRows * panelRowBytes), e.at(ahead, e.mul(share, index)));
      emitBlock();
    });
  }

  void emitBlock() {
    // Tiles of one group are numbered by their rows, wider ones follow.
    SmallVector<int64_t> cases = rowCases(tileRows);
    Value which = blockRows;
    for (unsigned rows = 1; rows <= kWideRows; ++rows)
      if (groupsAtOnce(rows) > 1)
        cases.push_back(tileRows + rows);
    Value isWide = e.less(e.constant(1), groups);
    which = e.add(which, e.select(isWide, e.constant(tileRows), e.constant(0)));
    e.dispatch(which, cases, [&](int64_t number) {
      bool wide = number > tileRows;
      unsigned rows = wide ? number - tileRows : number;
      emitTileOf(rows, wide ? groupsAtOnce(rows) : 1);
    });
    emitEpilogue();
  }

  void emitTileOf(unsigned rows, unsigned groupCount) {
    Tile t;
    t.rows = rows;
    t.math = key.math;
    t.aStride = isDot ? layout::dotRowBytes(key.k) : strideX;
    t.aStep = isDot ? rowDotBytes(e.target, key.math) : kElem;
    t.a = isDot ? e.at(scratch, e.mul(e.sub(blockRow, firstRow), t.aStride)) : e.at(x, e.mul(blockRow, strideX));
    t.b = weights;
    t.bStride = e.constant(panelRowBytes);
    t.bAlignment = 64;
    t.bElem = key.storage;
    t.count = e.constant(depth);
    for (unsigned g = 0; g < groupCount; ++g)
      for (unsigned j = 0; j < vectors; ++j) {
        int64_t column = g * groupCols + j * e.lanesPerVector;
        t.bOffsets.push_back(column / BATTEN_PANEL_COLS * panelBytes + column % BATTEN_PANEL_COLS * weightBytes);
      }
    int64_t lines = std::max<int64_t>(1, vectors * e.lanesPerVector * weightBytes / 64);
    t.eachStep = [&, groupCount, lines](Value k) {
      if (groupCount == 1) {
        Value address = e.at(prefetchFrom, e.mul(k, prefetchStride));
        for (int64_t line = 0; line < lines; ++line)
          e.prefetch(e.at(address, line * 64));
        return;
      }
      int64_t rowsAhead =
          kWideAheadBytes / panelRowBytes * groupsPerPanel / std::max<int64_t>(groupCount, groupsPerPanel);
      Value address = e.at(weights, e.mul(e.add(k, rowsAhead), panelRowBytes));
      for (int64_t column = 0; column < groupCount * groupCols; column += 64 / weightBytes)
        e.prefetch(e.at(address, column / BATTEN_PANEL_COLS * panelBytes + column % BATTEN_PANEL_COLS * weightBytes));
    };
    SmallVector<Value> sums = emitTile(e, t);
    for (unsigned g = 0; g < groupCount; ++g)
      for (unsigned i = 0; i < rows; ++i) {
        Lanes row;
        for (unsigned j = 0; j < vectors; ++j)
          row.push_back(sums[(i * groupCount + g) * vectors + j]);
        e.store(row, e.at(tile, (g * kWideRows + i) * tileRowPitch()), 64); // f32, or i32 where the sums are
      }
  }

  void emitEpilogue() {
    e.loop(e.constant(0), groups, 1, [&](Value g) {
      Value column = e.mul(e.add(group, g), groupCols * kElem);
      Value from = e.at(tile, e.mul(g, kWideRows * tileRowPitch()));
      Value rowOffset = e.add(e.mul(blockRow, strideOut), column);
      e.loop(e.constant(0), blockRows, 1, [&](Value row) {
        Value offset = e.add(rowOffset, e.mul(row, strideOut));
        Value source = e.at(from, e.mul(row, tileRowPitch()));
        if (key.math == layout::Elem::I8) {
          Value at = e.mul(e.add(e.sub(blockRow, firstRow), row), kElem);
          rowScale = e.loadFloat(e.at(scratch, e.add(at, layout::dotScales(key.k))));
          Value panel = e.div(e.add(group, g), e.constant(groupsPerPanel));
          panelScales = e.at(e.at(w, e.mul(panel, panelBytes)), depth * panelRowBytes);
          panelScales = e.at(panelScales, e.mul(e.rem(e.add(group, g), e.constant(groupsPerPanel)), groupCols * kElem));
        }
        bool cut = storedCols % groupCols != 0 && storedCols > groupCols;
        unsigned always = cut ? (storedCols % groupCols) / e.lanesPerVector : vectors;
        emitEpilogueVectors(source, column, offset, 0, always);
        if (cut)
          e.when(e.less(column, e.constant(storedCols / groupCols * groupCols * kElem)),
                 [&] { emitEpilogueVectors(source, column, offset, always, vectors); });
      });
    });
  }

  void emitEpilogueVectors(Value source, Value column, Value offset, unsigned begin, unsigned end) {
    int64_t skip = begin * e.lanesPerVector * kElem;
    unsigned count = end - begin;
    Lanes value = e.load(e.at(source, skip), count, 64);
    if (key.math == layout::Elem::I8)
      value = emitScaledSums(e, e.asIntegers(value), rowScale, e.at(panelScales, skip),
                             e.at(panelScales, skip + BATTEN_PANEL_COLS * kElem));
    if (key.bias)
      value = e.add(value, e.load(e.at(e.at(bias, column), skip), count, 64));
    value = emitActivation(e, key.act, value);
    if (key.residual)
      value = e.add(value, e.load(e.at(e.at(residual, offset), skip), count, 64));
    e.store(value, e.at(e.at(out, offset), skip), 64);
  }

  /// Blocks of at most this many rows may take several groups.
  static constexpr unsigned kWideRows = 3;

  EmitterContext &e;
  const KernelKey &key;
  bool isDot;
  unsigned vectors, tileRows;
  int64_t groupCols, groupsPerPanel, panels, storedCols;
  int64_t weightBytes, depth; ///< of a column at one step along k, and these steps
  int64_t panelRowBytes, panelBytes, strideX, strideOut;
  Value x, w, bias, residual, out, tile, scratch;
  Value next, nextBytes, slabs;
  Value firstRow, rowCount, blocks, moreSlabs, lastPanel; // of the slab
  Value group, groups, weights, prefetchStride;           // of the column group
  Value blockRow, blockRows, prefetchFrom;                // of the row block
  Value rowScale, panelScales;                            // of a row and a column group, for i8
};

} // namespace

void batten::emitLinear(EmitterContext &e, const KernelKey &key) { LinearEmitter(e, key).emit(); }
