// Plans as bytes: a program with one of its layouts to the records of format.h, and back to IR. The text form of what is
// read gives the same bytes again. Neither opens files.
#ifndef BATTEN_COMPILER_ARTIFACT_PLANBYTES_H
#define BATTEN_COMPILER_ARTIFACT_PLANBYTES_H

#include "dialect/PlanDialect.h"

#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <vector>

namespace batten {

/// The bytes of a layout's plan file: the layout's program, and of the module the kernels and weights that it uses.
///
/// Errors: diagnostics where something has no bytes yet: a step without a kernel symbol, a kernel without entry, a weight
///         without offset, a program without target or digests; steps of one kernel with different domains or pointer
///         counts.
mlir::FailureOr<std::vector<uint8_t>> writePlanBytes(plan::LayoutOp layout);

/// The step field pairWindow of a kernel's steps: one more than the key's window, 0 without.
uint32_t pairWindowOf(plan::KernelOp kernel);

/// Scratch bytes of a worker that a step's record tells: the most that any step of the layout needs for linears and attention,
/// 0 for the others. domain is a batten_work_domain.
uint64_t stepScratchBytes(uint32_t domain, uint64_t most);

/// The module that a plan file stands for: its kernels, its weights (without expressions) and one program with one layout,
/// without stage and limits, which plan files don't hold. The result is verified.
///
/// Any bytes are an acceptable input. Records are copied out only after their section's bounds were checked.
///
/// Errors: a null module and one diagnostic at `fileName`, as "section BUFFERS, record 3: offset is 12, a multiple of 64
///         wanted".
mlir::OwningOpRef<mlir::ModuleOp> readPlanBytes(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef fileName,
                                                mlir::MLIRContext *context);

} // namespace batten

#endif // BATTEN_COMPILER_ARTIFACT_PLANBYTES_H
