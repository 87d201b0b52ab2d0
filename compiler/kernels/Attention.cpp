// attention: softmax(scale * q k^T) v inside each sequence, over rows [q of all heads | k of all kv heads | v]. A task is up to 64 query
// rows of a head; it runs in tiles of tileRows, each over key blocks of 512 counted from the sequence's start:
//
//   scores   tile x keys, a chain over the head width (keys transposed once a sequence and head into panels in scratch)
//   softmax  row by row: maximum, then p = exp2(s - max) in place of s, and its sum in 16 virtual lanes
//   output   tile x width, a chain over the keys, kept in scratch; a later block rescales it first
//
// Rows past the sequence's end are never read: the last key stands in for keys up to a multiple of 16, and p is set to
// zero there. Values are read from the qkv rows; those of long sequences are packed first. Where p and v come from
// doesn't change a bit.
#include "batten/kernel.h"
#include "compiler/kernels/Emitters.h"
#include "compiler/kernels/Tile.h"
#include "compiler/kernels/VectorMath.h"
#include "compiler/layout/AttentionScratch.h"
#include "compiler/layout/RowStride.h"

#include <cstddef>
#include <limits>

using namespace batten;
using namespace mlir;

namespace {

constexpr int64_t kElem = 4;
constexpr int64_t kPanelRowBytes = BATTEN_PANEL_COLS * kElem;
constexpr int64_t kLaneBytes = BATTEN_LANES * kElem;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

class AttentionEmitter {
public:
  AttentionEmitter(EmitterContext &e, const KernelKey &key)
      : e(e), key(key), width(key.headWidth), lanes(e.lanesPerVector),
        strideIn(layout::rowStrideBytes(key.qkvWidth(), kElem)),
        strideOut(layout::rowStrideBytes(key.heads * width, kElem)), places(layout::attentionScratch(width)),
        scoreStride(places.scoreStride * kElem), outputStride(places.outputStride * kElem),
        scale(static_cast<float>(static_cast<double>(key.scale) * 1.4426950408889634)) {}

  void emit() {
    Value scratch = e.loadPointer(e.args, offsetof(batten_kernel_args_t, scratch));
    Value bytes = e.loadU64(e.at(e.args, offsetof(batten_kernel_args_t, scratchBytes)));
    scratch = e.at(scratch, e.mul(bytes, e.worker));
    scores = scratch;
    outputs = e.at(scratch, places.outputs);
    laneSums = e.at(scratch, places.lanes);
    maxima = e.at(scratch, places.maxima);
    keys = e.at(scratch, places.keys);
    taskStart = e.loadPointer(e.batch, offsetof(batten_kernel_batch_t, taskStart));
    Value offsets = e.loadPointer(e.batch, offsetof(batten_kernel_batch_t, cuSeqlens));
    Value heads = e.constant(key.heads);

    e.loopBelow({e.first, findSequence(e.div(e.first, heads))}, e.last, [&](ValueRange state) -> SmallVector<Value> {
      Value unit = state[0], sequence = state[1];
      Value begin = entry(taskStart, sequence), end = entry(taskStart, e.add(sequence, 1));
      Value isInside = e.less(unit, e.mul(end, heads));
      // An empty sequence has no tasks; dividing by one does no harm then.
      taskCount = e.sub(end, begin);
      taskCount = e.select(e.less(begin, end), taskCount, e.constant(1));
      Value place = e.sub(unit, e.mul(begin, heads));
      Value head = e.div(place, taskCount), task = e.rem(place, taskCount);
      Value taskEnd = e.minimum(taskCount, e.add(task, e.sub(e.last, unit)));
      e.when(isInside, [&] {
        Value row = entry(offsets, sequence);
        length = e.sub(entry(offsets, e.add(sequence, 1)), row);
        Value column = e.mul(head, width * kElem), kvColumn = column;
        if (key.kvHeads)
          kvColumn = e.mul(e.div(head, e.constant(key.heads / key.kvHeads)), width * kElem);
        Value inRow = e.at(e.operands[0], e.mul(row, strideIn));
        queryRows = e.at(inRow, column);
        keyRows = e.at(e.at(inRow, key.heads * width * kElem), kvColumn);
        valueRows = e.at(keyRows, key.kvHeadCount() * width * kElem);
        outRows = e.at(e.at(e.operands[1], e.mul(row, strideOut)), column);
        emitHead(task, taskEnd);
      });
      Value next = e.add(unit, e.sub(taskEnd, task));
      return {e.select(isInside, next, unit), e.select(isInside, sequence, e.add(sequence, 1))};
    });
  }

private:
  Value entry(Value array, Value index) { return e.loadU32(e.at(array, e.mul(index, sizeof(uint32_t)))); }

