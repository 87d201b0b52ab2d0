// The text of weight expressions, for the parts of the plan dialect that print them.
#ifndef BATTEN_DIALECT_PLANEXPR_H
#define BATTEN_DIALECT_PLANEXPR_H

#include "dialect/PlanDialect.h"

namespace batten::plan {

/// Prints `@l0.q.w` or `concat(..)`.
void printExpr(mlir::AsmPrinter &printer, mlir::Attribute expr);

} // namespace batten::plan

#endif // BATTEN_DIALECT_PLANEXPR_H
