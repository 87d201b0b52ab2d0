// One reason per pass; each phase ends with a pass that verifies it.
#include "compiler/passes/Pipeline.h"
#include "compiler/passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace batten {

void buildGraphPipeline(OpPassManager &manager, const PipelineOptions &options) {
  // First, so that a checkpoint that doesn't fit costs no work, and is reported in the words of the graph as imported.
  manager.addPass(createResolveWeights());
  // Before fuse: it looks for linears without epilogues side by side.
  manager.addPass(createFoldWeights());
  // Epilogues save a pass over the rows each; in place, a residual saves a buffer as well.
  manager.addPass(createFuse());
  // After fuse: precision belongs to the kernels that are left.
  manager.addPass(createAssignPrecision({options.weights, options.math}));
  manager.addPass(createVerifyGraph());
}

void buildProgramPipeline(OpPassManager &manager) {
  // Values become buffers with sizes in rows, still for every bucket at once.
  manager.addPass(createLowerToPlan());
  // Before planning: which inputs may be overwritten, and the scratch, are facts of kernels.
  manager.addPass(createSelectKernels());
}

void buildLayoutPipeline(OpPassManager &manager, const PipelineOptions &options) {
  // Last, because it alone looks at buckets.
  PlanMemoryOptions memory;
  memory.inPlace = options.inPlace;
  manager.addPass(createPlanMemory(memory));
  manager.addPass(createVerifyPlan());
}

void buildPlanPipeline(OpPassManager &manager, const PipelineOptions &options) {
  buildProgramPipeline(manager);
  buildLayoutPipeline(manager, options);
}

void registerPipelines() {
  PassPipelineRegistration<>("batten-graph", "graph passes: checkpoint bound, weights folded, ops fused",
                             [](OpPassManager &manager) { buildGraphPipeline(manager); });
  PassPipelineRegistration<>("batten-plan", "plan passes: lowered, kernels selected, memory planned and verified",
                             [](OpPassManager &manager) { buildPlanPipeline(manager); });
  PassPipelineRegistration<>("batten-pipeline", "graph passes, then plan passes", [](OpPassManager &manager) {
    buildGraphPipeline(manager);
    buildPlanPipeline(manager);
  });
}

} // namespace batten
