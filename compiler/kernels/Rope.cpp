// rope: rotary embedding of the queries and keys of [q | k | v] rows, by a table of [cosines | sines] per position. In
// place or not. Half heads begin and end anywhere in a row, so what is no whole 16 columns is masked: a head's tail is
// another's beginning.
#include "compiler/kernels/Emitters.h"
#include "compiler/kernels/Rows.h"

#include <cstddef>

using namespace batten;
using namespace mlir;

/// lo' = fma(lo, cos, -(hi * sin)), hi' = fma(hi, cos, lo * sin). Columns outside, heads inside: so that the table's row is
/// read once.
void batten::emitRope(EmitterContext &e, const KernelKey &key) {
  int64_t headBytes = key.headWidth * kFloatBytes, halfBytes = headBytes / 2;
  int64_t turned = (key.heads + key.kvHeadCount()) * key.headWidth, width = key.qkvWidth();
  Value positions = batchArray(e, offsetof(batten_kernel_batch_t, position));
  Value isCopy = e.differ(e.operands[1], e.operands[2]);
  forEachRow(e, [&](Value token) {
    Value angles = e.at(e.operands[0], e.mul(elementOf(e, positions, token), headBytes));
    Value from = rowOf(e, 1, token, width), to = rowOf(e, 2, token, width);
    forEachColumns(e, key.headWidth / 2, {}, [&](Value offset, int64_t lanes, const Lanes &) -> Lanes {
      Lanes cosine = loadColumns(e, e.at(angles, offset), lanes);
      Lanes sine = loadColumns(e, e.at(angles, e.add(offset, halfBytes)), lanes);
      e.loop(offset, e.add(offset, turned * kFloatBytes), headBytes, [&](Value low) {
        Value high = e.add(low, halfBytes);
        Lanes lo = loadColumns(e, e.at(from, low), lanes), hi = loadColumns(e, e.at(from, high), lanes);
        storeColumns(e, e.fma(lo, cosine, e.negate(e.mul(hi, sine))), e.at(to, low), lanes);
        storeColumns(e, e.fma(hi, cosine, e.mul(lo, sine)), e.at(to, high), lanes);
      });
      return {};
    });
    e.when(isCopy, [&] {
      int64_t values = turned * kFloatBytes;
      copyColumns(e, e.at(from, values), e.at(to, values), width - turned);
    });
  });
}
