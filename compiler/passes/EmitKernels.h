// Code for a module's kernels, as a function: for who needs the image's bytes as well. The pass is a shell around it.
#ifndef BATTEN_COMPILER_PASSES_EMITKERNELS_H
#define BATTEN_COMPILER_PASSES_EMITKERNELS_H

#include "compiler/kernels/Emit.h"

#include "mlir/IR/BuiltinOps.h"

namespace batten {

/// Makes the image of every plan.kernel of the module, in module order, and records in the module what a plan file says of
/// it: each kernel's entry and entry_bytes, the programs' target and image_digest (SHA-256 of the image's bytes).
///
/// Errors: diagnostics, at the kernel where its key is at fault, else at the module.
mlir::FailureOr<KernelImage> emitPlanKernels(mlir::ModuleOp module, const Target &target);

} // namespace batten

#endif // BATTEN_COMPILER_PASSES_EMITKERNELS_H
