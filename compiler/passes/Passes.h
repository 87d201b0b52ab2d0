// The passes: what Passes.td declares, and their registration for batten-opt. Pipeline.h strings them together.
#ifndef BATTEN_COMPILER_PASSES_PASSES_H
#define BATTEN_COMPILER_PASSES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace batten {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/Passes.h.inc"

} // namespace batten

#endif // BATTEN_COMPILER_PASSES_PASSES_H
