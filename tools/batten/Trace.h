// Runs that show what each step wrote: to a file for `batten run --trace`, or to whoever compares.
//
//   DIR/LANE.safetensors    one run of one batch; a tensor a step, f32 [rows, width], named "NNN LABEL" by the step's number
//                           and label, in the order of the plan; rows are those of the batch, not of the bucket
//   __metadata__            manifest_sha256, target, lane, bucket, steps; and for each tensor, under its name, JSON:
//                           {"step": N, "label": .., "kernel": .., "rows": "tokens" | "seqs" | "markers" | "one"}
#ifndef BATTEN_TOOLS_BATTEN_TRACE_H
#define BATTEN_TOOLS_BATTEN_TRACE_H

#include "tools/batten/Batches.h"

#include <functional>
#include <string>
#include <vector>

namespace batten::tools {

/// A step of a plan and what it writes.
struct TracedStep {
  std::string label, kernel;
  uint32_t rowKind, width;
};
/// The steps of a plan, in order. Errors: Failure where one writes anything but f32.
std::vector<TracedStep> readSteps(const batten_bundle_t *bundle, const Lane &lane, uint32_t bucket);

/// The bucket that a batch takes. Errors: Failure "where: ..", also for a batch that the lane refuses.
uint32_t bucketOf(const Engine &engine, const Lane &lane, const Batch &batch, const std::string &where);

/// Told the number of a step and its rows, dense, [rows, width]. A step that has no row to work on is left out. May throw:
/// then it is told of no further step, and the run ends with that.
using StepVisitor = std::function<void(uint32_t step, const std::vector<float> &rows)>;
/// Runs the batch and shows each step. Errors: as runLane, and what visit throws.
Outputs runTraced(const Engine &engine, const Lane &lane, const Batch &batch, const std::string &where,
                  const StepVisitor &visit);

/// Runs the batch and writes folder/LANE.safetensors, whole or not at all; makes the folder where it is missing, once the
/// batch has passed the check. Rows go to the file as steps end: memory holds one step. Characters that don't belong in a
/// file's name are '_' there.
///
/// Errors: as runTraced; Failure naming the path where it can't be written.
Outputs runToTrace(const batten_bundle_t *bundle, const Engine &engine, const Lane &lane, const Batch &batch,
                   const std::string &where, const std::string &folder);

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_TRACE_H
