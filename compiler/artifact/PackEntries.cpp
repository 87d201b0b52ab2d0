// See PackEntries.h. Shapes were checked when plan.packed was verified, so nothing here can fail.
#include "compiler/artifact/PackEntries.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace batten {

namespace {

layout::Elem elemOf(Type type) {
  return type.isInteger() ? layout::Elem::I8
         : type.isF16()   ? layout::Elem::F16
         : type.isBF16()  ? layout::Elem::BF16
                          : layout::Elem::F32;
}

/// Whether the expression's value has one dimension. All operands of a concat agree, and others keep the rank.
bool isVector(Attribute attribute, SymbolTable &symbols) {
  while (auto compound = dyn_cast<plan::ExprAttr>(attribute))
    attribute = compound.getOperands().front();
  auto weight = symbols.lookup<WeightOp>(cast<FlatSymbolRefAttr>(attribute).getValue());
  return cast<RankedTensorType>(weight.getType()).getRank() == 1;
}

layout::WeightExpr exprOf(Attribute attribute, SymbolTable &symbols) {
  using Kind = layout::WeightExpr::Kind;
  layout::WeightExpr expr;
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute)) {
    auto weight = symbols.lookup<WeightOp>(symbol.getValue());
    auto type = cast<RankedTensorType>(weight.getType());
    expr.kind = Kind::Tensor;
    expr.dir = weight.getDir().str();
    expr.tensor = weight.getTensor().str();
    expr.rows = type.getRank() == 1 ? 1 : type.getDimSize(0);
    expr.cols = type.getDimSize(type.getRank() - 1);
    return expr;
  }
  auto compound = cast<plan::ExprAttr>(attribute);
  if (compound.getKind() == plan::ExprKind::rope) { // its shape is the entry's
    expr.kind = Kind::Rope;
    auto numbers = cast<ArrayAttr>(compound.getParameter()).getAsRange<FloatAttr>();
    expr.theta = (*numbers.begin()).getValue().convertToFloat();
    for (FloatAttr divisor : llvm::drop_begin(numbers))
      expr.divisor = divisor.getValue().convertToFloat();
    return expr;
  }
  for (Attribute operand : compound.getOperands())
    expr.operands.push_back(exprOf(operand, symbols));
  const layout::WeightExpr &first = expr.operands.front();
  expr.rows = first.rows;
  expr.cols = first.cols;
  switch (compound.getKind()) {
  case plan::ExprKind::concat: {
    expr.kind = Kind::Concat;
    bool vectors = isVector(compound, symbols);
    for (const layout::WeightExpr &operand : llvm::drop_begin(expr.operands))
      (vectors ? expr.cols : expr.rows) += vectors ? operand.cols : operand.rows;
    break;
  }
  case plan::ExprKind::scale:
    expr.kind = Kind::Scale;
    expr.scale = cast<FloatAttr>(compound.getParameter()).getValue().convertToFloat();
    break;
  case plan::ExprKind::transpose:
    expr.kind = Kind::Transpose;
    std::swap(expr.rows, expr.cols);
    break;
  case plan::ExprKind::cast:
    expr.kind = Kind::Cast;
    expr.elem = elemOf(cast<TypeAttr>(compound.getParameter()).getValue());
    break;
  case plan::ExprKind::rope:
    break;
  }
  return expr;
}

} // namespace

std::vector<layout::PackEntry> packEntries(ModuleOp module) {
  SymbolTable symbols(module);
  std::vector<layout::PackEntry> entries;
  for (auto packed : module.getOps<plan::PackedOp>()) {
    layout::PackEntry entry;
    entry.name = packed.getSymName().str();
    entry.expr = exprOf(packed.getExprAttr(), symbols);
    Type type = packed.getType();
    entry.layout = isa<plan::PanelsType>(type)      ? layout::Layout::Panels
                   : isa<plan::DotPanelsType>(type) ? layout::Layout::DotPanels
                   : isa<plan::TableType>(type)     ? layout::Layout::Table
                                                    : layout::Layout::Vector;
    entry.elem = elemOf(plan::getWeightElem(type));
    std::tie(entry.rows, entry.cols) = plan::getWeightShape(type);
    if (entry.expr.kind == layout::WeightExpr::Kind::Rope)
      std::tie(entry.expr.rows, entry.expr.cols) = std::tie(entry.rows, entry.cols);
    entries.push_back(std::move(entry));
  }
  return entries;
}

void setPackOffsets(ModuleOp module, const std::vector<layout::PackEntry> &entries, const layout::PackLayout &placed) {
  SymbolTable symbols(module);
  for (auto [entry, offset, bytes] : llvm::zip_equal(entries, placed.offset, placed.bytes)) {
    auto packed = symbols.lookup<plan::PackedOp>(entry.name);
    packed.setOffset(offset);
    packed.setBytes(bytes);
  }
}

void setPackDigests(ModuleOp module, StringRef common, StringRef panels) {
  for (auto program : module.getOps<plan::ProgramOp>()) {
    program.setCommonDigest(common);
    program.setPanelsDigest(panels);
  }
}

} // namespace batten
