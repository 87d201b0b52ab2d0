// Weight expressions of the plan dialect: how they print, their verifier, their shape.
#include "dialect/PlanExpr.h"

#include "mlir/IR/DialectImplementation.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace batten;
using namespace batten::plan;

void plan::printExpr(AsmPrinter &printer, Attribute expr) {
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(expr))
    return printer.printSymbolName(symbol.getValue());
  auto compound = cast<ExprAttr>(expr);
  printer << stringifyExprKind(compound.getKind()) << '(';
  llvm::interleaveComma(compound.getOperands(), printer, [&](Attribute operand) { printExpr(printer, operand); });
  if (auto factor = dyn_cast_or_null<FloatAttr>(compound.getParameter())) {
    printer << ", ";
    printer.printAttributeWithoutType(factor);
  } else if (auto numbers = dyn_cast_or_null<ArrayAttr>(compound.getParameter())) {
    llvm::interleaveComma(numbers, printer, [&](Attribute number) { printer.printAttributeWithoutType(number); });
  } else if (auto elem = dyn_cast_or_null<TypeAttr>(compound.getParameter())) {
    printer << ", " << elem.getValue();
  }
  printer << ')';
}

LogicalResult ExprAttr::verify(function_ref<InFlightDiagnostic()> emitError, ExprKind kind,
                               ArrayRef<Attribute> operands, Attribute parameter) {
  // expr_c1: the assembly format can't say otherwise, so this is our own mistake
  assert((kind == ExprKind::concat ? !operands.empty() : operands.size() == (kind != ExprKind::rope)) &&
         "number of operands");
  assert(llvm::all_of(operands, llvm::IsaPred<FlatSymbolRefAttr, ExprAttr>) && "operands are expressions");
  // expr_c2
  auto factor = dyn_cast_or_null<FloatAttr>(parameter);
  auto elem = dyn_cast_or_null<TypeAttr>(parameter);
  switch (kind) {
  case ExprKind::scale:
    if (!factor || !factor.getType().isF32() || !factor.getValue().isFinite())
      return emitError() << "scale needs a finite f32 factor";
    return success();
  case ExprKind::rope: {
    auto isPositive = [](Attribute attribute) {
      auto number = dyn_cast<FloatAttr>(attribute);
      return number && number.getType().isF32() && number.getValue().isFinite() && !number.getValue().isNegative() &&
             !number.getValue().isZero();
    };
    auto numbers = dyn_cast_or_null<ArrayAttr>(parameter);
    if (!numbers || numbers.empty() || numbers.size() > 2 || !llvm::all_of(numbers, isPositive))
      return emitError() << "rope needs a finite f32 theta above 0, and perhaps such a divisor";
    return success();
  }
  case ExprKind::cast:
    if (!elem || !(isWeightElem(elem.getValue()) || elem.getValue().isSignlessInteger(8)))
      return emitError() << "cast needs a type among f32, f16, bf16 and i8";
    return success();
  case ExprKind::concat:
  case ExprKind::transpose:
    if (parameter)
      return emitError() << stringifyExprKind(kind) << " takes no number and no type";
    return success();
  }
  llvm_unreachable("unknown kind of weight expression");
}

bool plan::isCastToI8(Attribute expr) {
  auto compound = dyn_cast<ExprAttr>(expr);
  return compound && compound.getKind() == ExprKind::cast &&
         cast<TypeAttr>(compound.getParameter()).getValue().isInteger();
}

FailureOr<SmallVector<int64_t>> plan::getExprShape(Attribute expr, function_ref<WeightOp(FlatSymbolRefAttr)> lookUp,
                                                   function_ref<InFlightDiagnostic()> emitError) {
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(expr)) {
    WeightOp weight = lookUp(symbol);
    if (!weight)
      return emitError() << symbol << " is not a batten.weight of this module";
    return SmallVector<int64_t>(cast<RankedTensorType>(weight.getType()).getShape());
  }
  auto compound = cast<ExprAttr>(expr);
  if (compound.getKind() == ExprKind::rope)
    return emitError() << "rope is a table by itself, no part of another expression";
  SmallVector<int64_t> shape;
  for (auto [index, operand] : llvm::enumerate(compound.getOperands())) {
    if (isCastToI8(operand))
      return emitError() << "cast to i8 is outermost or nowhere";
    FailureOr<SmallVector<int64_t>> next = getExprShape(operand, lookUp, emitError);
    if (failed(next))
      return failure();
    if (index == 0) {
      shape = *next;
      continue;
    }
    if (next->size() != shape.size() || ArrayRef(*next).drop_front() != ArrayRef(shape).drop_front())
      return emitError() << "concat joins " << shapeText(shape) << " and " << shapeText(*next);
    shape[0] += (*next)[0];
  }
  if (compound.getKind() == ExprKind::transpose) {
    if (shape.size() != 2)
      return emitError() << "transpose takes a matrix, found " << shapeText(shape);
    std::swap(shape[0], shape[1]);
  }
  return shape;
}
