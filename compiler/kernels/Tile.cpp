// The inner loop. With few rows and many vectors the scalars stay in registers and the vectors stream; otherwise the
// vectors stay and the scalars stream: a tile takes rows * vectors + min(rows, vectors) + 1 registers.
#include "compiler/kernels/Tile.h"
#include "compiler/kernels/Dot.h"

using namespace batten;
using namespace mlir;

SmallVector<Value> batten::emitTile(EmitterContext &e, const Tile &tile, ValueRange init) {
  unsigned vectors = tile.bOffsets.size(), rows = tile.rows;
  SmallVector<Value> accumulators(init);
  Lanes zero = e.splat(0.0f, 1);
  if (accumulators.empty())
    accumulators.assign(rows * vectors, tile.math == layout::Elem::I8 ? e.asIntegers(zero)[0] : zero[0]);
  return e.loop(e.constant(0), tile.count, 1, accumulators, [&](Value k, ValueRange carried) {
    SmallVector<Value> acc(carried);
    Value aColumn = e.at(tile.a, e.mul(k, tile.aStep)), bRow = e.at(tile.b, e.mul(k, tile.bStride));
    if (tile.eachStep)
      tile.eachStep(k);
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
      return acc;
    }
    for (unsigned j = 0; j < vectors; ++j)
      held.push_back(loadB(j));
    for (unsigned i = 0; i < rows; ++i) {
      Lanes a = loadA(i);
      for (unsigned j = 0; j < vectors; ++j)
        step(i, j, a, held[j]);
    }
    return acc;
  });
}

SmallVector<int64_t> batten::rowCases(unsigned most) {
  SmallVector<int64_t> cases;
  for (unsigned rows = 1; rows <= most; ++rows)
    cases.push_back(rows);
  return cases;
}
