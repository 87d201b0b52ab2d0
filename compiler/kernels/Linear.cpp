// linear: out = act(x w^T + bias) + residual, w in panels [ceil(n/32)][k][32] of f32, f16 or bf16. In bf16 or i8 a call
// first brings a slab's rows into scratch as dots (Dot.h); dots of 4 bytes then stand where floats stand otherwise.
//
//   columns  a tile is as wide as a panel; half as wide where 16 registers also hold weights that are being widened
//   rows     a slab's rows are cut into balanced blocks of at most tileRows, one tile variant per size
//   k        up to 96 rows go through a panel in chunks that stay in the cache for all their blocks: a chain stops at a
//            chunk's end in scratch and goes on from there. More rows take the whole panel at once
//   1 to 5 rows have shapes of their own (shapeOf). Each output is still one chain over k
//
// A tile goes to scratch, then one row loop applies the epilogue and writes out. That way the residual may be the output's
// memory, code for the epilogue is there once, and a last panel of 16 columns or less is cut by the loop.
// Meanwhile the k loops prefetch the chunk that comes next, each tile its share of it: that hides the time that weights
// take from memory.
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
/// Bytes of a row of sums: those of a panel.
constexpr int64_t kSumsRowBytes = BATTEN_PANEL_COLS * kElem;
/// Bytes of all panels between a k step of several panels and what it prefetches. More would not fit the L1 cache.
constexpr int64_t kWideAheadBytes = 8192;
/// Accumulator vectors of tiles over several panels, at most.
constexpr unsigned kWideAccumulators = 12;
/// The same where 16 registers also hold weights on their way to what is multiplied.
constexpr unsigned kWidenedAccumulators = 8;
constexpr unsigned kMostTileRows = 14;
/// A slab of at most this many rows may have a shape of its own; up to kWideRows one over several panels.
constexpr unsigned kFewRows = 5, kWideRows = 3;

/// How the rows of a slab go through the panels: several at once, or each in parts one after the other.
struct Shape {
  unsigned panels, parts;
  bool operator==(const Shape &) const = default;
};

class LinearEmitter {
public:
  LinearEmitter(EmitterContext &e, const KernelKey &key)
      : e(e), key(key), isDot(key.math != layout::Elem::F32), panels(layout::panelCount(key.n)),
        storedCols(layout::roundUp(key.n, BATTEN_LANES)),
        vectors(static_cast<unsigned>(std::min<int64_t>(storedCols, BATTEN_PANEL_COLS)) / e.lanesPerVector),
        accumulators((isDot ? dotTileRows(e.target, key.math) : e.target.tileRows) * e.target.tileVectors),
        usual{1, (isDot || key.storage != layout::Elem::F32) && vectors == 4 ? 2u : 1u},
        tileRows(std::min(accumulators * usual.parts / vectors, kMostTileRows)),
        weightBytes(isDot ? kElem : layout::elemBytes(key.storage)),
        depth(isDot ? layout::ceilDiv(key.k, dotElems(key.math)) : key.k),
        chunkRows(chunkRowsOf(depth, isI8() ? depth : e.target.chunkRows)), chunks(layout::ceilDiv(depth, chunkRows)),
        panelRowBytes(BATTEN_PANEL_COLS * weightBytes),
        panelBytes(isDot ? *layout::dotPanelBytes(key.storage, key.k) : depth * panelRowBytes),
        strideX(layout::rowStrideBytes(key.k, kElem)), strideOut(layout::rowStrideBytes(key.n, kElem)) {
    unsigned next = 0;
    x = e.operands[next++];
    w = e.operands[next++];
    bias = key.bias ? e.operands[next++] : Value();
    residual = key.residual ? e.operands[next++] : Value();
    out = e.operands[next];
  }

