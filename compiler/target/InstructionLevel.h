// Which instructions are above an x86-64 level, by encoding and name. LLVM's disassembler and x86 assembler take every
// instruction for every CPU, so this is our own knowledge of what x86-64-v3 and -v4 leave out.
#ifndef BATTEN_COMPILER_TARGET_INSTRUCTIONLEVEL_H
#define BATTEN_COMPILER_TARGET_INSTRUCTIONLEVEL_H

#include "compiler/target/Target.h"

#include "llvm/ADT/ArrayRef.h"

namespace batten {

/// The extension that an instruction needs beyond the target; "" where it needs none.
///
/// Shapes: bytes is the whole instruction, mnemonic its name as objdump prints it (AT&T syntax).
llvm::StringRef extensionBeyond(const Target &target, llvm::ArrayRef<uint8_t> bytes, llvm::StringRef mnemonic);

} // namespace batten

#endif // BATTEN_COMPILER_TARGET_INSTRUCTIONLEVEL_H
