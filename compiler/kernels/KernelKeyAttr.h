// Kernel keys as MLIR attributes, and back. The one place where keys meet IR outside the emitters.
#ifndef BATTEN_COMPILER_KERNELS_KERNELKEYATTR_H
#define BATTEN_COMPILER_KERNELS_KERNELKEYATTR_H

#include "compiler/kernels/KernelKey.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace batten {

/// The key's attributes (without the op): i64 integers, f32 floats, strings, units, an array of i64 for widths.
mlir::DictionaryAttr kernelKeyToAttr(const KernelKey &key, mlir::MLIRContext *context);

/// Reads a key; integers of any width and dense i64 arrays are taken too. The result is verified.
///
/// Errors: the op, the attribute, what was found and what was wanted.
llvm::Expected<KernelKey> kernelKeyFromAttr(llvm::StringRef op, mlir::DictionaryAttr attributes);

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_KERNELKEYATTR_H
