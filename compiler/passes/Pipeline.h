// The passes in order, as pipelines. Targets differ in code only, so everything up to verify-plan runs once per module.
#ifndef BATTEN_COMPILER_PASSES_PIPELINE_H
#define BATTEN_COMPILER_PASSES_PIPELINE_H

#include <string>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace batten {

/// What a user may choose.
struct PipelineOptions {
  std::string weights = "f32"; ///< storage of weights
  std::string math = "f32";    ///< what linears multiply in
  bool inPlace = true;         ///< let steps write over inputs that they may overwrite
};

/// Graphs as imported (with batten.stored for each checkpoint tensor) to graphs that can be lowered.
void buildGraphPipeline(mlir::OpPassManager &manager, const PipelineOptions &options = {});

/// Those graphs to programs whose steps have kernels; of a bucket nothing is known yet.
void buildProgramPipeline(mlir::OpPassManager &manager);

/// Those programs to verified ones with a layout for each bucket of their stage.
void buildLayoutPipeline(mlir::OpPassManager &manager, const PipelineOptions &options = {});

/// Both: graphs to verified programs with layouts. Next come code (emit-kernels), packs and bytes.
void buildPlanPipeline(mlir::OpPassManager &manager, const PipelineOptions &options = {});

/// Registers the pipelines as --batten-graph, --batten-plan and --batten-pipeline (both) for batten-opt.
void registerPipelines();

} // namespace batten

#endif // BATTEN_COMPILER_PASSES_PIPELINE_H
