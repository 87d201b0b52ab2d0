// Kernel keys of the plan dialect as plain keys: the dictionary that steps and plan.kernel carry holds the op too.
#ifndef BATTEN_COMPILER_PASSES_PLANKEYS_H
#define BATTEN_COMPILER_PASSES_PLANKEYS_H

#include "compiler/kernels/KernelKey.h"
#include "dialect/PlanDialect.h"

namespace batten {

/// The key of a plan.kernel or of a step before select-kernels.
///
/// Errors: kernelKeyFromAttr's. The dictionary must have passed the plan dialect's verifier.
llvm::Expected<KernelKey> kernelKeyFromPlan(mlir::DictionaryAttr attributes);

/// The key of a step: its own, or its kernel's. Symbols must have been verified.
llvm::Expected<KernelKey> kernelKeyOf(plan::StepOp step, mlir::SymbolTable &symbols);

} // namespace batten

#endif // BATTEN_COMPILER_PASSES_PLANKEYS_H
