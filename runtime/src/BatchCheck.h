// The check of a batch: wholly, before any work. What passes is copied into the executor's tables with everything that
// kernels derive from it, so that no step derives anything and the caller's arrays are read once.
#ifndef BATTEN_RT_BATCHCHECK_H
#define BATTEN_RT_BATCHCHECK_H

#include "Report.h"

namespace batten::rt {

/// Index tables of an executor, with room for its largest bucket.
///
/// Shapes: ids, types, position, seqOf [tokens]; cuSeqlens, cuMarkers, taskStart, cost [seqs + 1]; seqTypes [seqs];
///         markerRow [markers]. cost[s] is the sum of squared lengths of the sequences before s.
struct BatchTables {
  u32 *ids, *types, *position, *seqOf;
  u32 *cuSeqlens, *cuMarkers, *taskStart, *seqTypes;
  u32 *markerRow;
  u64 *cost;
};

/// Bytes that the tables of a bucket take, each aligned to 64.
[[nodiscard]] u64 batchTableBytes(u64 tokens, u64 seqs, u64 markers) noexcept;
/// Lays the tables out in memory of batchTableBytes.
[[nodiscard]] BatchTables placeBatchTables(u8 *memory, u64 tokens, u64 seqs, u64 markers) noexcept;

/// Checks a batch against a lane. Writes nothing.
///
/// Errors: BAD_BATCH with where = the array ("token_ids", "token_types", "cu_seqlens", "markers", "cu_markers",
///         "seq_types"), index, sequence, found (a negative value as 64-bit two's complement) and limit.
[[nodiscard]] Status checkBatch(const batten_batch_t &batch, const batten_lane_t &lane, batten_error_t &error) noexcept;
/// The same, and fills the tables and what kernels see of them. The batch fits the tables; when the check fails they hold
/// rubbish that no run reads.
[[nodiscard]] Status checkAndFillBatch(const batten_batch_t &batch, const batten_lane_t &lane,
                                       const BatchTables &tables, batten_kernel_batch_t &kernelBatch,
                                       batten_error_t &error) noexcept;

} // namespace batten::rt

#endif // BATTEN_RT_BATCHCHECK_H
