// From a model to what bundles are made of, a function a step. Two put the steps together: Compile.cpp ahead of time, for
// all buckets and targets at once; JitLanes.cpp for the target that runs here, a bucket when it is first used. No
// printing, no files but those that are read.
#ifndef BATTEN_COMPILER_LOWERING_H
#define BATTEN_COMPILER_LOWERING_H

#include "compiler/Compile.h"
#include "compiler/artifact/Manifest.h"
#include "compiler/artifact/PackWriter.h"
#include "compiler/kernels/Emit.h"
#include "compiler/spec/Checkpoint.h"
#include "compiler/spec/Spec.h"
#include "dialect/PlanDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace batten {

/// An MLIR context of the two dialects. Keeps what is reported in it, so that a failed pass becomes one llvm::Error.
class LoweringContext {
public:
  LoweringContext();

  mlir::MLIRContext &get() { return context; }
  /// Runs a pipeline that `build` adds. Errors: what the passes report.
  llvm::Error run(mlir::ModuleOp module, llvm::function_ref<void(mlir::OpPassManager &)> build);
  /// What was reported since the last call, one a line; `otherwise` where that is nothing.
  llvm::Error takeError(const llvm::Twine &otherwise);

private:
  void add(mlir::Diagnostic &diagnostic);

  mlir::MLIRContext context;
  std::vector<std::string> lines;
  mlir::ScopedDiagnosticHandler handler;
};

/// A model with its lanes, as the passes take it but for batten.stored.
struct LoadedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< weights, stages, one graph a lane
  std::unique_ptr<Checkpoint> checkpoint;
  Spec spec;
  std::vector<std::string> notes; ///< for people
};

/// Reads the model directory or spec that a request names, with its buckets file, stages and precision.
///
/// Errors: choosePrecision's; whatever importGraph, readSpec, readGraph, openCheckpointFor, readBucketTable, assignStages and addStages refuse.
llvm::Expected<LoadedModel> loadModel(LoweringContext &context, const CompileRequest &request);

/// A manifest that has a producer and the module's facts.
Manifest beginManifest(mlir::ModuleOp module);

/// The manifest's lanes, from the programs. Stages are numbered as the spec's.
///
/// Errors: a limit that the spec asserts is not the model's.
llvm::Expected<std::vector<ManifestLane>> describeLanes(mlir::ModuleOp module, const Spec &spec);

/// A pack's entries, in the order of first use, and where they lie.
struct PlacedPack {
  std::vector<layout::PackEntry> entries;
  layout::PackLayout placed; ///< follows from the entries

  bool operator==(const PlacedPack &other) const { return entries == other.entries; }
};
/// By batten_pack_index.
using PlacedPacks = std::array<PlacedPack, 2>;

/// Lays out both packs of a module and records in it where its weights are. Errors: as layoutPack.
llvm::Expected<PlacedPacks> placePacks(mlir::ModuleOp module);

/// Writes both packs. Errors: as writePack.
llvm::Expected<std::array<WrittenFile, 2>>
writePacks(BundleSink &sink, const PlacedPacks &packs, const Checkpoint &checkpoint,
           llvm::function_ref<void(llvm::StringRef path, uint64_t done, uint64_t total)> progress);

/// The files of a bundle in memory as aligned blobs, in the order in which they were begun.
std::vector<CompiledBlob> takeBlobs(MemoryBundle &bundle);

/// The element type of that name in a Precision.
batten_elem elemNamed(llvm::StringRef name);

/// A target as the manifest has it: packs are files 0 and 1, as writePacks leaves them in an empty bundle.
ManifestTarget manifestTarget(const Target &target, const Precision &precision, const KernelImage &image,
                              uint32_t imageFile);

/// Writes the plan file of a layout, whose kernels have entries and whose packs have digests.
///
/// Errors: as writePlanBytes; the sink's.
llvm::Expected<WrittenFile> writePlan(LoweringContext &context, BundleSink &sink, plan::LayoutOp layout);

} // namespace batten

#endif // BATTEN_COMPILER_LOWERING_H
