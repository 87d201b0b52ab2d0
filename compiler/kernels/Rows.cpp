// Kernels whose rows don't depend on one another: layer_norm, l2_normalize, activation, add, slice, concat_cols. A row is
// read with its pad, which may hold anything: lanes past the width enter no reduction. Output pads are written where that
// takes no extra code; what they hold means nothing.
#include "compiler/kernels/Rows.h"
#include "compiler/kernels/Emitters.h"
#include "compiler/kernels/VectorMath.h"
#include "compiler/layout/RowStride.h"

using namespace batten;
using namespace mlir;

/// Rows that layer_norm takes together.
static constexpr int64_t kRowsAtOnce = 4;

static int64_t strideOf(int64_t width) { return layout::rowStrideBytes(width, kFloatBytes); }

/// Pointer number `operand`, at the row of that width.
static Value rowOf(EmitterContext &e, unsigned operand, Value row, int64_t width) {
  return e.at(e.operands[operand], e.mul(row, strideOf(width)));
}

/// Two passes: mean, then variance as the mean of squared differences, so that nothing cancels. Each is one chain of
/// additions a row, and slow by itself: rows go four at a time.
void batten::emitLayerNorm(EmitterContext &e, const KernelKey &key) {
  unsigned next = 0;
  Value gamma = key.weight ? e.operands[next++] : Value();
  Value beta = key.bias ? e.operands[next++] : Value();
  unsigned x = next, out = next + 1;
  Value width = e.constantFloat(static_cast<float>(key.width));
  forEachRows(e, kRowsAtOnce, [&](ArrayRef<Value> rows) {
    SmallVector<Value> from, to;
    for (Value row : rows) {
      from.push_back(rowOf(e, x, row, key.width));
      to.push_back(rowOf(e, out, row, key.width));
    }
    // Sums over the columns of f(row, lanes of x, sum so far), one per row.
    using Step = function_ref<Lanes(size_t, const Lanes &, int64_t, const Lanes &)>;
    auto reduceRows = [&](Step step) {
      Lanes zeros = e.splat(0.0f, e.laneVectors * rows.size());
      Lanes sums = forEachColumns(e, key.width, zeros, [&](Value offset, int64_t lanes, const Lanes &carried) {
        Lanes result;
        for (size_t i = 0; i < rows.size(); ++i) {
          Lanes sum(ArrayRef<Value>(carried).slice(i * e.laneVectors, e.laneVectors));
          llvm::append_range(result, step(i, e.load(e.at(from[i], offset), 64), lanes, sum));
        }
        return result;
      });
      SmallVector<Value> totals;
      for (size_t i = 0; i < rows.size(); ++i)
        totals.push_back(e.reduceAdd(Lanes(ArrayRef<Value>(sums).slice(i * e.laneVectors, e.laneVectors))));
      return totals;
    };
    SmallVector<Lanes> means, factors;
    for (Value total : reduceRows([&](size_t, const Lanes &value, int64_t lanes, const Lanes &sum) {
           return e.add(sum, zeroAbove(e, value, lanes));
         }))
      means.push_back(e.splat(e.divFloat(total, width)));
    for (Value total : reduceRows([&](size_t i, const Lanes &value, int64_t lanes, const Lanes &sum) {
           Lanes difference = zeroAbove(e, e.sub(value, means[i]), lanes);
           return e.fma(difference, difference, sum);
         })) {
      Value deviation = e.squareRoot(e.addFloat(e.divFloat(total, width), e.constantFloat(key.eps)));
      factors.push_back(e.splat(e.divFloat(e.constantFloat(1.0f), deviation)));
    }
    forEachPaddedColumns(e, key.width, [&](Value offset) {
      Lanes weight = key.weight ? e.load(e.at(gamma, offset), 64) : Lanes();
      Lanes bias = key.bias ? e.load(e.at(beta, offset), 64) : Lanes();
      for (size_t i = 0; i < rows.size(); ++i) {
        Lanes value = e.mul(e.sub(e.load(e.at(from[i], offset), 64), means[i]), factors[i]);
        if (key.weight && key.bias)
          value = e.fma(value, weight, bias);
        else if (key.weight)
          value = e.mul(value, weight);
        else if (key.bias)
          value = e.add(value, bias);
        e.store(value, e.at(to[i], offset), 64);
      }
    });
  });
}

