// See the header. Weights and kernels do not depend on buckets (DESIGN.md 5 and 6), so what is made here costs what a
// compile for one target costs, and a plan next to nothing. Packs are written as a whole: a plan reads two packs, so new
// weights beside the old packs would need the old ones in them once more.
#include "compiler/JitLanes.h"
#include "compiler/artifact/ImageFile.h"
#include "compiler/artifact/PackEntries.h"
#include "compiler/graph/Import.h"
#include "compiler/passes/EmitKernels.h"
#include "compiler/passes/Pipeline.h"
#include "compiler/spec/Text.h"
#include "dialect/BattenDialect.h"

#include "mlir/Pass/PassManager.h"

#include <future>

namespace batten::jit {

llvm::Expected<std::shared_ptr<Lanes>> Lanes::make(LoweringContext &context, mlir::ModuleOp graphs, const Spec &spec,
                                                   const Checkpoint &checkpoint, const Target &target,
                                                   const Lanes *before) {
  auto made = std::make_shared<Lanes>();
  made->target = target;
  made->precision = spec.precision;
  made->stages = spec.stages;
  made->programs = graphs.clone();
  addStored(*made->programs, checkpoint);
  if (llvm::Error error = context.run(*made->programs, [&](mlir::OpPassManager &manager) {
        buildGraphPipeline(manager, {spec.precision.weights, spec.precision.math});
        buildProgramPipeline(manager);
      }))
    return std::move(error);
  llvm::Expected<std::vector<ManifestLane>> entries = describeLanes(*made->programs, spec);
  if (!entries)
    return entries.takeError();
  made->entries = std::move(*entries);
  if (llvm::Error error = made->packAndEmit(context, checkpoint, before))
    return std::move(error);
  return made;
}

/// Code is made on a thread of its own beside the packer.
llvm::Error Lanes::packAndEmit(LoweringContext &context, const Checkpoint &checkpoint, const Lanes *before) {
  mlir::FailureOr<llvm::SmallVector<KernelKey>> keys = planKernelKeys(*programs);
  if (mlir::failed(keys))
    return context.takeError("a kernel key is broken");
  llvm::Expected<PlacedPacks> placed = placePacks(*programs);
  if (!placed)
    return placed.takeError();

  std::future<std::shared_ptr<llvm::Expected<std::shared_ptr<Code>>>> making;
  if (before && before->kernels->keys == *keys)
    kernels = before->kernels;
  else
    making = std::async(std::launch::async, [this, &keys] {
      return std::make_shared<llvm::Expected<std::shared_ptr<Code>>>(emit(std::move(*keys)));
    });
  llvm::Error failed = llvm::Error::success();
  if (before && before->weights->placed == *placed)
    weights = before->weights;
  else
    failed = pack(checkpoint, std::move(*placed));
  if (making.valid()) {
    std::shared_ptr<llvm::Expected<std::shared_ptr<Code>>> made = making.get();
    if (*made)
      kernels = std::move(**made);
    else
      failed = llvm::joinErrors(made->takeError(), std::move(failed));
  }
  if (failed)
    return failed;
  setPackDigests(*programs, digestText(weights->files[BATTEN_PACK_COMMON].digest),
                 digestText(weights->files[BATTEN_PACK_PANELS].digest));
  setKernelEntries(*programs, target, kernels->image);
  return llvm::Error::success();
}

llvm::Error Lanes::pack(const Checkpoint &checkpoint, PlacedPacks placed) {
  MemoryBundle sink;
  llvm::Expected<std::array<WrittenFile, 2>> files =
      writePacks(sink, placed, checkpoint, [](llvm::StringRef, uint64_t, uint64_t) {});
  if (!files)
    return files.takeError();
  weights = std::make_shared<Packs>(Packs{std::move(placed), std::move(*files), takeBlobs(sink)});
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<Code>> Lanes::emit(llvm::SmallVector<KernelKey> keys) const {
  llvm::Expected<KernelImage> image = makeKernelImage(keys, target);
  if (!image)
    return makeError("no code for " + target.name + ": " + llvm::toString(image.takeError()));
  MemoryBundle sink;
  llvm::Expected<WrittenFile> file = writeImage(sink, target.name, image->bytes, image->codeOffset, image->codeBytes);
  if (!file)
    return file.takeError();
  return std::make_shared<Code>(
      Code{std::move(keys), std::move(*image), std::move(*file), std::move(takeBlobs(sink).front())});
}

/// The lane's program alone, in a stage of that bucket alone.
mlir::OwningOpRef<mlir::ModuleOp> Lanes::moduleOf(uint32_t lane, uint32_t bucket) const {
  mlir::ModuleOp all = *programs;
  const Bucket &counts = stageOf(lane).buckets[bucket];
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(all.getLoc());
  (*module)->setAttrs(all->getAttrs());
  auto builder = mlir::OpBuilder::atBlockEnd(module->getBody());
  for (mlir::Operation &op : *all.getBody()) {
    if (auto stage = llvm::dyn_cast<StageOp>(op)) {
      if (stage.getSymName() == stageOf(lane).name)
        StageOp::create(builder, stage.getLoc(), stage.getSymName(),
                        std::array<int64_t, 3>{counts.tokens, counts.seqs, counts.markers});
      continue;
    }
    if (auto program = llvm::dyn_cast<plan::ProgramOp>(op); program && program.getSymName() != entries[lane].name)
      continue;
    builder.clone(op);
  }
  return module;
}

llvm::Expected<PlanBlobs> Lanes::lower(LoweringContext &context, uint32_t lane, uint32_t bucket) const {
  mlir::OwningOpRef<mlir::ModuleOp> module = moduleOf(lane, bucket);
  if (llvm::Error error = context.run(*module, [](mlir::OpPassManager &manager) { buildLayoutPipeline(manager); }))
    return std::move(error);
  auto program = module->lookupSymbol<plan::ProgramOp>(entries[lane].name);
  MemoryBundle sink;
  llvm::Expected<WrittenFile> file = writePlan(context, sink, *program.getOps<plan::LayoutOp>().begin());
  if (!file)
    return file.takeError();

  Manifest manifest = beginManifest(*module);
  for (const WrittenFile &pack : weights->files)
    manifest.files.push_back({pack, BATTEN_FILE_PACK});
  manifest.files.push_back({kernels->file, BATTEN_FILE_IMAGE});
  manifest.files.push_back({std::move(*file), BATTEN_FILE_PLAN});
  manifest.targets = {manifestTarget(target, precision, kernels->image, 2)};
  manifest.stages = {{stageOf(lane).name, {stageOf(lane).buckets[bucket]}, ""}};
  manifest.lanes = {entries[lane]};
  manifest.lanes.front().stage = 0;
  manifest.plans = {{0, 0, 0, 3}};
  llvm::Expected<std::vector<uint8_t>> bytes = manifestBytes(manifest);
  if (!bytes)
    return bytes.takeError();
  return PlanBlobs{std::move(takeBlobs(sink).front()), CompiledBlob(kManifestPath.str(), std::move(*bytes))};
}

} // namespace batten::jit
