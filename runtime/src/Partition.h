// How the units of a step are shared among workers: one function per work domain. Contiguous, fixed by the batch and the
// number of workers; no worker ever waits for a unit. Results never depend on it (the kernels' promise).
#ifndef BATTEN_RT_PARTITION_H
#define BATTEN_RT_PARTITION_H

#include "Support.h"

namespace batten::rt {

/// Units [first, last) of one worker; empty where first == last.
struct UnitRange {
  u32 first, last;
};

/// What a partition needs to know of a step.
struct WorkShape {
  u32 domain;            // batten_work_domain
  u32 rowKind;           // rows that the domain counts
  u32 panels;            // domain panels
  u32 slabRows;          // domain panels
  u32 heads;             // domain tasks
  bool windowed = false; // domain tasks: a query sees its neighbours only
};

/// Even shares of units, the first ones larger by one at most.
[[nodiscard]] inline u32 evenCut(u32 units, u32 worker, u32 workers) noexcept {
  return static_cast<u32>(u64{units} * worker / workers);
}

/// First unit of a worker over panels: slabs of rows by panels, all about equally dear.
[[nodiscard]] u32 cutPanels(u32 rows, const WorkShape &shape, u32 worker, u32 workers) noexcept;
/// First unit of a worker over rows.
[[nodiscard]] u32 cutRows(u32 rows, u32 worker, u32 workers) noexcept;
/// First unit of a worker over attention tasks. A task costs its query rows times its sequence's keys, so sequences are cut
/// by the prefix of length squared: by count, the worker that gets the long sequence would hold up all others.
/// cost [seqs + 1] is that prefix, in 64 bits. Where there is a window a task costs its rows: cost is NULL and sequences are
/// cut by count.
[[nodiscard]] u32 cutTasks(const u32 *taskStart, const u64 *cost, u32 seqs, u32 heads, u32 worker,
                           u32 workers) noexcept;
/// First unit of a worker where there is one unit: worker 0 has it.
[[nodiscard]] u32 cutOne(u32 worker) noexcept;

/// The share of a worker.
[[nodiscard]] UnitRange partition(const WorkShape &shape, const batten_kernel_batch_t &batch, const u64 *cost,
                                  u32 worker, u32 workers) noexcept;

} // namespace batten::rt

#endif // BATTEN_RT_PARTITION_H
