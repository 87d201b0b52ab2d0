// Disassembles an image and refuses code that the product doesn't want to ship: what a review of the assembly would look
// for, done on every compile. Looks at machine code only; knows no kernel.
#ifndef BATTEN_COMPILER_TARGET_DISASSEMBLYCHECK_H
#define BATTEN_COMPILER_TARGET_DISASSEMBLYCHECK_H

#include "compiler/target/ImageWriter.h"
#include "compiler/target/Target.h"

namespace batten {

/// Stack frames stay below this many bytes.
inline constexpr uint64_t kFrameLimit = 4096;

/// Checks each function of the image:
///   - its bytes are instructions from end to end, each of the target's level (InstructionLevel.h);
///   - no call, system call, trap, or instruction that changes the floating point state;
///   - no branch out of the function;
///   - in no k loop a vector register is loaded from a fixed place of the stack frame: that is a spill, and costs a third
///     of the speed. A k loop is an innermost loop (a backward branch without another inside) that has an fma and reads
///     single floats into all lanes of a vector;
///   - its stack frame is below kFrameLimit.
///
/// Errors: the function, the instruction with its offset, and the rule.
llvm::Error checkDisassembly(const Image &image, const Target &target);

} // namespace batten

#endif // BATTEN_COMPILER_TARGET_DISASSEMBLYCHECK_H
