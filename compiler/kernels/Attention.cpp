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
//
// With a window a row has keys [row - window, row + window] of its sequence; a tile reads those of all its rows, and only
// what a row has itself goes into its maximum, its sums and its output:
//
//   key      .  .  .  .  .  .  .  .
//   row 0    x  x  x  x  x              scores are computed for the whole tile, outliers made -inf in the softmax;
//   row 1       x  x  x  x  x           of the outputs the keys that all rows have (here 2 to 4) run as a tile, those
//   row 2          x  x  x  x  x        before and after row by row: 0 * v would not do, v may be NaN
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
/// Dimensions that a single row takes at once: as many chains as fit 16 registers of 256 bits beside their factor.
constexpr unsigned kEdgeCols = 64;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

class AttentionEmitter {
public:
  AttentionEmitter(EmitterContext &e, const KernelKey &key)
      : e(e), key(key), width(key.headWidth), lanes(e.lanesPerVector),
        strideIn(layout::rowStrideBytes(key.qkvWidth(), kElem)),
        strideOut(layout::rowStrideBytes(key.heads * width, kElem)), places(layout::attentionScratch(width)),
        scoreStride(places.scoreStride * kElem), outputStride(places.outputStride * kElem),
        window(key.window.value_or(0)), scale(static_cast<float>(static_cast<double>(key.scale) * 1.4426950408889634)) {
  }

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
    if (!key.window) {
      firstKey = e.constant(0);
      emitTasks(task, taskEnd, length);
      return;
    }
    // A few tasks at a time, whose keys overlap: transposed once for all of them.
    e.loop(task, taskEnd, layout::kWindowTasks, [&](Value group) {
      Value groupEnd = e.minimum(taskEnd, e.add(group, layout::kWindowTasks));
      Value row = e.balanced(length, taskCount, group).first;
      auto [lastRow, lastRows] = e.balanced(length, taskCount, e.sub(groupEnd, e.constant(1)));
      firstKey = e.mul(e.div(firstSeen(row), e.constant(BATTEN_PANEL_COLS)), BATTEN_PANEL_COLS);
      emitTasks(group, groupEnd, seenBelow(e.add(lastRow, lastRows)));
    });
  }

  /// Tasks [task, taskEnd), which see keys [firstKey, keyEnd).
  void emitTasks(Value task, Value taskEnd, Value keyEnd) {
    transposeKeys(keyEnd);
    Value isLong = e.less(e.constant(layout::kPackValuesAbove), length);
    Value keyCount = e.mul(e.ceilDiv(e.sub(keyEnd, firstKey), BATTEN_PANEL_COLS), BATTEN_PANEL_COLS);
    Value packed = e.at(keys, e.mul(keyCount, width * kElem));
    e.when(isLong, [&] { packValues(packed, keyEnd); });
    values = e.select(isLong, packed, e.at(valueRows, e.mul(firstKey, strideIn)));
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

  /// The first key that a row of the sequence sees.
  Value firstSeen(Value row) { return e.sub(larger(row, e.constant(window)), e.constant(window)); }
  /// One past the last key that the rows below `end` see.
  Value seenBelow(Value end) { return e.minimum(e.add(end, window), length); }
  Value larger(Value a, Value c) { return e.select(e.less(a, c), c, a); }

  void emitTileRows() {
    e.loop(e.constant(0), tileRows, 1, [&](Value row) {
      e.storeFloat(e.constantFloat(kMinusInfinity), e.at(maxima, e.mul(row, kElem)));
      e.store(e.splat(0.0f), e.at(laneSums, e.mul(row, kLaneBytes)), 64);
      Value output = e.at(outputs, e.mul(row, outputStride));
      for (int64_t column = 0; column < width; column += BATTEN_LANES)
        e.store(e.splat(0.0f), e.at(output, column * kElem), 64);
    });
    Value begin = e.constant(0), end = length, firstBlock = begin;
    if (key.window) {
      begin = firstSeen(tileRow);
      end = seenBelow(e.add(tileRow, tileRows));
      firstBlock = e.mul(e.div(begin, e.constant(BATTEN_KEY_BLOCK)), BATTEN_KEY_BLOCK);
    }
    e.loop(firstBlock, end, BATTEN_KEY_BLOCK, [&](Value block) {
      keyBlock = block;
      blockKeys = e.minimum(e.sub(end, block), e.constant(BATTEN_KEY_BLOCK));
      blockBegin = key.window ? e.sub(larger(begin, block), block) : e.constant(0);
      e.dispatch(tileRows, rowCases(e.target.tileRows), [&](int64_t rows) { emitScores(rows); });
      if (key.window) {
        emitWindowSoftmax();
        emitWindowOutputs();
        return;
      }
      emitSoftmax();
      e.dispatch(tileRows, rowCases(e.target.tileRows), [&](int64_t rows) {
        emitOutputs(rows, e.constant(0), {e.constant(0), blockKeys}, e.target.tileVectors);
      });
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

  /// scores[i][j] = q[i] . k[j] for the block's keys, rounded up to 16, and down to a tile's width.
  void emitScores(unsigned rows) {
    int64_t cols = e.target.tileCols();
    Value padded = e.mul(e.ceilDiv(blockKeys, BATTEN_LANES), BATTEN_LANES);
    Value whole = e.mul(e.div(padded, e.constant(cols)), cols);
    Value begin = key.window ? e.mul(e.div(blockBegin, e.constant(cols)), cols) : blockBegin;
    e.loop(begin, whole, cols, [&](Value key) { emitScoreTile(rows, e.target.tileVectors, key); });
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
    t.isCountEven = width % 2 == 0;
    SmallVector<Value> sums = emitTile(e, t);
    Value to = e.at(scores, e.mul(key, kElem));
    for (unsigned i = 0; i < rows; ++i)
      e.store(Lanes(ArrayRef<Value>(sums).slice(i * vectors, vectors)), e.at(to, i * scoreStride), 64);
  }

  /// Where key number `index` is in the panels, for its first dimension.
  Value keyPanel(Value index) {
    index = e.sub(index, firstKey);
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
    emitRescale(row, most, e.less(e.constant(0), keyBlock));
  }

  /// Takes a block's maximum into the row's. Where the row has keys in an earlier block, rescales what came of them.
  void emitRescale(Value row, const Lanes &most, Value isLater) {
    Value maximum = e.at(maxima, e.mul(row, kElem));
    Value before = e.loadFloat(maximum), now = e.maxFloat(before, e.reduceMax(most));
    e.storeFloat(now, maximum);
    e.when(isLater, [&] {
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

  /// Keys [begin, end) of the block; none where begin >= end.
  struct KeyRange {
    Value begin, end;
  };

  /// The keys of the block that a row of the tile sees.
  KeyRange keysOf(Value row) {
    Value absolute = e.add(tileRow, row), blockEnd = e.add(keyBlock, BATTEN_KEY_BLOCK);
    Value end = e.minimum(larger(seenBelow(e.add(absolute, 1)), keyBlock), blockEnd);
    return {e.sub(larger(firstSeen(absolute), keyBlock), keyBlock), e.sub(end, keyBlock)};
  }

  void emitWindowSoftmax() {
    auto eachRow = [&](void (AttentionEmitter::*emitRow)(Value, const KeyRange &)) {
      e.loop(e.constant(0), tileRows, 1, [&](Value row) {
        KeyRange keys = keysOf(row);
        e.when(e.less(keys.begin, keys.end), [&] { (this->*emitRow)(row, keys); });
      });
    };
    eachRow(&AttentionEmitter::emitWindowMaximum);
    eachRow(&AttentionEmitter::emitWindowWeights);
  }

  /// Offset in bytes of the 16 keys that a key is one of.
  Value chunkOf(Value index) { return e.mul(e.div(index, e.constant(BATTEN_LANES)), kLaneBytes); }

  /// As emitMaximum, over a row's own keys; the rest of their first and last 16 becomes -inf.
  void emitWindowMaximum(Value row, const KeyRange &keys) {
    Value line = e.at(scores, e.mul(row, scoreStride));
    Value firstChunk = chunkOf(keys.begin), lastChunk = chunkOf(e.sub(keys.end, e.constant(1)));
    Lanes factor = e.splat(scale), none = e.splat(kMinusInfinity);
    auto lane = [&](Value index, Value chunk) { return e.maskBelow(e.sub(index, e.div(chunk, e.constant(kElem)))); };
    auto scaleAt = [&](Value chunk, const Lanes &before, const Lanes &below) {
      Value address = e.at(line, chunk);
      Lanes score = e.mul(e.load(address, 64), factor);
      if (!below.empty())
        score = e.select(below, score, none);
      if (!before.empty())
        score = e.select(before, none, score);
      e.store(score, address, 64);
      return score;
    };
    Lanes most = scaleAt(firstChunk, lane(keys.begin, firstChunk), lane(keys.end, firstChunk));
    Value second = e.add(firstChunk, kLaneBytes), end = e.add(lastChunk, kLaneBytes);
    most = e.loop(second, lastChunk, kLaneBytes, most,
                  [&](Value chunk, ValueRange carried) { return e.max(Lanes(carried), scaleAt(chunk, {}, {})); });
    // The last 16 keys, unless they were the first.
    most = e.loop(larger(second, lastChunk), end, kLaneBytes, most, [&](Value chunk, ValueRange carried) {
      return e.max(Lanes(carried), scaleAt(chunk, {}, lane(keys.end, lastChunk)));
    });
    emitRescale(row, most, e.less(firstSeen(e.add(tileRow, row)), keyBlock));
  }

  /// As emitWeights, over a row's own keys: exp2(-inf - maximum) is the zero that the rest of their 16 counts.
  void emitWindowWeights(Value row, const KeyRange &keys) {
    Value line = e.at(scores, e.mul(row, scoreStride)), sums = e.at(laneSums, e.mul(row, kLaneBytes));
    Lanes shift = e.splat(e.loadFloat(e.at(maxima, e.mul(row, kElem))));
    Value end = e.add(chunkOf(e.sub(keys.end, e.constant(1))), kLaneBytes);
    Lanes total = e.loop(chunkOf(keys.begin), end, kLaneBytes, e.load(sums, 64), [&](Value chunk, ValueRange carried) {
      Value address = e.at(line, chunk);
      Lanes p = emitExp2(e, e.sub(e.load(address, 64), shift));
      e.store(p, address, 64);
      return e.add(Lanes(carried), p);
    });
    e.store(total, sums, 64);
  }

  /// The keys that all rows see as a tile; those before, and then those after, row by row.
  void emitWindowOutputs() {
    Value begin = keysOf(e.sub(tileRows, e.constant(1))).begin, end = keysOf(e.constant(0)).end;
    Value isShared = e.less(begin, end);
    begin = e.select(isShared, begin, blockKeys);
    end = e.select(isShared, end, blockKeys);
    auto edge = [&](function_ref<KeyRange(const KeyRange &)> part) {
      e.loop(e.constant(0), tileRows, 1, [&](Value row) {
        KeyRange keys = part(keysOf(row));
        e.when(e.less(keys.begin, keys.end), [&] { emitOutputs(1, row, keys, kEdgeCols / lanes); });
      });
    };
    edge([&](const KeyRange &keys) { return KeyRange{keys.begin, e.minimum(keys.end, begin)}; });
    e.when(isShared, [&] {
      e.dispatch(tileRows, rowCases(e.target.tileRows),
                 [&](int64_t rows) { emitOutputs(rows, e.constant(0), {begin, end}, e.target.tileVectors); });
    });
    edge([&](const KeyRange &keys) { return KeyRange{larger(keys.begin, end), keys.end}; });
  }

  /// outputs[i] += p[i][j] * v[j] over keys of the block, for that many rows from firstRow on, some vectors of dimensions
  /// at a time.
  void emitOutputs(unsigned rows, Value firstRow, const KeyRange &range, unsigned vectors) {
    int64_t cols = vectors * lanes, whole = width / cols * cols;
    Tile t;
    t.rows = rows;
    t.a = e.at(e.at(scores, e.mul(firstRow, scoreStride)), e.mul(range.begin, kElem));
    t.aStride = scoreStride;
    t.bStride = valueStride;
    t.count = e.sub(range.end, range.begin);
    Value from = e.at(values, e.mul(e.sub(e.add(keyBlock, range.begin), firstKey), valueStride));
    Value to = e.at(outputs, e.mul(firstRow, outputStride));
    if (whole)
      e.loop(e.constant(0), e.constant(whole * kElem), cols * kElem,
             [&](Value offset) { emitOutputColumns(t, e.at(from, offset), e.at(to, offset), vectors); });
    if (int64_t rest = width - whole) {
      if (rest % lanes)
        t.lastMask = e.maskBelow(rest % lanes, 1);
      emitOutputColumns(t, e.at(from, whole * kElem), e.at(to, whole * kElem),
                        static_cast<unsigned>(layout::ceilDiv(rest, lanes)));
    }
  }

  void emitOutputColumns(Tile t, Value from, Value to, unsigned vectors) {
    t.b = from;
    for (unsigned j = 0; j < vectors; ++j)
      t.bOffsets.push_back(j * lanes * kElem);
    SmallVector<Value> sums;
    for (unsigned i = 0; i < t.rows; ++i)
      llvm::append_range(sums, e.load(e.at(to, i * outputStride), vectors, 64));
    sums = emitTile(e, t, sums);
    for (unsigned i = 0; i < t.rows; ++i)
      e.store(Lanes(ArrayRef<Value>(sums).slice(i * vectors, vectors)), e.at(to, i * outputStride), 64);
  }

  /// Keys [firstKey, end) into panels [][width][32], by square blocks in registers. Past the last key it is repeated, up to a
  /// multiple of 16.
  void transposeKeys(Value end) {
    int64_t whole = width / lanes * lanes;
    Value padded = e.mul(e.ceilDiv(end, BATTEN_LANES), BATTEN_LANES);
    Value lastKey = e.sub(end, e.constant(1));
    e.loop(firstKey, padded, lanes, [&](Value index) {
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

  void packValues(Value to, Value end) {
    e.loop(firstKey, end, 1, [&](Value index) {
      Value from = e.at(valueRows, e.mul(index, strideIn));
      Value row = e.at(to, e.mul(e.sub(index, firstKey), places.valueStride * kElem));
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
  int64_t window;
  float scale;
  Value scores, outputs, laneSums, maxima, keys, taskStart;
  Value taskCount, length, queryRows, keyRows, valueRows, outRows; // of the sequence and head
  Value firstKey, values, valueStride; // of a few tasks: the first key in scratch, its values, wherever they are
  Value tileRow, tileRows, keyBlock, blockBegin, blockKeys, wholeBytes; // of the tile
};

} // namespace

void batten::emitAttention(EmitterContext &e, const KernelKey &key) { AttentionEmitter(e, key).emit(); }
