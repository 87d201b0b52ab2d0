// emit-kernels: walks plan.kernel, has the image made, and notes where the code is. How code is made is compiler/kernels'.
#include "compiler/passes/EmitKernels.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/PlanKeys.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_EMITKERNELS
#include "compiler/passes/Passes.h.inc"

FailureOr<KernelImage> emitPlanKernels(ModuleOp module, const Target &target) {
  SmallVector<plan::KernelOp> ops(module.getOps<plan::KernelOp>());
  SmallVector<KernelKey> keys;
  for (plan::KernelOp op : ops) {
    llvm::Expected<KernelKey> key = kernelKeyFromPlan(op.getKey());
    if (!key)
      return op.emitOpError() << llvm::toString(key.takeError());
    keys.push_back(*key);
  }
  llvm::Expected<KernelImage> image = makeKernelImage(keys, target);
  if (!image)
    return module.emitError() << "no code for " << target.name << ": " << llvm::toString(image.takeError());
  assert(image->entries.size() == ops.size() && "one entry per key, in order");
  for (auto [op, entry] : llvm::zip(ops, image->entries)) {
    op.setEntry(entry.offset);
    op.setEntryBytes(entry.bytes);
  }
  std::string digest = llvm::toHex(llvm::SHA256::hash(image->bytes), /*LowerCase=*/true);
  for (auto program : module.getOps<plan::ProgramOp>()) {
    program.setTarget(target.name);
    program.setImageDigest(digest);
  }
  return std::move(*image);
}

namespace {
struct EmitKernels : impl::EmitKernelsBase<EmitKernels> {
  using EmitKernelsBase::EmitKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<Target> target = lookupTarget(targetName);
    if (!target) {
      module.emitError() << llvm::toString(target.takeError());
      return signalPassFailure();
    }
    FailureOr<KernelImage> image = emitPlanKernels(module, *target);
    if (failed(image))
      return signalPassFailure();
    if (imagePath.empty())
      return;
    std::error_code error;
    llvm::raw_fd_ostream file(imagePath, error);
    if (!error) {
      file.write(reinterpret_cast<const char *>(image->bytes.data()), image->bytes.size());
      file.close();
      error = file.error();
      file.clear_error();
    }
    if (error) {
      module.emitError() << "cannot write image " << imagePath << ": " << error.message();
      signalPassFailure();
    }
  }
};
} // namespace
} // namespace batten
