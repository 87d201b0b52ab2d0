// What decision models do with markers and the types of sequences: add_type, gather_markers, decision_features.
#include "compiler/kernels/Emitters.h"
#include "compiler/kernels/Rows.h"
#include "compiler/kernels/VectorMath.h"

#include <cstddef>
#include <limits>

using namespace batten;
using namespace mlir;

/// x + the table's row of the sequence's type. Table rows are dense: what is read past the last one is the layout's pad.
void batten::emitAddType(EmitterContext &e, const KernelKey &key) {
  Value seqOf = batchArray(e, offsetof(batten_kernel_batch_t, seqOf));
  Value types = batchArray(e, offsetof(batten_kernel_batch_t, seqTypes));
  forEachRow(e, [&](Value token) {
    Value type = elementOf(e, types, elementOf(e, seqOf, token));
    Value added = e.at(e.operands[0], e.mul(type, key.width * kFloatBytes));
    Value from = rowOf(e, 1, token, key.width), to = rowOf(e, 2, token, key.width);
    forEachPaddedColumns(e, key.width, [&](Value offset) {
      e.store(e.add(e.load(e.at(from, offset), 64), e.load(e.at(added, offset))), e.at(to, offset), 64);
    });
  });
}

void batten::emitGatherMarkers(EmitterContext &e, const KernelKey &key) {
  Value markerRow = batchArray(e, offsetof(batten_kernel_batch_t, markerRow));
  forEachRow(e, [&](Value marker) {
    Value token = elementOf(e, markerRow, marker);
    copyRow(e, rowOf(e, 0, token, key.width), rowOf(e, 1, marker, key.width), key.width);
  });
}

namespace {

/// decision_features: a sequence's first row, then four numbers about the softmax of its markers' logits. Logits are one
/// wide, a row each: sixteen are gathered at a time, counted from the sequence's own first.
class FeaturesEmitter {
public:
  FeaturesEmitter(EmitterContext &e, const KernelKey &key) : e(e), key(key) {}

  void emit() {
    Value tokens = batchArray(e, offsetof(batten_kernel_batch_t, cuSeqlens));
    Value markers = batchArray(e, offsetof(batten_kernel_batch_t, cuMarkers));
    forEachRow(e, [&](Value sequence) {
      Value begin = elementOf(e, tokens, sequence), end = elementOf(e, tokens, e.add(sequence, 1));
      Value to = rowOf(e, 2, sequence, key.width + kFeatures);
      e.when(e.less(end, e.add(begin, 1)), [&] { clearRow(e, to, key.width); });
      e.when(e.less(begin, end), [&] { copyRow(e, rowOf(e, 0, begin, key.width), to, key.width); });
      Value features = e.at(to, key.width * kFloatBytes);
      Value first = elementOf(e, markers, sequence), last = elementOf(e, markers, e.add(sequence, 1));
      Value count = e.sub(last, first);
      e.when(e.less(count, e.constant(1)), [&] {
        for (int64_t i = 0; i < 3; ++i)
          store(e.splat(0.0f, 1), features, i);
      });
      Value options = e.toFloat(e.select(e.less(count, e.constant(2)), e.constant(2), count));
      store(e.div(e.splat(options, 1), e.splat(255.0f, 1)), features, 3);
      e.when(e.less(e.constant(0), count), [&] { emitOptions(first, last, e.splat(options, 1), features); });
    });
  }

private:
  static constexpr int64_t kFeatures = 4;

  /// Elements are exp(logit - largest logit): the largest is 1, in as many places as there are equal options.
  void emitOptions(Value first, Value last, const Lanes &options, Value features) {
    constexpr float kLeast = -std::numeric_limits<float>::infinity();
    Lanes one = e.splat(1.0f), zero = e.splat(0.0f);
    Lanes largest = forEachLogits(first, last, e.splat(kLeast), [&](const Lanes &logit, const Lanes &mask, Lanes most) {
      return e.max(most, e.select(mask, logit, e.splat(kLeast)));
    });
    Lanes most = e.splat(e.reduceMax(largest));
    Lanes start = zero; // sum of the elements, then how many are 1, then the largest of the others
    start.append(zero);
    start.append(zero);
    Lanes sums = forEachLogits(first, last, start, [&](const Lanes &logit, const Lanes &mask, Lanes sums) {
      Lanes element = e.select(mask, emitExp(e, e.sub(logit, most)), zero);
      Lanes isLess = e.less(element, one);
      Lanes result = e.add(part(sums, 0), element);
      result.append(e.add(part(sums, 1), e.select(isLess, zero, one)));
      result.append(e.max(part(sums, 2), e.select(isLess, element, zero)));
      return result;
    });
    Value total = e.reduceAdd(part(sums, 0));
    Lanes divisor = e.splat(total);
    Lanes entropy = forEachLogits(first, last, zero, [&](const Lanes &logit, const Lanes &mask, Lanes sum) {
      Lanes p = e.div(emitExp(e, e.sub(logit, most)), divisor);
      Lanes log = emitLog(e, e.max(e.splat(kLeastProbability), p)); // in the order that lets NaN through
      return e.fma(e.select(mask, p, zero), log, sum);
    });
    Lanes ones = e.splat(e.reduceAdd(part(sums, 1)), 1), below = e.splat(e.reduceMax(part(sums, 2)), 1);
    Lanes single = e.splat(1.0f, 1), scale = e.splat(total, 1);
    Lanes top = e.div(single, scale), second = e.div(e.select(e.less(single, ones), single, below), scale);
    store(top, features, 0);
    store(e.sub(top, second), features, 1);
    store(e.div(e.negate(e.splat(e.reduceAdd(entropy), 1)), emitLog(e, options)), features, 2);
  }

  /// Emits body(logits, mask of those that count, carried) for each sixteen; the others repeat the last one.
  using LogitsBody = function_ref<Lanes(const Lanes &logits, const Lanes &mask, Lanes carried)>;
  Lanes forEachLogits(Value first, Value last, const Lanes &carried, LogitsBody body) {
    return e.loop(first, last, BATTEN_LANES, carried, [&](Value marker, ValueRange values) {
      Value lastMarker = e.sub(last, e.constant(1));
      SmallVector<Value> logits;
      for (int64_t i = 0; i < BATTEN_LANES; ++i)
        logits.push_back(e.loadFloat(rowOf(e, 1, e.minimum(e.add(marker, i), lastMarker), 1)));
      return body(e.fromScalars(logits), e.maskBelow(e.minimum(e.sub(last, marker), e.constant(BATTEN_LANES))),
                  Lanes(values));
    });
  }

  Lanes part(const Lanes &all, size_t index) {
    return Lanes(ArrayRef<Value>(all).slice(index * e.laneVectors, e.laneVectors));
  }
  void store(const Lanes &value, Value features, int64_t index) {
    e.storeFloat(e.firstLane(value), e.at(features, index * kFloatBytes));
  }

  static constexpr float kLeastProbability = 1e-9f;
  EmitterContext &e;
  const KernelKey &key;
};

} // namespace

void batten::emitDecisionFeatures(EmitterContext &e, const KernelKey &key) { FeaturesEmitter(e, key).emit(); }
