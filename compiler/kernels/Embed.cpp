// embed: word[id] + type[type] + position[offset + position], as many of them as the key has, in this order. Table rows
// are dense: the last columns are read together with the start of the next row, which the layout allows.
#include "compiler/kernels/Emitters.h"
#include "compiler/kernels/Rows.h"
#include "compiler/layout/RowStride.h"

#include <cstddef>

using namespace batten;
using namespace mlir;

void batten::emitEmbed(EmitterContext &e, const KernelKey &key) {
  int64_t elemBytes = layout::elemBytes(key.storage), rowBytes = key.width * elemBytes;
  unsigned next = 0;
  Value wordTable = key.words ? e.operands[next++] : Value();
  Value typeTable = key.types ? e.operands[next++] : Value();
  Value positionTable = key.positions ? e.operands[next++] : Value();
  Value out = e.operands[next];
  auto array = [&](size_t offset) { return e.loadPointer(e.batch, static_cast<int64_t>(offset)); };
  Value ids = array(offsetof(batten_kernel_batch_t, ids));
  Value types = array(offsetof(batten_kernel_batch_t, types));
  Value positions = array(offsetof(batten_kernel_batch_t, position));
  // Without types every token has type 0. They are then read from the positions' array, and masked off.
  Value noTypes = e.isNull(types);
  types = e.select(noTypes, positions, types);

  forEachRow(e, [&](Value token) {
    Value index = e.mul(token, sizeof(uint32_t));
    SmallVector<Value, 3> sources;
    if (key.words)
      sources.push_back(e.at(wordTable, e.mul(e.loadU32(e.at(ids, index)), rowBytes)));
    if (key.types) {
      Value type = e.select(noTypes, e.constant(0), e.loadU32(e.at(types, index)));
      sources.push_back(e.at(typeTable, e.mul(type, rowBytes)));
    }
    if (key.positions) {
      Value position = e.add(e.loadU32(e.at(positions, index)), key.offset);
      sources.push_back(e.at(positionTable, e.mul(position, rowBytes)));
    }
    Value to = e.at(out, e.mul(token, layout::rowStrideBytes(key.width, kFloatBytes)));
    forEachPaddedColumns(e, key.width, [&](Value offset) {
      Value from = e.div(offset, e.constant(kFloatBytes / elemBytes));
      Lanes sum = e.loadWidened(e.at(sources[0], from), key.storage);
      for (Value source : ArrayRef<Value>(sources).drop_front())
        sum = e.add(sum, e.loadWidened(e.at(source, from), key.storage));
      e.store(sum, e.at(to, offset), 64);
    });
  });
}
