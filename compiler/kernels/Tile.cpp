// The inner loop. With few rows and many vectors the scalars stay in registers and the vectors stream; otherwise the
// vectors stay and the scalars stream: a tile takes rows * vectors + min(rows, vectors) + 1 registers.
#include "compiler/kernels/Tile.h"
#include "compiler/kernels/Dot.h"

using namespace batten;
using namespace mlir;

/// Tiles of at most so many accumulators take two steps a turn: larger ones have enough to do in one.
static constexpr unsigned kPairedAccumulators = 12;

/// One step along k of all accumulators, with a column of a and a row of b.
static void emitStep(EmitterContext &e, const Tile &tile, Value aColumn, Value bRow, MutableArrayRef<Value> acc) {
  unsigned vectors = tile.bOffsets.size(), rows = tile.rows;
  auto loadB = [&](unsigned j) -> Lanes {
    Value address = e.at(bRow, tile.bOffsets[j]);
    if (tile.math != layout::Elem::F32)
      return loadDotWeights(e, tile.math, address, tile.bAlignment);
    if (j + 1 == vectors && !tile.lastMask.empty())
      return e.loadMasked(address, tile.lastMask);
    return e.loadWidened(address, tile.bElem, 1, tile.bAlignment);
  };
  auto loadA = [&](unsigned i) -> Lanes {
    Value address = e.at(aColumn, i * tile.aStride);
    return tile.math == layout::Elem::F32 ? e.splat(e.loadFloat(address), 1) : splatDot(e, tile.math, address);
  };
  auto step = [&](unsigned i, unsigned j, const Lanes &a, const Lanes &b) {
    Value &sum = acc[i * vectors + j];
    sum = tile.math == layout::Elem::F32 ? e.fma(a, b, Lanes{sum})[0] : emitDot(e, tile.math, sum, a, b);
  };
  SmallVector<Lanes> held;
  if (rows < vectors) {
    for (unsigned i = 0; i < rows; ++i)
      held.push_back(loadA(i));
    for (unsigned j = 0; j < vectors; ++j) {
      Lanes b = loadB(j);
      for (unsigned i = 0; i < rows; ++i)
        step(i, j, held[i], b);
    }
    return;
  }
  for (unsigned j = 0; j < vectors; ++j)
    held.push_back(loadB(j));
  for (unsigned i = 0; i < rows; ++i) {
    Lanes a = loadA(i);
    for (unsigned j = 0; j < vectors; ++j)
      step(i, j, a, held[j]);
  }
}

SmallVector<Value> batten::emitTile(EmitterContext &e, const Tile &tile, ValueRange init) {
  unsigned count = tile.bOffsets.size() * tile.rows;
  SmallVector<Value> accumulators(init);
  Lanes zero = e.splat(0.0f, 1);
  if (accumulators.empty())
    accumulators.assign(count, tile.math == layout::Elem::I8 ? e.asIntegers(zero)[0] : zero[0]);
  int64_t steps = tile.isCountEven && tile.math == layout::Elem::F32 && tile.bElem == layout::Elem::F32 &&
                          count <= kPairedAccumulators
                      ? 2
                      : 1;
  return e.loop(e.constant(0), tile.count, steps, accumulators, [&](Value k, ValueRange carried) {
    SmallVector<Value> acc(carried);
    Value a = e.at(tile.a, e.mul(k, tile.aStep)), b = e.at(tile.b, e.mul(k, tile.bStride));
    if (tile.eachTurn)
      tile.eachTurn(k, steps);
    for (int64_t step = 0; step < steps; ++step)
      emitStep(e, tile, e.at(a, step * tile.aStep), step ? e.at(b, tile.bStride) : b, acc);
    return acc;
  });
}

SmallVector<int64_t> batten::rowCases(unsigned most) {
  SmallVector<int64_t> cases;
  for (unsigned rows = 1; rows <= most; ++rows)
    cases.push_back(rows);
  return cases;
}
