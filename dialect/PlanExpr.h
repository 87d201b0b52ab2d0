// What the plan dialect's files share of weight expressions: their text and their element types.
#ifndef BATTEN_DIALECT_PLANEXPR_H
#define BATTEN_DIALECT_PLANEXPR_H

#include "dialect/PlanDialect.h"

namespace batten::plan {

/// Whether a weight may have this element type outside of dot panels: f32, f16 or bf16.
inline bool isWeightElem(mlir::Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

/// Whether the expression is a cast to i8: a scale for each row, which only dot panels hold.
bool isCastToI8(mlir::Attribute expr);

/// Prints `@l0.q.w` or `concat(..)`.
void printExpr(mlir::AsmPrinter &printer, mlir::Attribute expr);

} // namespace batten::plan

#endif // BATTEN_DIALECT_PLANEXPR_H
