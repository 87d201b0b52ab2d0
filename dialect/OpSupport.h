// What the ops' definitions share: building kernel keys, and checks of weights, heads and numbers. For dialect/*.cpp only.
#ifndef BATTEN_DIALECT_OPSUPPORT_H
#define BATTEN_DIALECT_OPSUPPORT_H

#include "dialect/BattenDialect.h"

namespace batten {

using namespace mlir;

/// Builds a kernel key attribute by attribute.
class KeyBuilder {
public:
  KeyBuilder(Operation *op, StringRef name) : builder(op->getContext()) { add("op", builder.getStringAttr(name)); }
  KeyBuilder &add(StringRef name, Attribute value) {
    attributes.push_back(builder.getNamedAttr(name, value));
    return *this;
  }
  KeyBuilder &add(StringRef name, int64_t value) { return add(name, builder.getI64IntegerAttr(value)); }
  KeyBuilder &add(StringRef name, StringRef value) { return add(name, builder.getStringAttr(value)); }
  KeyBuilder &add(StringRef name, const APFloat &value) {
    return add(name, FloatAttr::get(builder.getF32Type(), value));
  }
  /// How weights are stored, where that isn't as f32.
  KeyBuilder &addStorage(Type elem);
  KeyBuilder &addMath(Math math) { return math == Math::f32 ? *this : add("math", stringifyMath(math)); }
  KeyBuilder &addFlag(StringRef name, bool present) { return present ? add(name, builder.getUnitAttr()) : *this; }
  DictionaryAttr get() { return builder.getDictionaryAttr(attributes); }

private:
  Builder builder;
  SmallVector<NamedAttribute> attributes;
};

inline LogicalResult inferRows(std::optional<Location> location, StringRef op, Value rows, RankedTensorType &type) {
  if (!isRows(rows.getType()))
    return emitOptionalError(location, "'batten.", op, "' op takes rows of f32, found ", rows.getType());
  type = cast<RankedTensorType>(rows.getType());
  return success();
}

inline LogicalResult inferTable(std::optional<Location> location, StringRef op, Value table,
                                SmallVectorImpl<Type> &types) {
  if (!isWeight(table.getType(), 2))
    return emitOptionalError(location, "'batten.", op, "' op takes a weight matrix as its table, found ",
                             table.getType());
  types.push_back(
      getRowsType(table.getContext(), RowKind::tokens, cast<RankedTensorType>(table.getType()).getDimSize(1)));
  return success();
}

inline int64_t tableRows(Value table) { return cast<RankedTensorType>(table.getType()).getDimSize(0); }
inline int64_t tableWidth(Value table) { return cast<RankedTensorType>(table.getType()).getDimSize(1); }

/// Weights that kernels read are f32; other element types need a batten.cast first.
inline LogicalResult verifyF32(Operation *op, StringRef what, Value weight) {
  if (weight && !cast<RankedTensorType>(weight.getType()).getElementType().isF32())
    return op->emitOpError() << what << " must be f32, found " << weight.getType();
  return success();
}

inline Type weightElem(Value weight) { return cast<RankedTensorType>(weight.getType()).getElementType(); }

/// As kernel keys and error texts have it: "f32", "bf16".
inline std::string elemText(Type elem) {
  std::string text;
  llvm::raw_string_ostream(text) << elem;
  return text;
}

/// Tables that rows are looked up in are floats.
inline LogicalResult verifyTable(Operation *op, Value table) {
  if (weightElem(table).isInteger())
    return op->emitOpError("table must be f32, f16 or bf16, found ") << table.getType();
  return success();
}

inline LogicalResult verifyOffset(Operation *op, int64_t offset, int64_t rows) {
  if (offset < 0 || offset >= rows)
    return op->emitOpError("offset is ") << offset << ", the table has " << rows << " rows";
  return success();
}

inline LogicalResult verifyEps(Operation *op, const APFloat &eps) {
  if (!eps.isFinite() || eps.isNegative() || eps.isZero())
    return op->emitOpError("eps must be finite and above 0, found ") << eps.convertToFloat();
  return success();
}

inline KeyBuilder &KeyBuilder::addStorage(Type elem) { return elem.isF32() ? *this : add("storage", elemText(elem)); }

/// Bytes of a row that an embedding writes, and of the table rows that it reads for it.
inline int64_t embedBytes(ValueRange tables, Operation *op) {
  int64_t bytes = sizeof(float);
  for (Value table : tables)
    bytes += weightElem(table).getIntOrFloatBitWidth() / 8;
  return bytes * getWidth(op->getResult(0).getType());
}

/// Rows of [q | k | v] hold what the heads need.
template <typename OpT> LogicalResult verifyHeads(OpT op) {
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads().value_or(heads), headWidth = op.getHeadWidth();
  if (heads % kvHeads)
    return op.emitOpError() << heads << " heads are no multiple of " << kvHeads << " kv_heads";
  int64_t found = getWidth(op.getQkv().getType()), wanted = (heads + 2 * kvHeads) * headWidth;
  if (found != wanted)
    return op.emitOpError("rows are ") << found << " wide, " << heads << " heads of " << headWidth << " with "
                                       << kvHeads << " for keys and values need " << wanted;
  return success();
}
template <typename OpT> void addHeads(KeyBuilder &key, OpT op) {
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads().value_or(heads);
  key.add("heads", heads);
  if (kvHeads != heads)
    key.add("kv_heads", kvHeads);
  key.add("head_width", static_cast<int64_t>(op.getHeadWidth()));
}

/// The position of an operand group's only value among all operands.
template <typename OpT> unsigned operandIndex(OpT op, Value value) {
  return llvm::find(op->getOperands(), value) - op->operand_begin();
}

} // namespace batten

#endif // BATTEN_DIALECT_OPSUPPORT_H
