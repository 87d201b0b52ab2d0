// The lanes of a jit executor, lowered for one target as far as buckets don't matter: programs, packs, code. Immutable once
// made. A bucket adds a layout only, so its plan is made from the programs in a few milliseconds and shares all else.
#ifndef BATTEN_COMPILER_JITLANES_H
#define BATTEN_COMPILER_JITLANES_H

#include "compiler/Lowering.h"

namespace batten::jit {

/// Weights of a set of lanes, in memory once for all its plans.
struct Packs {
  PlacedPacks placed;
  std::array<WrittenFile, 2> files;
  std::vector<CompiledBlob> blobs; ///< by batten_pack_index
};

/// Code of a set of kernels.
struct Code {
  llvm::SmallVector<KernelKey> keys;
  KernelImage image;
  WrittenFile file;
  CompiledBlob blob;
};

/// A plan as a bundle of one lane with one bucket, both number 0, besides packs and image.
struct PlanBlobs {
  CompiledBlob plan, manifest;
};

class Lanes {
public:
  /// Lowers the lanes of a module as LoadedModel has it, which stays as it is. Packs and code of `before`, which may be
  /// null, are taken over where they are the same.
  ///
  /// Errors: what the passes report; the packer's; no code.
  static llvm::Expected<std::shared_ptr<Lanes>> make(LoweringContext &context, mlir::ModuleOp graphs, const Spec &spec,
                                                     const Checkpoint &checkpoint, const Target &target,
                                                     const Lanes *before);

  const std::vector<ManifestLane> &lanes() const { return entries; }
  const StageSpec &stageOf(uint32_t lane) const { return stages[entries[lane].stage]; }
  const std::shared_ptr<const Packs> &packs() const { return weights; }
  const std::shared_ptr<const Code> &code() const { return kernels; }

  /// Makes the plan of a bucket. Errors: what plan-memory refuses (an arena that is too large).
  llvm::Expected<PlanBlobs> lower(LoweringContext &context, uint32_t lane, uint32_t bucket) const;

private:
  llvm::Error packAndEmit(LoweringContext &context, const Checkpoint &checkpoint, const Lanes *before);
  llvm::Error pack(const Checkpoint &checkpoint, PlacedPacks placed);
  llvm::Expected<std::shared_ptr<Code>> emit(llvm::SmallVector<KernelKey> keys) const;
  mlir::OwningOpRef<mlir::ModuleOp> moduleOf(uint32_t lane, uint32_t bucket) const;

  Target target;
  Precision precision;
  std::vector<StageSpec> stages;
  std::vector<ManifestLane> entries;
  mlir::OwningOpRef<mlir::ModuleOp> programs; ///< without layouts
  std::shared_ptr<const Packs> weights;
  std::shared_ptr<const Code> kernels;
};

} // namespace batten::jit

#endif // BATTEN_COMPILER_JITLANES_H