  void emit() {
    if (chunks > 1) {
      zeros = e.stackBlock(kSumsRowBytes);
      for (unsigned j = 0; j < vectors; ++j)
        e.store(e.splat(0.0f, 1), e.at(zeros, j * e.lanesPerVector * kElem), 64);
    }
    Value offset = e.mul(e.loadU64(e.at(e.args, offsetof(batten_kernel_args_t, scratchBytes))), e.worker);
    scratch = e.at(e.loadPointer(e.args, offsetof(batten_kernel_args_t, scratch)), offset);
    sums = isDot ? e.at(scratch, layout::dotScratchBytes(key.math, key.k)) : scratch;
    i8Sums = isI8() ? e.at(scratch, layout::dotSums(key.k)) : sums;
    next = e.loadPointer(e.args, offsetof(batten_kernel_args_t, next));
    nextBytes = e.loadU64(e.at(e.args, offsetof(batten_kernel_args_t, nextBytes)));
    next = e.select(e.less(e.constant(0), nextBytes), next, w);
    slabs = e.ceilDiv(e.rows, layout::slabRows(key.k));
    e.loopBelow({e.first}, e.last, [&](ValueRange state) -> SmallVector<Value> { return {emitSlab(state[0])}; });
  }

private:
  bool isI8() const { return key.math == layout::Elem::I8; }
  /// Chunks of about equal size, even, so that a chunk's k loop may take two steps a turn.
  static int64_t chunkRowsOf(int64_t depth, int64_t most) {
    return layout::roundUp(layout::ceilDiv(depth, layout::ceilDiv(depth, most)), 2);
  }

  /// 1 to 3 rows take several panels at once where that fills the pipes. On 256-bit registers 4 and 5 rows are one block
  /// for each half of a panel: as two blocks they would read all of it twice.
  Shape shapeOf(unsigned rows) const {
    unsigned most = std::min(usual.parts > 1 ? kWidenedAccumulators : kWideAccumulators, accumulators), count = 1;
    if (rows <= kWideRows && vectors * rows <= most) {
      while (2 * count <= std::min<int64_t>(4, panels) && 2 * count * vectors * rows <= most)
        count *= 2;
      return {count, 1};
    }
    if (rows > tileRows && rows <= kFewRows && vectors == 4 && !isDot)
      return {1, 2};
    return usual;
  }
  bool isSpecial(unsigned rows) const { return shapeOf(rows) != usual; }

  /// The units from `unit` on that are in the same slab; gives the unit after them.
  Value emitSlab(Value unit) {
    Value panelsValue = e.constant(panels);
    Value slab = e.div(unit, panelsValue), begin = e.rem(unit, panelsValue);
    panelEnd = e.minimum(panelsValue, e.add(begin, e.sub(e.last, unit)));
    std::tie(firstRow, rowCount) = e.balanced(e.rows, slabs, slab);
    if (isDot)
      emitRowsForDot(e, key.math, x, strideX, key.k, firstRow, rowCount, scratch);
    // The call's last panel is followed by the next step's weights, a slab's last one by the first of the next slab.
    Value unitEnd = e.add(unit, e.sub(panelEnd, begin));
    Value moreSlabs = e.less(unitEnd, e.last);
    afterSlab = e.select(moreSlabs, w, next);
    bytesAfterSlab = e.select(moreSlabs, e.constant(panelBytes), nextBytes);
    e.loopBelow({begin}, panelEnd, [&](ValueRange state) -> SmallVector<Value> {
      panel = state[0];
      emitPanel();
      return {e.add(panel, together)};
    });
    return unitEnd;
  }

  /// All chunks of a panel, or of several at once.
  void emitPanel() {
    Value one = e.constant(1), zero = e.constant(0);
    together = one;
    parts = e.constant(usual.parts);
    special = zero;
    blocks = e.ceilDiv(rowCount, tileRows);
    for (unsigned rows = 1; rows <= kFewRows; ++rows) {
      Shape shape = shapeOf(rows);
      if (!isSpecial(rows))
        continue;
      Value is = e.logicalAnd(e.less(e.constant(rows - 1), rowCount), e.less(rowCount, e.constant(rows + 1)));
      is = e.logicalAnd(is, e.less(e.constant(shape.panels - 1), e.sub(panelEnd, panel)));
      together = e.select(is, e.constant(shape.panels), together);
      parts = e.select(is, e.constant(shape.parts), parts);
      blocks = e.select(is, one, blocks);
      special = e.select(is, one, special);
    }
    tiles = e.mul(blocks, parts);
    isNear = e.less(tiles, e.constant(2));
    isChunked = e.logicalAnd(e.less(one, tiles), e.less(rowCount, e.constant(layout::kChunkedRows + 1)));
    chunkCount = chunks > 1 ? e.select(isChunked, e.constant(chunks), one) : one;
    e.loop(zero, chunkCount, 1, [&](Value chunk) { emitChunk(chunk); });
  }

