// See BatchCheck.h. Values are read once, into a local or a table, and it is that copy which is checked: an array that
// another thread changes meanwhile can't slip past.
#include "BatchCheck.h"

#include <cstdarg>
#include <cstdio>

namespace batten::rt {
namespace {

using ll = long long;

/// Where a value of the batch is.
struct Place {
  const char *array;
  u64 index, sequence;
};

[[gnu::format(printf, 5, 6), gnu::cold]] Status fail(batten_error_t &error, const Place &place, ll found, ll limit,
                                                     const char *format, ...) noexcept;

Status fail(batten_error_t &error, const Place &place, ll found, ll limit, const char *format, ...) noexcept {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Status status = Report(error, textOf(place.array))
                      .fail(BATTEN_BAD_BATCH, "", place.index, static_cast<u64>(found), static_cast<u64>(limit),
                            "[%llu]: %s", static_cast<unsigned long long>(place.index), text);
  error.sequence = place.sequence;
  return status;
}

/// The sequence that token or marker index lies in; cu is checked already.
u64 sequenceOf(const int32_t *cu, u32 seqs, u64 index) noexcept {
  u64 low = 0, high = seqs;
  while (high - low > 1) {
    u64 middle = low + (high - low) / 2;
    if (static_cast<u64>(cu[middle]) <= index)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// A prefix array starts at 0, never falls, ends at the total. Copies it where out is given.
Status checkPrefix(const char *array, const int32_t *cu, u32 seqs, u32 total, u32 longest, u32 *out,
                   batten_error_t &error) noexcept {
  int32_t before = cu[0];
  if (before != 0)
    return fail(error, {array, 0, 0}, before, 0, "is %d, a prefix starts at 0", before);
  if (out)
    out[0] = 0;
  for (u32 s = 0; s < seqs; ++s) {
    const int32_t end = cu[u64{s} + 1];
    if (end < before)
      return fail(error, {array, u64{s} + 1, s}, end, before, "is %d, below %d before it", end, before);
    if (static_cast<u32>(end) > total)
      return fail(error, {array, u64{s} + 1, s}, end, total, "is %d, past the total of %u", end, total);
    if (longest && static_cast<u32>(end - before) > longest)
      return fail(error, {array, u64{s} + 1, s}, end - before, longest,
                  "sequence %u has %d tokens, the model takes %u at most", s, end - before, longest);
    if (out)
      out[u64{s} + 1] = static_cast<u32>(end);
    before = end;
  }
  if (static_cast<u32>(before) != total)
    return fail(error, {array, seqs, seqs ? seqs - 1 : 0}, before, total, "is %d, the total is %u", before, total);
  return BATTEN_OK;
}

// Every value is in [0, bound). Copies it where out is given. The loop keeps only the largest, so that it is fast; the
// place is looked for when something is wrong.
Status checkValues(const char *array, const int32_t *values, u32 count, u32 bound, u32 *out, const int32_t *cuSeqlens,
                   u32 seqs, batten_error_t &error) noexcept {
  u32 largest = 0;
  for (u32 i = 0; i < count; ++i) {
    u32 value = static_cast<u32>(values[i]);
    largest = value > largest ? value : largest;
    if (out)
      out[i] = value;
  }
  if (largest < bound || count == 0)
    return BATTEN_OK;
  for (u32 i = 0; i < count; ++i) {
    const int32_t value = out ? static_cast<int32_t>(out[i]) : values[i];
    if (static_cast<u32>(value) < bound)
      continue;
    u64 sequence = cuSeqlens ? sequenceOf(cuSeqlens, seqs, i) : i;
    return fail(error, {array, i, sequence}, value, bound, "is %d (sequence %llu), values are 0 to %u", value,
                static_cast<unsigned long long>(sequence), bound - 1);
  }
  return fail(error, {array, 0, 0}, largest, bound, "changed during the check");
}

Status missing(batten_error_t &error, const char *array, u32 count) noexcept {
  return fail(error, {array, 0, 0}, 0, count, "is NULL, %u values were expected", count);
}

Status checkMarkers(const batten_batch_t &batch, const BatchTables *tables, batten_error_t &error) noexcept {
  if (!batch.cuMarkers)
    return batch.markerCount ? missing(error, "cu_markers", batch.seqCount + 1) : BATTEN_OK;
  if (batch.markerCount && !batch.markers)
    return missing(error, "markers", batch.markerCount);
  BATTEN_TRY(checkPrefix("cu_markers", batch.cuMarkers, batch.seqCount, batch.markerCount, 0,
                         tables ? tables->cuMarkers : nullptr, error));
  for (u32 s = 0; s < batch.seqCount; ++s) {
    // The copies, where there are any: the caller's arrays may have changed since they were checked.
    u32 start = tables ? tables->cuSeqlens[s] : static_cast<u32>(batch.cuSeqlens[s]);
    u32 end = tables ? tables->cuSeqlens[s + 1] : static_cast<u32>(batch.cuSeqlens[s + 1]);
    u32 first = tables ? tables->cuMarkers[s] : static_cast<u32>(batch.cuMarkers[s]);
    u32 last = tables ? tables->cuMarkers[s + 1] : static_cast<u32>(batch.cuMarkers[s + 1]);
    for (u32 m = first; m < last; ++m) {
      const int32_t marker = batch.markers[m];
      if (static_cast<u32>(marker) >= end - start)
        return fail(error, {"markers", m, s}, marker, end - start, "is %d, sequence %u has %u tokens", marker, s,
                    end - start);
      if (tables)
        tables->markerRow[m] = start + static_cast<u32>(marker);
    }
  }
  return BATTEN_OK;
}

Status checkAll(const batten_batch_t &batch, const batten_lane_t &lane, const BatchTables *tables,
                batten_error_t &error) noexcept {
  static constexpr int32_t kNoSequences[1] = {0};
  if (batch.seqCount && !batch.cuSeqlens)
    return missing(error, "cu_seqlens", batch.seqCount + 1);
  if (batch.tokenCount && !batch.tokenIds)
    return missing(error, "token_ids", batch.tokenCount);
  const int32_t *cuSeqlens = batch.cuSeqlens ? batch.cuSeqlens : kNoSequences;
  BATTEN_TRY(checkPrefix("cu_seqlens", cuSeqlens, batch.seqCount, batch.tokenCount, lane.maxSeqTokens,
                         tables ? tables->cuSeqlens : nullptr, error));
  BATTEN_TRY(checkValues("token_ids", batch.tokenIds, batch.tokenCount, lane.idCount, tables ? tables->ids : nullptr,
                         cuSeqlens, batch.seqCount, error));
  if (lane.typeCount && batch.tokenTypes)
    BATTEN_TRY(checkValues("token_types", batch.tokenTypes, batch.tokenCount, lane.typeCount,
                           tables ? tables->types : nullptr, cuSeqlens, batch.seqCount, error));
  if (lane.seqTypeCount && batch.seqTypes)
    BATTEN_TRY(checkValues("seq_types", batch.seqTypes, batch.seqCount, lane.seqTypeCount,
                           tables ? tables->seqTypes : nullptr, nullptr, 0, error));
  return checkMarkers(batch, tables, error);
}

// position, seqOf, taskStart and cost from the table of cuSeqlens.
void derive(const BatchTables &tables, u32 seqs) noexcept {
  u32 tasks = 0;
  u64 cost = 0;
  for (u32 s = 0; s < seqs; ++s) {
    const u32 start = tables.cuSeqlens[s], length = tables.cuSeqlens[s + 1] - start;
    tables.taskStart[s] = tasks;
    tables.cost[s] = cost;
    tasks += static_cast<u32>(ceilDiv(length, BATTEN_TASK_ROWS));
    cost += u64{length} * length;
    for (u32 i = 0; i < length; ++i) {
      tables.position[start + i] = i;
      tables.seqOf[start + i] = s;
    }
  }
  tables.taskStart[seqs] = tasks;
  tables.cost[seqs] = cost;
}

template <typename T> T *place(u8 *memory, u64 *used, u64 count) noexcept {
  T *table = reinterpret_cast<T *>(memory + *used);
  *used += roundUp(count * sizeof(T), BATTEN_ALIGNMENT);
  return table;
}

BatchTables layOut(u8 *memory, u64 *used, u64 tokens, u64 seqs, u64 markers) noexcept {
  *used = 0;
  BatchTables tables;
  for (u32 **table : {&tables.ids, &tables.types, &tables.position, &tables.seqOf})
    *table = place<u32>(memory, used, tokens);
  for (u32 **table : {&tables.cuSeqlens, &tables.cuMarkers, &tables.taskStart, &tables.seqTypes})
    *table = place<u32>(memory, used, seqs + 1);
  tables.markerRow = place<u32>(memory, used, markers);
  tables.cost = place<u64>(memory, used, seqs + 1);
  return tables;
}

} // namespace

u64 batchTableBytes(u64 tokens, u64 seqs, u64 markers) noexcept {
  // Counts are below 2^31 (the manifest's bound), so the sum fits.
  auto rounded = [](u64 bytes) { return roundUp(bytes, BATTEN_ALIGNMENT); };
  return 4 * rounded(tokens * 4) + 4 * rounded((seqs + 1) * 4) + rounded(markers * 4) + rounded((seqs + 1) * 8);
}

BatchTables placeBatchTables(u8 *memory, u64 tokens, u64 seqs, u64 markers) noexcept {
  u64 used;
  return layOut(memory, &used, tokens, seqs, markers);
}

Status checkBatch(const batten_batch_t &batch, const batten_lane_t &lane, batten_error_t &error) noexcept {
  return checkAll(batch, lane, nullptr, error);
}

Status checkAndFillBatch(const batten_batch_t &batch, const batten_lane_t &lane, const BatchTables &tables,
                         batten_kernel_batch_t &kernelBatch, batten_error_t &error) noexcept {
  BATTEN_TRY(checkAll(batch, lane, &tables, error));
  derive(tables, batch.seqCount);
  kernelBatch.rows[BATTEN_ROWS_TOKENS] = batch.tokenCount;
  kernelBatch.rows[BATTEN_ROWS_SEQS] = batch.seqCount;
  kernelBatch.rows[BATTEN_ROWS_MARKERS] = batch.markerCount;
  kernelBatch.rows[BATTEN_ROWS_ONE] = batch.seqCount ? 1 : 0; // no sequence: nothing to say about the batch either
  kernelBatch.ids = tables.ids;
  kernelBatch.types = lane.typeCount && batch.tokenTypes ? tables.types : nullptr;
  kernelBatch.cuSeqlens = tables.cuSeqlens;
  // What a lane reads and the caller left out is none and 0: kernels get it written out.
  const bool readsMarkers = lane.inputs & BATTEN_INPUT_MARKERS;
  if (readsMarkers && !batch.cuMarkers)
    std::memset(tables.cuMarkers, 0, (u64{batch.seqCount} + 1) * sizeof(u32));
  if (lane.seqTypeCount && !batch.seqTypes)
    std::memset(tables.seqTypes, 0, u64{batch.seqCount} * sizeof(u32));
  kernelBatch.cuMarkers = readsMarkers || batch.cuMarkers ? tables.cuMarkers : nullptr;
  kernelBatch.seqTypes = lane.seqTypeCount ? tables.seqTypes : nullptr;
  kernelBatch.position = tables.position;
  kernelBatch.seqOf = tables.seqOf;
  kernelBatch.markerRow = tables.markerRow;
  kernelBatch.taskStart = tables.taskStart;
  return BATTEN_OK;
}

} // namespace batten::rt
