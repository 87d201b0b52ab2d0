// A module's kernels as keys, and an image's entries back in the module: for who makes images of several targets at once.
// The pass is a shell around them.
#ifndef BATTEN_COMPILER_PASSES_EMITKERNELS_H
#define BATTEN_COMPILER_PASSES_EMITKERNELS_H

#include "compiler/kernels/Emit.h"

#include "mlir/IR/BuiltinOps.h"

namespace batten {

/// Keys of every plan.kernel of the module, in module order: what an image is made of.
///
/// Errors: a diagnostic at the kernel whose key is at fault.
mlir::FailureOr<llvm::SmallVector<KernelKey>> planKernelKeys(mlir::ModuleOp module);

/// Records in the module what a plan file says of an image of those keys: each kernel's entry and entry_bytes, the programs'
/// target and image_digest (SHA-256 of the image's bytes).
void setKernelEntries(mlir::ModuleOp module, const Target &target, const KernelImage &image);

} // namespace batten

#endif // BATTEN_COMPILER_PASSES_EMITKERNELS_H