  /// The last sequence that starts at or before the task: so never an empty one, if the task exists.
  Value findSequence(Value task) {
    Value count = e.loadU32(e.at(e.batch, offsetof(batten_kernel_batch_t, rows) + 4 * BATTEN_ROWS_SEQS));
    auto found = e.loopWhile(
        {e.constant(0), count}, [&](ValueRange range) { return e.less(e.add(range[0], 1), range[1]); },
        [&](ValueRange range) -> SmallVector<Value> {
          Value middle = e.div(e.add(range[0], range[1]), e.constant(2));
          Value isAfter = e.less(task, entry(taskStart, middle));
          return {e.select(isAfter, range[0], middle), e.select(isAfter, middle, range[1])};
        });
    return found[0];
  }

  /// Tasks [task, taskEnd) of one head of one sequence.
  void emitHead(Value task, Value taskEnd) {
    transposeKeys();
    Value isLong = e.less(e.constant(layout::kPackValuesAbove), length);
    Value paddedLength = e.mul(e.ceilDiv(length, BATTEN_PANEL_COLS), BATTEN_PANEL_COLS);
    Value packed = e.at(keys, e.mul(paddedLength, width * kElem));
    e.when(isLong, [&] { packValues(packed); });
    valueRows = e.select(isLong, packed, valueRows);
    valueStride = e.select(isLong, e.constant(places.valueStride * kElem), e.constant(strideIn));
    e.loop(task, taskEnd, 1, [&](Value current) {
      auto [taskRow, taskRows] = e.balanced(length, taskCount, current);
      Value first = taskRow, count = taskRows, tiles = e.ceilDiv(taskRows, e.target.tileRows);
      e.loop(e.constant(0), tiles, 1, [&](Value tile) {
        auto [row, rows] = e.balanced(count, tiles, tile);
        tileRow = e.add(first, row);
        tileRows = rows;
        emitTileRows();
      });
    });
  }

  void emitTileRows() {
    e.loop(e.constant(0), tileRows, 1, [&](Value row) {
      e.storeFloat(e.constantFloat(kMinusInfinity), e.at(maxima, e.mul(row, kElem)));
      e.store(e.splat(0.0f), e.at(laneSums, e.mul(row, kLaneBytes)), 64);
      Value output = e.at(outputs, e.mul(row, outputStride));
      for (int64_t column = 0; column < width; column += BATTEN_LANES)
        e.store(e.splat(0.0f), e.at(output, column * kElem), 64);
    });
    e.loop(e.constant(0), length, BATTEN_KEY_BLOCK, [&](Value block) {
      keyBlock = block;
      blockKeys = e.minimum(e.sub(length, block), e.constant(BATTEN_KEY_BLOCK));
      e.dispatch(tileRows, rowCases(e.target.tileRows), [&](int64_t rows) { emitScores(rows); });
      emitSoftmax();
      e.dispatch(tileRows, rowCases(e.target.tileRows), [&](int64_t rows) { emitOutputs(rows); });
    });
    e.loop(e.constant(0), tileRows, 1, [&](Value row) {
      Lanes sums = e.load(e.at(laneSums, e.mul(row, kLaneBytes)), 64);
      Lanes factor = e.splat(e.divFloat(e.constantFloat(1.0f), e.reduceAdd(sums)), 1);
      Value from = e.at(outputs, e.mul(row, outputStride));
      Value to = e.at(outRows, e.mul(e.add(tileRow, row), strideOut));
      for (int64_t column = 0; column < width; column += lanes) {
        Lanes value = e.mul(e.load(e.at(from, column * kElem), 1, 64), factor);
        if (column + lanes <= width)
          e.store(value, e.at(to, column * kElem));
        else
          e.storeMasked(value, e.at(to, column * kElem), e.maskBelow(width - column, 1));
      }
    });
  }

  /// scores[i][j] = q[i] . k[j] for the block's keys, rounded up to 16.
  void emitScores(unsigned rows) {
    int64_t cols = e.target.tileCols();
    Value padded = e.mul(e.ceilDiv(blockKeys, BATTEN_LANES), BATTEN_LANES);
    Value whole = e.mul(e.div(padded, e.constant(cols)), cols);
    e.loop(e.constant(0), whole, cols, [&](Value key) { emitScoreTile(rows, e.target.tileVectors, key); });
    if (cols > BATTEN_LANES)
      e.when(e.less(whole, padded), [&] { emitScoreTile(rows, e.laneVectors, whole); });
  }

