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

FailureOr<SmallVector<KernelKey>> planKernelKeys(ModuleOp module) {
  SmallVector<KernelKey> keys;
  for (auto op : module.getOps<plan::KernelOp>()) {
    llvm::Expected<KernelKey> key = kernelKeyFromPlan(op.getKey());
    if (!key)
      return op.emitOpError() << llvm::toString(key.takeError());
    keys.push_back(*key);
  }
  return keys;
}

void setKernelEntries(ModuleOp module, const Target &target, const KernelImage &image) {
  for (auto [op, entry] : llvm::zip_equal(module.getOps<plan::KernelOp>(), image.entries)) {
    op.setEntry(entry.offset);
    op.setEntryBytes(entry.bytes);
  }
  std::string digest = llvm::toHex(llvm::SHA256::hash(image.bytes), /*LowerCase=*/true);
  for (auto program : module.getOps<plan::ProgramOp>()) {
    program.setTarget(target.name);
    program.setImageDigest(digest);
  }
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
    FailureOr<SmallVector<KernelKey>> keys = planKernelKeys(module);
    if (failed(keys))
      return signalPassFailure();
    llvm::Expected<KernelImage> image = makeKernelImage(*keys, *target);
    if (!image) {
      module.emitError() << "no code for " << target->name << ": " << llvm::toString(image.takeError());
      return signalPassFailure();
    }
    setKernelEntries(module, *target, *image);
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