  /// All tiles of a chunk.
  void emitChunk(Value chunk) {
    firstK = e.mul(chunk, chunkRows);
    Value whole = e.constant(depth);
    countK = chunks > 1 ? e.select(isChunked, e.minimum(e.constant(chunkRows), e.sub(whole, firstK)), whole) : whole;
    isFirstChunk = e.less(chunk, e.constant(1));
    isLastChunk = e.less(chunkCount, e.add(chunk, 2));
    weights = e.at(e.at(w, e.mul(panel, panelBytes)), e.mul(firstK, panelRowBytes));
    // What comes next is the next chunk, or as much of what follows the slab.
    Value bytes = e.mul(countK, panelRowBytes);
    Value atEnd = e.logicalAnd(isLastChunk, e.less(panelEnd, e.add(panel, 2)));
    Value ahead = e.select(atEnd, afterSlab, e.at(weights, bytes));
    Value share = e.div(e.select(atEnd, e.minimum(bytesAfterSlab, bytes), bytes), tiles);
    // A single tile waits for its own weights: it prefetches near.
    prefetchStride = e.select(isNear, e.constant(panelRowBytes), e.div(share, countK));
    e.loop(e.constant(0), tiles, 1, [&](Value index) {
      Value part = e.rem(index, parts);
      auto [row, count] = e.balanced(rowCount, blocks, e.div(index, parts));
      blockRow = e.add(firstRow, row);
      blockRows = count;
      partColumns = e.mul(part, BATTEN_PANEL_COLS / 2);
      isLastPart = e.less(parts, e.add(part, 2));
      Value near = e.at(weights, e.target.nearRows * panelRowBytes);
      prefetchFrom = e.select(isNear, near, e.at(ahead, e.mul(share, index)));
      blockSums = chunks > 1 ? e.at(sums, e.mul(e.select(isChunked, row, e.constant(0)), kSumsRowBytes)) : sums;
      emitBlock();
    });
  }

  /// Sums of i8 are made group by group (format.h); each adds to f32 sums of their own.
  void emitBlock() {
    if (isI8()) {
      Value count = e.constant(layout::i8Groups(key.k));
      e.loop(e.constant(0), count, 1, [&](Value dotGroup) {
        std::tie(firstK, countK) = e.balanced(e.constant(depth), count, dotGroup);
        emitTiles();
        addGroupSums(dotGroup);
      });
    } else {
      emitTiles();
    }
    e.when(e.logicalAnd(isLastChunk, isLastPart), [&] { emitEpilogue(); });
  }

