// Offsets of the attention scratch block; the picture is in the header.
#include "compiler/layout/AttentionScratch.h"
#include "compiler/layout/RowStride.h"

#include <algorithm>

namespace batten::layout {

AttentionScratch attentionScratch(int64_t headWidth) {
  constexpr int64_t kElem = 4;
  AttentionScratch scratch{};
  scratch.scoreStride = kKeyBlock + kLanes;
  scratch.outputStride = roundUp(headWidth, kPanelCols);
  scratch.valueStride = roundUp(headWidth, kPanelCols);
  scratch.outputs = kAttentionTileRows * scratch.scoreStride * kElem;
  scratch.lanes = scratch.outputs + kAttentionTileRows * scratch.outputStride * kElem;
  scratch.maxima = scratch.lanes + kAttentionTileRows * kLanes * kElem;
  scratch.factors = scratch.maxima + kAttentionTileRows * kElem;
  scratch.keys = scratch.factors + kAttentionTileRows * kElem;
  return scratch;
}

int64_t attentionScratchBytes(int64_t headWidth, int64_t maxSeqLen, std::optional<int64_t> window) {
  constexpr int64_t kElem = 4;
  AttentionScratch scratch = attentionScratch(headWidth);
  int64_t keys = maxSeqLen;
  if (window)
    keys = std::min(keys, kWindowTasks * kTaskRows + 2 * *window + kPanelCols - 1);
  keys = roundUp(keys, kPanelCols);
  int64_t bytes = scratch.keys + keys * headWidth * kElem;
  if (maxSeqLen > kPackValuesAbove)
    bytes += keys * scratch.valueStride * kElem;
  return roundUp(bytes, kAlignment);
}

} // namespace batten::layout