  void emitScoreTile(unsigned rows, unsigned vectors, Value key) {
    Tile t;
    t.rows = rows;
    t.a = e.at(queryRows, e.mul(tileRow, strideIn));
    t.aStride = strideIn;
    t.b = keyPanel(e.add(keyBlock, key));
    t.bStride = e.constant(kPanelRowBytes);
    t.bAlignment = 64;
    for (unsigned j = 0; j < vectors; ++j)
      t.bOffsets.push_back(j * lanes * kElem);
    t.count = e.constant(width);
    SmallVector<Value> sums = emitTile(e, t);
    Value to = e.at(scores, e.mul(key, kElem));
    for (unsigned i = 0; i < rows; ++i)
      e.store(Lanes(ArrayRef<Value>(sums).slice(i * vectors, vectors)), e.at(to, i * scoreStride), 64);
  }

  /// Where key number `index` is in the panels, for its first dimension.
  Value keyPanel(Value index) {
    Value panel = e.div(index, e.constant(BATTEN_PANEL_COLS)), column = e.rem(index, e.constant(BATTEN_PANEL_COLS));
    return e.at(e.at(keys, e.mul(panel, width * kPanelRowBytes)), e.mul(column, kElem));
  }

  /// Scores of the tile to p, in two loops over its rows: maxima of many rows are in flight at once that way.
  void emitSoftmax() {
    // The last 1 to 16 keys go by a mask.
    Value whole = e.mul(e.div(e.sub(blockKeys, e.constant(1)), e.constant(BATTEN_LANES)), BATTEN_LANES);
    wholeBytes = e.mul(whole, kElem);
    Value rest = e.sub(blockKeys, whole);
    e.loop(e.constant(0), tileRows, 1, [&](Value row) { emitMaximum(row, e.maskBelow(rest)); });
    e.loop(e.constant(0), tileRows, 1, [&](Value row) { emitWeights(row, e.maskBelow(rest)); });
  }

  /// Scales a row's scores and takes their maximum; from the second key block on rescales what was summed up before.
  void emitMaximum(Value row, const Lanes &mask) {
    Value line = e.at(scores, e.mul(row, scoreStride));
    Lanes factor = e.splat(scale);
    auto scaleAt = [&](Value address) {
      Lanes score = e.mul(e.load(address, 64), factor);
      e.store(score, address, 64);
      return score;
    };
    Lanes most =
        e.loop(e.constant(0), wholeBytes, kLaneBytes, e.splat(kMinusInfinity),
               [&](Value offset, ValueRange carried) { return e.max(Lanes(carried), scaleAt(e.at(line, offset))); });
    most = e.max(most, e.select(mask, scaleAt(e.at(line, wholeBytes)), e.splat(kMinusInfinity)));
    Value maximum = e.at(maxima, e.mul(row, kElem));
    Value before = e.loadFloat(maximum), now = e.maxFloat(before, e.reduceMax(most));
    e.storeFloat(now, maximum);
    e.when(e.less(e.constant(0), keyBlock), [&] {
      Lanes change = emitExp2(e, e.sub(e.splat(before), e.splat(now)));
      Value sums = e.at(laneSums, e.mul(row, kLaneBytes)), output = e.at(outputs, e.mul(row, outputStride));
      e.store(e.mul(e.load(sums, 64), change), sums, 64);
      for (int64_t column = 0; column < width; column += BATTEN_LANES)
        e.store(e.mul(e.load(e.at(output, column * kElem), 64), change), e.at(output, column * kElem), 64);
    });
  }

  /// p = exp2(score - maximum), and its sum.
  void emitWeights(Value row, const Lanes &mask) {
    Value line = e.at(scores, e.mul(row, scoreStride)), sums = e.at(laneSums, e.mul(row, kLaneBytes));
    Lanes shift = e.splat(e.loadFloat(e.at(maxima, e.mul(row, kElem))));
    auto weigh = [&](Value address) { return emitExp2(e, e.sub(e.load(address, 64), shift)); };
    Lanes total =
        e.loop(e.constant(0), wholeBytes, kLaneBytes, e.load(sums, 64), [&](Value offset, ValueRange carried) {
          Lanes p = weigh(e.at(line, offset));
          e.store(p, e.at(line, offset), 64);
          return e.add(Lanes(carried), p);
        });
    Lanes p = e.select(mask, weigh(e.at(line, wholeBytes)), e.splat(0.0f));
    e.store(p, e.at(line, wholeBytes), 64);
    e.store(e.add(total, p), sums, 64);
  }