  /// Adds the tile's integers of a group of dots to the block's f32 sums; the first one begins them.
  void addGroupSums(Value dotGroup) {
    Value isFirst = e.less(dotGroup, e.constant(1)), none = e.splat(0.0f, 1)[0];
    Value pairs = e.at(e.at(scratch, layout::dotScales(key.k)), e.mul(dotGroup, 2 * kElem));
    pairs = e.at(pairs, e.mul(e.sub(blockRow, firstRow), layout::dotScaleBytes(key.k)));
    Value bytes = e.div(e.constant(layout::roundUp(vectors * e.lanesPerVector, BATTEN_LANES) * kElem), parts);
    Value begin = e.mul(partColumns, kElem), end = e.add(begin, bytes);
    e.loop(e.constant(0), together, 1, [&](Value p) {
      Value columns = e.at(e.at(w, e.mul(e.add(panel, p), panelBytes)), depth * panelRowBytes);
      columns = e.at(columns, e.mul(dotGroup, 2 * kSumsRowBytes));
      e.loop(e.constant(0), blockRows, 1, [&](Value row) {
        Value at = e.add(e.mul(p, kWideRows * kSumsRowBytes), e.mul(row, kSumsRowBytes));
        Value pair = e.at(pairs, e.mul(row, layout::dotScaleBytes(key.k)));
        e.loop(begin, end, BATTEN_LANES * kElem, [&](Value column) {
          Value to = e.at(e.at(i8Sums, at), column);
          Lanes before = e.load(to, 64);
          for (Value &value : before)
            value = e.select(isFirst, none, value);
          Lanes found = e.asIntegers(e.load(e.at(e.at(blockSums, at), column), 64));
          e.store(emitScaledSums(e, found, pair, e.at(columns, column), before), to, 64);
        });
      });
    });
  }

  void emitTiles() {
    // Tiles of the usual shape are numbered by their rows, special ones follow.
    SmallVector<int64_t> cases = rowCases(tileRows);
    for (unsigned rows = 1; rows <= kFewRows; ++rows)
      if (isSpecial(rows))
        cases.push_back(tileRows + rows);
    e.dispatch(e.add(blockRows, e.mul(special, tileRows)), cases, [&](int64_t number) {
      if (number > tileRows)
        emitTileOf(number - tileRows, shapeOf(number - tileRows));
      else
        emitTileOf(number, usual);
    });
  }

  void emitTileOf(unsigned rows, Shape shape) {
    unsigned width = vectors / shape.parts;
    Tile t;
    t.rows = rows;
    t.math = key.math;
    t.aStride = isDot ? layout::dotRowBytes(key.k) : strideX;
    t.aStep = isDot ? rowDotBytes(e.target, key.math) : kElem;
    t.a = isDot ? e.at(scratch, e.mul(e.sub(blockRow, firstRow), t.aStride)) : e.at(x, e.mul(blockRow, strideX));
    t.a = e.at(t.a, e.mul(firstK, t.aStep));
    t.b = e.at(weights, e.mul(partColumns, weightBytes));
    if (isI8()) // groups are parts of the one chunk
      t.b = e.at(t.b, e.mul(firstK, panelRowBytes));
    t.bStride = e.constant(panelRowBytes);
    t.bAlignment = 64;
    t.bElem = key.storage;
    t.count = countK;
    t.isCountEven = depth % 2 == 0;
    for (unsigned p = 0; p < shape.panels; ++p)
      for (unsigned j = 0; j < width; ++j)
        t.bOffsets.push_back(p * panelBytes + j * e.lanesPerVector * weightBytes);
    t.eachTurn = [&, shape](Value k, int64_t steps) { emitPrefetch(shape, k, steps); };
    Value to = e.at(blockSums, e.mul(partColumns, kElem));
    auto placeOf = [&](unsigned p, unsigned row) { return (p * kWideRows + row) * kSumsRowBytes; };
    SmallVector<Value> init;
    if (chunks > 1) { // several panels have one chunk, and begin with zeros
      Value from = e.select(isFirstChunk, zeros, to);
      Value step = e.select(isFirstChunk, e.constant(0), e.constant(kSumsRowBytes));
      for (unsigned i = 0; i < rows; ++i)
        for (unsigned p = 0; p < shape.panels; ++p)
          llvm::append_range(init, e.load(e.at(from, e.mul(step, i)), width, 64));
    }
    SmallVector<Value> result = emitTile(e, t, init);
    for (unsigned p = 0; p < shape.panels; ++p)
      for (unsigned i = 0; i < rows; ++i) {
        Lanes row(ArrayRef<Value>(result).slice((i * shape.panels + p) * width, width));
        e.store(row, e.at(to, placeOf(p, i)), 64); // f32, or i32 where the sums are
      }
  }

