// An MLIR module of kernels to a relocatable ELF object, in process: MLIR conversions, LLVM IR, four cheap LLVM passes,
// code generation. No fast math, no contraction, no loop unroller, no library calls; frame pointers are kept.
#ifndef BATTEN_COMPILER_TARGET_OBJECTEMITTER_H
#define BATTEN_COMPILER_TARGET_OBJECTEMITTER_H

#include "compiler/target/Target.h"

#include <cstdint>
#include <vector>

namespace mlir {
class DialectRegistry;
class ModuleOp;
} // namespace mlir

namespace batten {

/// Adds the dialects and translations that emitObject needs beside the module's own.
void registerObjectDialects(mlir::DialectRegistry &registry);

/// Lowers the module (arith, cf, llvm, scf, vector; it is changed) and emits an object for the target. Every function is
/// hidden and keeps its name. The context's threading should be off: a thread pool costs more than it saves here.
///
/// Errors: a lowering or verification failure, with MLIR's or LLVM's diagnostic.
llvm::Expected<std::vector<uint8_t>> emitObject(mlir::ModuleOp module, const Target &target);

} // namespace batten

#endif // BATTEN_COMPILER_TARGET_OBJECTEMITTER_H