  /// outputs[i] += p[i][j] * v[j] over the block's keys, a tile's width of dimensions at a time.
  void emitOutputs(unsigned rows) {
    int64_t cols = e.target.tileCols(), whole = width / cols * cols;
    Value block = e.at(valueRows, e.mul(keyBlock, valueStride));
    if (whole)
      e.loop(e.constant(0), e.constant(whole * kElem), cols * kElem, [&](Value offset) {
        emitOutputColumns(rows, e.at(block, offset), e.at(outputs, offset), e.target.tileVectors, {});
      });
    if (int64_t rest = width - whole) {
      unsigned vectors = static_cast<unsigned>(layout::ceilDiv(rest, lanes));
      Lanes mask;
      if (rest % lanes)
        mask = e.maskBelow(rest % lanes, 1);
      emitOutputColumns(rows, e.at(block, whole * kElem), e.at(outputs, whole * kElem), vectors, mask);
    }
  }

  void emitOutputColumns(unsigned rows, Value from, Value to, unsigned vectors, const Lanes &lastMask) {
    Tile t;
    t.rows = rows;
    t.a = scores;
    t.aStride = scoreStride;
    t.b = from;
    t.bStride = valueStride;
    for (unsigned j = 0; j < vectors; ++j)
      t.bOffsets.push_back(j * lanes * kElem);
    t.lastMask = lastMask;
    t.count = blockKeys;
    SmallVector<Value> sums;
    for (unsigned i = 0; i < rows; ++i)
      llvm::append_range(sums, e.load(e.at(to, i * outputStride), vectors, 64));
    sums = emitTile(e, t, sums);
    for (unsigned i = 0; i < rows; ++i)
      e.store(Lanes(ArrayRef<Value>(sums).slice(i * vectors, vectors)), e.at(to, i * outputStride), 64);
  }

  /// Keys into panels [L/32][width][32], by square blocks in registers. Past the last key it is repeated, up to a multiple of 16.
  void transposeKeys() {
    int64_t whole = width / lanes * lanes;
    Value padded = e.mul(e.ceilDiv(length, BATTEN_LANES), BATTEN_LANES);
    Value lastKey = e.sub(length, e.constant(1));
    e.loop(e.constant(0), padded, lanes, [&](Value index) {
      Value to = keyPanel(index);
      SmallVector<Value> rows;
      for (int64_t i = 0; i < lanes; ++i)
        rows.push_back(e.at(keyRows, e.mul(e.minimum(e.add(index, i), lastKey), strideIn)));
      if (whole)
        e.loop(e.constant(0), e.constant(whole), lanes, [&](Value dimension) {
          SmallVector<Value> block;
          for (Value row : rows)
            block.push_back(e.load(e.at(row, e.mul(dimension, kElem)), 1, 4)[0]);
          storeTransposed(block, e.at(to, e.mul(dimension, kPanelRowBytes)), lanes);
        });
      if (whole != width) {
        SmallVector<Value> block;
        for (Value row : rows)
          block.push_back(e.loadMasked(e.at(row, whole * kElem), e.maskBelow(width - whole, 1))[0]);
        storeTransposed(block, e.at(to, whole * kPanelRowBytes), width - whole);
      }
    });
  }

  void storeTransposed(SmallVector<Value> block, Value to, int64_t count) {
    e.transpose(block);
    for (int64_t i = 0; i < count; ++i)
      e.store({block[i]}, e.at(to, i * kPanelRowBytes), 64);
  }

  void packValues(Value to) {
    e.loop(e.constant(0), length, 1, [&](Value index) {
      Value from = e.at(valueRows, e.mul(index, strideIn)), row = e.at(to, e.mul(index, places.valueStride * kElem));
      for (int64_t column = 0; column < width; column += lanes) {
        Value address = e.at(from, column * kElem);
        Lanes value =
            column + lanes <= width ? e.load(address, 1, 4) : e.loadMasked(address, e.maskBelow(width - column, 1));
        e.store(value, e.at(row, column * kElem), 64);
      }
    });
  }

  EmitterContext &e;
  const KernelKey &key;
  int64_t width, lanes, strideIn, strideOut;
  layout::AttentionScratch places;
  int64_t scoreStride, outputStride;
  float scale;
  Value scores, outputs, laneSums, maxima, keys, taskStart;
  Value taskCount, length, queryRows, keyRows, valueRows, outRows, valueStride; // of the sequence and head
  Value tileRow, tileRows, keyBlock, blockKeys, wholeBytes;                     // of the tile
};

} // namespace

void batten::emitAttention(EmitterContext &e, const KernelKey &key) { AttentionEmitter(e, key).emit(); }
