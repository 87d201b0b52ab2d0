// See Partition.h.
#include "Partition.h"

namespace batten::rt {

u32 cutPanels(u32 rows, const WorkShape &shape, u32 worker, u32 workers) noexcept {
  u32 slabs = static_cast<u32>(ceilDiv(rows, shape.slabRows));
  return evenCut(slabs * shape.panels, worker, workers);
}

u32 cutRows(u32 rows, u32 worker, u32 workers) noexcept { return evenCut(rows, worker, workers); }

u32 cutTasks(const u32 *taskStart, const u64 *cost, u32 seqs, u32 heads, u32 worker, u32 workers) noexcept {
  if (worker == 0 || seqs == 0)
    return 0;
  if (worker == workers || !cost)
    return evenCut(heads * taskStart[seqs], worker, workers);
  const u64 total = cost[seqs];
  const u64 target = total / workers * worker + total % workers * worker / workers;
  u32 low = 0, high = seqs; // last sequence whose prefix is at most the target
  while (high - low > 1) {
    u32 middle = low + (high - low) / 2;
    if (cost[middle] <= target)
      low = middle;
    else
      high = middle;
  }
  const u64 units = u64{heads} * (taskStart[low + 1] - taskStart[low]);
  u64 inside = 0;
  if (units > 0) {
    inside = (target - cost[low]) / ceilDiv(cost[low + 1] - cost[low], units);
    inside = inside < units ? inside : units;
  }
  return static_cast<u32>(u64{heads} * taskStart[low] + inside);
}

u32 cutOne(u32 worker) noexcept { return worker == 0 ? 0 : 1; }

UnitRange partition(const WorkShape &shape, const batten_kernel_batch_t &batch, const u64 *cost, u32 worker,
                    u32 workers) noexcept {
  const u32 rows = batch.rows[shape.rowKind];
  switch (shape.domain) {
  case BATTEN_DOMAIN_PANELS:
    return {cutPanels(rows, shape, worker, workers), cutPanels(rows, shape, worker + 1, workers)};
  case BATTEN_DOMAIN_ROWS:
    return {cutRows(rows, worker, workers), cutRows(rows, worker + 1, workers)};
  case BATTEN_DOMAIN_TASKS:
    cost = shape.windowed ? nullptr : cost;
    return {cutTasks(batch.taskStart, cost, batch.rows[BATTEN_ROWS_SEQS], shape.heads, worker, workers),
            cutTasks(batch.taskStart, cost, batch.rows[BATTEN_ROWS_SEQS], shape.heads, worker + 1, workers)};
  default:
    return rows > 0 ? UnitRange{cutOne(worker), cutOne(worker + 1)} : UnitRange{0, 0};
  }
}

} // namespace batten::rt
