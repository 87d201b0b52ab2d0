// Batches for a run: from a safetensors file, from sequences put end to end, or made up for a benchmark.
#ifndef BATTEN_TOOLS_BATTEN_BATCHES_H
#define BATTEN_TOOLS_BATTEN_BATCHES_H

#include "tools/batten/Bundle.h"

#include <batten/batten.h>

#include <cstdint>
#include <string>
#include <vector>

namespace batten::tools {

/// (query, key) pairs of attention in a sequence: each query sees the keys less than pairWindow away, or all where it is 0.
uint64_t pairsOf(uint64_t length, uint32_t pairWindow);

/// The arrays of a batch, owned. An optional array that is absent is empty and its flag is false.
struct Batch {
  std::vector<int32_t> ids, types, cuSeqlens = {0}, markers, cuMarkers = {0}, seqTypes;
  bool hasTypes = false, hasMarkers = false, hasSeqTypes = false;

  uint32_t tokenCount() const { return uint32_t(ids.size()); }
  uint32_t seqCount() const { return uint32_t(cuSeqlens.size() - 1); }
  uint32_t markerCount() const { return uint32_t(markers.size()); }
  /// Points into this batch.
  batten_batch_t view() const;
  /// (query, key) pairs of attention, over all sequences. pairWindow as in batten_step_info_t.
  uint64_t pairCount(uint32_t pairWindow) const;

  /// Appends a sequence; an array that no sequence had so far gets zeros for the earlier ones.
  struct Sequence {
    std::vector<int32_t> ids, types, markers;
    int32_t type = 0;
    bool hasTypes = false, hasMarkers = false, hasType = false;
  };
  void append(const Sequence &sequence);
  void clear() { *this = Batch(); }
};

/// token_ids, cu_seqlens, and optionally token_types, markers with cu_markers, seq_types; any other tensor is refused.
/// Values are checked by the runtime, lengths that its API has no word for here. Errors: Failure naming file and
/// tensor.
Batch readBatch(const std::string &path);

/// tokens in seqs sequences of near equal length, with ids that the lane takes; where it reads them also with up to 4
/// markers a sequence, spread over it, as far as the smallest bucket with room for any goes, and with sequence types in turn. Deterministic.
Batch makeBatch(const Lane &lane, uint32_t tokens, uint32_t seqs);

/// Outputs of a run, copied out dense.
struct Outputs {
  std::vector<std::vector<float>> data;
  std::vector<uint32_t> rows;
};
/// Runs the lane. Errors: Failure "where: ..".
Outputs runLane(const Engine &engine, const Lane &lane, const Batch &batch, const std::string &where);

/// One line of JSON a sequence: {"embedding": [..], "hidden": [[..], ..]}; outputs with a row a sequence are flat.
/// NaN and infinities are null.
void appendLines(std::string &text, const Lane &lane, const Batch &batch, const Outputs &outputs);

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_BATCHES_H