  /// In a turn of `steps` steps from k on. Where there is more than one tile, each has a line or less for each step.
  void emitPrefetch(Shape shape, Value k, int64_t steps) {
    if (isI8())
      k = e.add(k, firstK);
    int64_t lines = layout::ceilDiv(panelRowBytes, 64);
    if (shape.panels == 1) {
      Value address = e.at(prefetchFrom, e.mul(k, prefetchStride));
      for (int64_t line = 0; line < steps * (e.target.nearRows ? lines : 1); ++line)
        e.prefetch(e.at(address, line * 64));
      return;
    }
    if (!e.target.nearRows)
      return;
    Value address = e.at(weights, e.mul(e.add(k, kWideAheadBytes / panelRowBytes / shape.panels), panelRowBytes));
    for (unsigned p = 0; p < shape.panels; ++p)
      for (int64_t line = 0; line < steps * lines; ++line)
        e.prefetch(e.at(address, p * panelBytes + line * 64));
  }

  void emitEpilogue() {
    e.loop(e.constant(0), together, 1, [&](Value p) {
      Value column = e.mul(e.add(panel, p), kSumsRowBytes);
      Value from = e.at(isI8() ? i8Sums : blockSums, e.mul(p, kWideRows * kSumsRowBytes));
      Value rowOffset = e.add(e.mul(blockRow, strideOut), column);
      e.loop(e.constant(0), blockRows, 1, [&](Value row) {
        Value offset = e.add(rowOffset, e.mul(row, strideOut));
        Value source = e.at(from, e.mul(row, kSumsRowBytes));
        bool cut = storedCols % BATTEN_PANEL_COLS != 0 && panels > 1;
        unsigned always = cut ? e.laneVectors : vectors;
        emitEpilogueVectors(source, column, offset, 0, always);
        if (cut)
          e.when(e.less(column, e.constant((panels - 1) * kSumsRowBytes)),
                 [&] { emitEpilogueVectors(source, column, offset, always, vectors); });
      });
    });
  }

  /// i8 goes by fewer vectors at a time: its scales take registers too.
  void emitEpilogueVectors(Value source, Value column, Value offset, unsigned begin, unsigned end) {
    if (key.math == layout::Elem::I8 && end - begin > e.laneVectors) {
      emitEpilogueVectors(source, column, offset, begin, begin + e.laneVectors);
      emitEpilogueVectors(source, column, offset, begin + e.laneVectors, end);
      return;
    }
    int64_t skip = begin * e.lanesPerVector * kElem;
    unsigned count = end - begin;
    Lanes value = e.load(e.at(source, skip), count, 64);
    if (key.bias)
      value = e.add(value, e.load(e.at(e.at(bias, column), skip), count, 64));
    value = emitActivation(e, key.act, value);
    if (key.residual)
      value = e.add(value, e.load(e.at(e.at(residual, offset), skip), count, 64));
    e.store(value, e.at(e.at(out, offset), skip), 64);
  }

  EmitterContext &e;
  const KernelKey &key;
  bool isDot;
  int64_t panels, storedCols;
  unsigned vectors, accumulators; ///< of a panel; of a tile, at most
  Shape usual;
  unsigned tileRows;
  int64_t weightBytes, depth; ///< of a column at one step along k, and these steps
  int64_t chunkRows, chunks;  ///< steps of a chunk
  int64_t panelRowBytes, panelBytes, strideX, strideOut;
  Value x, w, bias, residual, out, scratch, sums, i8Sums, zeros;
  Value next, nextBytes, slabs;
  Value firstRow, rowCount, panelEnd, afterSlab, bytesAfterSlab;                       // of the slab
  Value panel, together, parts, special, blocks, tiles, isNear, isChunked, chunkCount; // of the panels at hand
  Value firstK, countK, isFirstChunk, isLastChunk, weights, prefetchStride;            // of the chunk
  Value blockRow, blockRows, partColumns, isLastPart, blockSums, prefetchFrom;         // of the tile
};

} // namespace

void batten::emitLinear(EmitterContext &e, const KernelKey &key) { LinearEmitter(e, key).emit(); }
