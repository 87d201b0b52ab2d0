// pool: a sequence's rows to one. cls and last copy a row. The others go down the columns, 64 at a time, one chain over
// the sequence's rows in order; mean divides by the length, mean_sqrt_len by its root. max gives NaN for a column that
// holds one, as PyTorch does. An empty sequence gives zeros.
#include "compiler/kernels/Emitters.h"
#include "compiler/kernels/Rows.h"
#include "compiler/layout/RowStride.h"

#include <cstddef>
#include <limits>

using namespace batten;
using namespace mlir;

namespace {

constexpr int64_t kLaneBytes = BATTEN_LANES * kFloatBytes;
/// Groups of 16 columns that one turn takes.
constexpr int64_t kGroupsAtOnce = 4;

class PoolEmitter {
public:
  PoolEmitter(EmitterContext &e, const KernelKey &key)
      : e(e), key(key), stride(layout::rowStrideBytes(key.width, kFloatBytes)) {}

  void emit() {
    Value offsets = e.loadPointer(e.batch, offsetof(batten_kernel_batch_t, cuSeqlens));
    forEachRow(e, [&](Value sequence) {
      Value entry = e.at(offsets, e.mul(sequence, sizeof(uint32_t)));
      Value begin = e.loadU32(entry), end = e.loadU32(e.at(entry, sizeof(uint32_t)));
      Value to = e.at(e.operands[1], e.mul(sequence, stride));
      Value isEmpty = e.less(end, e.add(begin, 1));
      e.when(isEmpty, [&] { clearRow(e, to, key.width); });
      e.when(e.less(begin, end), [&] { emitRow(begin, end, to); });
    });
  }

private:
  void emitRow(Value begin, Value end, Value to) {
    if (key.pool == PoolKind::Cls || key.pool == PoolKind::Last) {
      Value row = key.pool == PoolKind::Cls ? begin : e.sub(end, e.constant(1));
      Value from = e.at(e.operands[0], e.mul(row, stride));
      copyRow(e, from, to, key.width);
      return;
    }
    Value length = e.toFloat(e.sub(end, begin));
    Value divisor = key.pool == PoolKind::MeanSqrtLen ? e.squareRoot(length) : length;
    int64_t groups = layout::ceilDiv(key.width, BATTEN_LANES);
    int64_t wide = groups / kGroupsAtOnce * kGroupsAtOnce;
    e.loop(e.constant(0), e.constant(wide * kLaneBytes), kGroupsAtOnce * kLaneBytes,
           [&](Value offset) { emitColumns(begin, end, e.at(to, offset), offset, divisor, kGroupsAtOnce); });
    if (wide != groups)
      emitColumns(begin, end, e.at(to, wide * kLaneBytes), e.constant(wide * kLaneBytes), divisor, groups - wide);
  }

  void emitColumns(Value begin, Value end, Value to, Value offset, Value divisor, int64_t groups) {
    unsigned vectors = groups * e.laneVectors;
    bool isMax = key.pool == PoolKind::Max;
    Lanes start = e.splat(isMax ? -std::numeric_limits<float>::infinity() : 0.0f, vectors);
    Value from = e.at(e.operands[0], offset);
    Lanes result = e.loop(begin, end, 1, start, [&](Value row, ValueRange values) {
      Lanes carried(values), value = e.load(e.at(from, e.mul(row, stride)), vectors, 64);
      return isMax ? maxOrNan(carried, value) : e.add(carried, value);
    });
    if (!isMax)
      result = e.div(result, e.splat(divisor, vectors));
    e.store(result, to, 64);
  }

  /// The greater one; NaN where one is NaN: max gives the second operand then, and a NaN so far is kept.
  Lanes maxOrNan(const Lanes &soFar, const Lanes &value) {
    return e.select(e.isNan(soFar), soFar, e.max(soFar, value));
  }

  EmitterContext &e;
  const KernelKey &key;
  int64_t stride;
};

} // namespace

void batten::emitPool(EmitterContext &e, const KernelKey &key) { PoolEmitter(e, key).emit(); }