/// x / max(eps, norm), in the order that lets a NaN norm through.
void batten::emitL2Normalize(EmitterContext &e, const KernelKey &key) {
  forEachRow(e, [&](Value row) {
    Value from = rowOf(e, 0, row, key.width), to = rowOf(e, 1, row, key.width);
    Lanes squares = forEachColumns(e, key.width, e.splat(0.0f), [&](Value offset, int64_t lanes, const Lanes &sum) {
      Lanes value = zeroAbove(e, e.load(e.at(from, offset), 64), lanes);
      return e.fma(value, value, sum);
    });
    Value norm = e.maxFloat(e.constantFloat(key.eps), e.squareRoot(e.reduceAdd(squares)));
    Lanes divisor = e.splat(norm);
    forEachPaddedColumns(e, key.width, [&](Value offset) {
      e.store(e.div(e.load(e.at(from, offset), 64), divisor), e.at(to, offset), 64);
    });
  });
}

void batten::emitActivationRows(EmitterContext &e, const KernelKey &key) {
  forEachRow(e, [&](Value row) {
    Value from = rowOf(e, 0, row, key.width), to = rowOf(e, 1, row, key.width);
    forEachPaddedColumns(e, key.width, [&](Value offset) {
      e.store(emitActivation(e, key.act, e.load(e.at(from, offset), 64)), e.at(to, offset), 64);
    });
  });
}

void batten::emitAdd(EmitterContext &e, const KernelKey &key) {
  forEachRow(e, [&](Value row) {
    Value a = rowOf(e, 0, row, key.width), b = rowOf(e, 1, row, key.width), to = rowOf(e, 2, row, key.width);
    forEachPaddedColumns(e, key.width, [&](Value offset) {
      e.store(e.add(e.load(e.at(a, offset), 64), e.load(e.at(b, offset), 64)), e.at(to, offset), 64);
    });
  });
}

/// A slice may begin anywhere, so its last load could leave the row: it is masked.
void batten::emitSlice(EmitterContext &e, const KernelKey &key) {
  forEachRow(e, [&](Value row) {
    Value from = e.at(rowOf(e, 0, row, key.widthIn), key.begin * kFloatBytes), to = rowOf(e, 1, row, key.width);
    forEachColumns(e, key.width, {}, [&](Value offset, int64_t lanes, const Lanes &) -> Lanes {
      Value address = e.at(from, offset);
      Lanes value = lanes == BATTEN_LANES ? e.load(address) : e.loadMasked(address, e.maskBelow(lanes));
      e.store(value, e.at(to, offset), 64);
      return {};
    });
  });
}

/// A part may end anywhere in the row, so its last store is masked.
void batten::emitConcatCols(EmitterContext &e, const KernelKey &key) {
  int64_t total = 0;
  for (int64_t width : key.widths)
    total += width;
  forEachRow(e, [&](Value row) {
    Value to = rowOf(e, key.widths.size(), row, total);
    int64_t begin = 0;
    for (auto [part, width] : llvm::enumerate(key.widths)) {
      Value from = rowOf(e, part, row, width), target = e.at(to, begin * kFloatBytes);
      forEachColumns(e, width, {}, [&](Value offset, int64_t lanes, const Lanes &) -> Lanes {
        Lanes value = e.load(e.at(from, offset), 64);
        if (lanes == BATTEN_LANES)
          e.store(value, e.at(target, offset));
        else
          e.storeMasked(value, e.at(target, offset), e.maskBelow(lanes));
        return {};
      });
      begin += width;
    }
  });
}
