// The plan dialect in C++: steps on buffers, kernels and packed weights. Definitions are in PlanDialect.td.
#ifndef BATTEN_DIALECT_PLANDIALECT_H
#define BATTEN_DIALECT_PLANDIALECT_H

#include "dialect/BattenDialect.h"
#include "mlir/IR/RegionKindInterface.h"

#include "dialect/PlanDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/PlanAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/PlanTypes.h.inc"

namespace batten::plan {

/// Most pointers that a kernel takes (the kernel ABI's BATTEN_KERNEL_OPERANDS; compiler/artifact asserts it).
constexpr unsigned kMaxKernelPointers = 8;

/// Shape of a weight expression (a symbol of a batten.weight or an ExprAttr), or failure with a diagnostic.
///
/// Shapes: a vector has one dimension, a matrix two.
/// Errors: through emitError: unknown symbols, shapes that don't agree, transposed vectors.
mlir::FailureOr<llvm::SmallVector<int64_t>> getExprShape(mlir::Attribute expr,
                                                         llvm::function_ref<WeightOp(mlir::FlatSymbolRefAttr)> lookUp,
                                                         llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// Rows and columns of a packed weight's type; a vector is one row.
std::pair<int64_t, int64_t> getWeightShape(mlir::Type type);
/// Element type of a packed weight's type.
mlir::Type getWeightElem(mlir::Type type);

} // namespace batten::plan

#define GET_OP_CLASSES
#include "dialect/PlanOps.h.inc"

#endif // BATTEN_DIALECT_PLANDIALECT_H
