// Kernel keys to an MLIR module, and on to an image of machine code: what the compile pipeline calls. An emitter is a
// pure function of key and target; nothing here knows buckets, plans or files.
#ifndef BATTEN_COMPILER_KERNELS_EMIT_H
#define BATTEN_COMPILER_KERNELS_EMIT_H

#include "compiler/kernels/KernelKey.h"
#include "compiler/target/Target.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
class ModuleOp;
} // namespace mlir

namespace batten {

/// Adds the dialects that emitKernels uses (arith, cf, llvm, scf, vector).
void registerKernelDialects(mlir::DialectRegistry &registry);

/// Emits one llvm.func per key, named kernelSymbol(key), with the signature of batten_kernel_fn, into module.
///
/// Errors: a key that verifyKernelKey refuses; two keys of one symbol.
llvm::Error emitKernels(mlir::ModuleOp module, llvm::ArrayRef<KernelKey> keys, const Target &target);

/// Where a kernel is in an image.
struct KernelEntry {
  std::string symbol;
  uint64_t offset = 0; ///< of its first instruction in the image's file
  uint64_t bytes = 0;
};

/// A target's machine code: the bytes of an ELF shared object with one R+X segment.
struct KernelImage {
  std::vector<uint8_t> bytes;
  std::vector<KernelEntry> entries; ///< as the keys were given
  uint64_t codeOffset = 0;          ///< of the segment in the file, a multiple of 4096
  uint64_t codeBytes = 0;
};

/// Makes the image of a set of keys for one target: emits, lowers, makes an object, lays it out, checks the code
/// (DisassemblyCheck). Deterministic; keeps no state, so two targets may be made on two threads.
///
/// Errors: as emitKernels; whatever the object emitter, the image writer or the check refuses.
llvm::Expected<KernelImage> makeKernelImage(llvm::ArrayRef<KernelKey> keys, const Target &target);

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_EMIT_H
