// Kernels whose rows don't depend on one another: layer_norm, rms_norm, l2_normalize, softmax, activation, gated, add,
// slice, concat_cols. A row is read with its pad, which may hold anything: lanes past the width enter no reduction. Output
// pads are written where that takes no extra code; what they hold means nothing.
#include "compiler/kernels/Rows.h"
#include "compiler/kernels/Emitters.h"
#include "compiler/kernels/VectorMath.h"

#include <limits>

using namespace batten;
using namespace mlir;

/// Rows that layer_norm and rms_norm take together: the chain of additions of a single one is slow.
static constexpr int64_t kRowsAtOnce = 4;

/// Per row, the sum over the columns in 16 virtual lanes: step(row, lanes of x, how many of them count, sum so far).
using SumStep = function_ref<Lanes(size_t, const Lanes &, int64_t, const Lanes &)>;
static SmallVector<Value> sumRows(EmitterContext &e, ArrayRef<Value> from, int64_t width, SumStep step) {
  auto part = [&](const Lanes &all, size_t row) {
    return Lanes(ArrayRef<Value>(all).slice(row * e.laneVectors, e.laneVectors));
  };
  Lanes zeros = e.splat(0.0f, e.laneVectors * from.size());
  Lanes sums = forEachColumns(e, width, zeros, [&](Value offset, int64_t lanes, const Lanes &carried) {
    Lanes result;
    for (auto [i, row] : llvm::enumerate(from))
      llvm::append_range(result, step(i, e.load(e.at(row, offset), 64), lanes, part(carried, i)));
    return result;
  });
  SmallVector<Value> totals;
  for (size_t i = 0; i < from.size(); ++i)
    totals.push_back(e.reduceAdd(part(sums, i)));
  return totals;
}

/// 1 / sqrt(total / width + eps), in all lanes.
static Lanes inverseRoot(EmitterContext &e, Value total, int64_t width, float eps) {
  Value mean = e.divFloat(total, e.constantFloat(static_cast<float>(width)));
  Value root = e.squareRoot(e.addFloat(mean, e.constantFloat(eps)));
  return e.splat(e.divFloat(e.constantFloat(1.0f), root));
}

/// Two passes: mean, then variance as the mean of squared differences, so that nothing cancels.
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
    SmallVector<Lanes> means, factors;
    for (Value total : sumRows(e, from, key.width, [&](size_t, const Lanes &value, int64_t lanes, const Lanes &sum) {
           return e.add(sum, zeroAbove(e, value, lanes));
         }))
      means.push_back(e.splat(e.divFloat(total, width)));
    for (Value total : sumRows(e, from, key.width, [&](size_t i, const Lanes &value, int64_t lanes, const Lanes &sum) {
           Lanes difference = zeroAbove(e, e.sub(value, means[i]), lanes);
           return e.fma(difference, difference, sum);
         }))
      factors.push_back(inverseRoot(e, total, key.width, key.eps));
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

/// (x * (1 / sqrt(mean of squares + eps))) * weight, each product rounded, as PyTorch does it.
void batten::emitRmsNorm(EmitterContext &e, const KernelKey &key) {
  unsigned x = key.weight ? 1 : 0, out = x + 1;
  forEachRows(e, kRowsAtOnce, [&](ArrayRef<Value> rows) {
    SmallVector<Value> from, to;
    for (Value row : rows) {
      from.push_back(rowOf(e, x, row, key.width));
      to.push_back(rowOf(e, out, row, key.width));
    }
    SmallVector<Lanes> factors;
    for (Value total : sumRows(e, from, key.width, [&](size_t, const Lanes &value, int64_t lanes, const Lanes &sum) {
           Lanes counted = zeroAbove(e, value, lanes);
           return e.fma(counted, counted, sum);
         }))
      factors.push_back(inverseRoot(e, total, key.width, key.eps));
    forEachPaddedColumns(e, key.width, [&](Value offset) {
      Lanes weight = key.weight ? e.load(e.at(e.operands[0], offset), 64) : Lanes();
      for (size_t i = 0; i < rows.size(); ++i) {
        Lanes value = e.mul(e.load(e.at(from[i], offset), 64), factors[i]);
        e.store(key.weight ? e.mul(value, weight) : value, e.at(to[i], offset), 64);
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

/// Three passes, the exponentials kept in the output meanwhile. A NaN or +inf anywhere, or nothing but -inf, makes the whole
/// row NaN, as in PyTorch: whatever the maximum is then, the sum is NaN.
void batten::emitSoftmax(EmitterContext &e, const KernelKey &key) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  forEachRow(e, [&](Value row) {
    Value from = rowOf(e, 0, row, key.width), to = rowOf(e, 1, row, key.width);
    Lanes largest = forEachColumns(e, key.width, e.splat(kLeast), [&](Value offset, int64_t lanes, const Lanes &most) {
      return e.max(most, fillAbove(e, e.load(e.at(from, offset), 64), lanes, kLeast));
    });
    Lanes most = e.splat(e.reduceMax(largest));
    Lanes sums = forEachColumns(e, key.width, e.splat(0.0f), [&](Value offset, int64_t lanes, const Lanes &sum) {
      Lanes value = emitExp(e, e.sub(e.load(e.at(from, offset), 64), most));
      e.store(value, e.at(to, offset), 64);
      return e.add(sum, zeroAbove(e, value, lanes));
    });
    Lanes divisor = e.splat(e.reduceAdd(sums));
    forEachPaddedColumns(e, key.width, [&](Value offset) {
      e.store(e.div(e.load(e.at(to, offset), 64), divisor), e.at(to, offset), 64);
    });
  });
}

/// The second half begins anywhere in the row: its last load is masked.
void batten::emitGated(EmitterContext &e, const KernelKey &key) {
  forEachRow(e, [&](Value row) {
    Value first = rowOf(e, 0, row, 2 * key.width), second = e.at(first, key.width * kFloatBytes);
    Value to = rowOf(e, 1, row, key.width);
    forEachColumns(e, key.width, {}, [&](Value offset, int64_t lanes, const Lanes &) -> Lanes {
      Lanes a = e.load(e.at(first, offset), 64), b = loadColumns(e, e.at(second, offset), lanes);
      Lanes active = emitActivation(e, key.act, key.second ? b : a);
      e.store(e.mul(active, key.second ? a : b), e.at(to, offset), 64);
      return {};
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

/// A slice may begin anywhere, so its last load could leave the row.
void batten::emitSlice(EmitterContext &e, const KernelKey &key) {
  forEachRow(e, [&](Value row) {
    Value from = e.at(rowOf(e, 0, row, key.widthIn), key.begin * kFloatBytes), to = rowOf(e, 1, row, key.width);
    forEachColumns(e, key.width, {}, [&](Value offset, int64_t lanes, const Lanes &) -> Lanes {
      e.store(loadColumns(e, e.at(from, offset), lanes), e.at(to, offset), 64);
      return {};
    });
  });
}

/// A part may end anywhere in the row, where the next begins.
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
        storeColumns(e, e.load(e.at(from, offset), 64), e.at(target, offset), lanes);
        return {};
      });
      begin += width;
    }
  });
}
