// The batten dialect's layers and ops from rows to rows: type inference, verifiers, and what each says of its kernel
// (KernelOpInterface). Key attribute names and signature order are those of the table in compiler/kernels/KernelKey.h.
#include "dialect/OpSupport.h"

using namespace mlir;
using namespace batten;

#define GET_OP_CLASSES
#include "dialect/BattenOps.cpp.inc"

//===--- layers --------------------------------------------------------------------------------------------------===//

LogicalResult LayerNormOp::verify() {
  // layer_norm_c1
  for (auto [what, vector] : {std::pair<StringRef, Value>{"weight", getWeight()}, {"bias", getBias()}}) {
    if (failed(verifyF32(*this, what, vector)))
      return failure();
    if (vector && tableRows(vector) != getWidth(getType()))
      return emitOpError() << what << " has " << tableRows(vector) << " elements, rows are " << getWidth(getType())
                           << " wide";
  }
  return verifyEps(*this, getEps()); // layer_norm_c2
}
DictionaryAttr LayerNormOp::getKernelKey() {
  return KeyBuilder(*this, "layer_norm")
      .add("width", getWidth(getType()))
      .add("eps", getEps())
      .addFlag("weight", !!getWeight())
      .addFlag("bias", !!getBias())
      .get();
}
SmallVector<Value> LayerNormOp::getKernelInputs() {
  SmallVector<Value> inputs;
  for (Value vector : {getWeight(), getBias()})
    if (vector)
      inputs.push_back(vector);
  inputs.push_back(getX());
  return inputs;
}
std::optional<unsigned> LayerNormOp::getOverwritableOperand() { return operandIndex(*this, getX()); }
int64_t LayerNormOp::getFlopsPerRow() { return (6 + !!getWeight() + !!getBias()) * getWidth(getType()); }

LogicalResult RmsNormOp::verify() {
  // rms_norm_c1
  if (failed(verifyF32(*this, "weight", getWeight())))
    return failure();
  if (getWeight() && tableRows(getWeight()) != getWidth(getType()))
    return emitOpError("weight has ") << tableRows(getWeight()) << " elements, rows are " << getWidth(getType())
                                      << " wide";
  return verifyEps(*this, getEps()); // rms_norm_c2
}
DictionaryAttr RmsNormOp::getKernelKey() {
  return KeyBuilder(*this, "rms_norm")
      .add("width", getWidth(getType()))
      .add("eps", getEps())
      .addFlag("weight", !!getWeight())
      .get();
}
SmallVector<Value> RmsNormOp::getKernelInputs() {
  return getWeight() ? SmallVector<Value>{getWeight(), getX()} : SmallVector<Value>{getX()};
}
std::optional<unsigned> RmsNormOp::getOverwritableOperand() { return operandIndex(*this, getX()); }
int64_t RmsNormOp::getFlopsPerRow() { return (3 + !!getWeight()) * getWidth(getType()); }

void LinearOp::build(OpBuilder &builder, OperationState &state, Value x, Value weight, Value bias, Activation act,
                     Value residual) {
  int64_t n = cast<RankedTensorType>(weight.getType()).getDimSize(0);
  build(builder, state, getRowsType(builder.getContext(), getRowKind(x.getType()), n), x, weight, bias, residual, act);
}
LogicalResult LinearOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType x;
  if (failed(inferRows(location, "linear", adaptor.getX(), x)))
    return failure();
  if (!isWeight(adaptor.getWeight().getType(), 2))
    return emitOptionalError(location, "'batten.linear' op takes a weight matrix, found ",
                             adaptor.getWeight().getType());
  types.push_back(getRowsType(context, getRowKind(x), tableRows(adaptor.getWeight())));
  return success();
}
LogicalResult LinearOp::verify() {
  // linear_c1
  if (getWidth(getX().getType()) != tableWidth(getWeight()))
    return emitOpError("rows are ") << getWidth(getX().getType()) << " wide, the weight takes "
                                    << tableWidth(getWeight());
  // linear_c2
  if (failed(verifyF32(*this, "bias", getBias())))
    return failure();
  if (getBias() && tableRows(getBias()) != tableRows(getWeight()))
    return emitOpError("bias has ") << tableRows(getBias()) << " elements, the weight gives " << tableRows(getWeight());
  // linear_c3
  if (getResidual() && getResidual().getType() != getType())
    return emitOpError("residual is ") << getResidual().getType() << ", the result " << getType();
  // linear_c4
  std::string stored = elemText(weightElem(getWeight()));
  if (getMath() == Math::f32 ? stored == "i8" : stored != stringifyMath(getMath()))
    return emitOpError("weight is ") << stored << ", which math " << stringifyMath(getMath()) << " does not take";
  return success();
}
DictionaryAttr LinearOp::getKernelKey() {
  return KeyBuilder(*this, "linear")
      .add("k", tableWidth(getWeight()))
      .add("n", tableRows(getWeight()))
      .addFlag("bias", !!getBias())
      .add("act", stringifyActivation(getAct()))
      .addFlag("residual", !!getResidual())
      .addStorage(weightElem(getWeight()))
      .addMath(getMath())
      .get();
}
WorkDomain LinearOp::getWorkDomain() { return WorkDomain::panels; }
SmallVector<Value> LinearOp::getKernelInputs() {
  SmallVector<Value> inputs{getX(), getWeight()};
  for (Value value : {Value(getBias()), Value(getResidual())})
    if (value)
      inputs.push_back(value);
  return inputs;
}
std::optional<unsigned> LinearOp::getOverwritableOperand() {
  return getResidual() ? std::optional<unsigned>(getNumOperands() - 1) : std::nullopt;
}
int64_t LinearOp::getFlopsPerRow() {
  return (2 * tableWidth(getWeight()) + !!getBias() + !!getResidual()) * tableRows(getWeight());
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  types.push_back(getRowsType(context, RowKind::tokens, adaptor.getHeads() * adaptor.getHeadWidth()));
  return success();
}
LogicalResult AttentionOp::verify() {
  // attention_c2, attention_c4
  if (failed(verifyHeads(*this)))
    return failure();
  // attention_c3
  if (!getScale().isFinite())
    return emitOpError("scale is not finite");
  return success();
}
DictionaryAttr AttentionOp::getKernelKey() {
  KeyBuilder key(*this, "attention");
  addHeads(key, *this);
  if (getWindow())
    key.add("window", static_cast<int64_t>(*getWindow()));
  return key.add("scale", getScale()).get();
}
WorkDomain AttentionOp::getWorkDomain() { return WorkDomain::tasks; }
SmallVector<Value> AttentionOp::getKernelInputs() { return {getQkv()}; }
int64_t AttentionOp::getFlopsPerRow() { return getWidth(getType()); }
int64_t AttentionOp::getFlopsPerPair() { return 4 * static_cast<int64_t>(getHeads() * getHeadWidth()); }

LogicalResult RopeOp::verify() {
  // rope_c1, rope_c2
  if (failed(verifyHeads(*this)))
    return failure();
  // rope_c3
  if (getHeadWidth() % 2)
    return emitOpError("head_width is ") << getHeadWidth() << ", rotated pairs need an even one";
  // rope_c4
  for (auto [what, number] :
       {std::pair<StringRef, std::optional<APFloat>>{"theta", getTheta()}, {"divisor", getDivisor()}})
    if (number && (!number->isFinite() || number->isNegative() || number->isZero()))
      return emitOpError() << what << " must be finite and above 0, found " << number->convertToFloat();
  return success();
}
DictionaryAttr RopeOp::getKernelKey() {
  KeyBuilder key(*this, "rope");
  addHeads(key, *this);
  return key.get();
}
SmallVector<Value> RopeOp::getKernelInputs() { return {getQkv()}; }
std::optional<unsigned> RopeOp::getOverwritableOperand() { return 0; }
int64_t RopeOp::getFlopsPerRow() {
  return 3 * static_cast<int64_t>((getHeads() + getKvHeads().value_or(getHeads())) * getHeadWidth());
}

LogicalResult GatedOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  RankedTensorType x;
  if (failed(inferRows(location, "gated", adaptor.getX(), x)))
    return failure();
  // gated_c1
  if (getWidth(x) % 2)
    return emitOptionalError(location, "'batten.gated' op takes rows of two halves, found a width of ", getWidth(x));
  types.push_back(getRowsType(context, getRowKind(x), getWidth(x) / 2));
  return success();
}
LogicalResult GatedOp::verify() {
  // gated_c2
  if (getAct() == Activation::none)
    return emitOpError("has no function: 'none'");
  return success();
}
DictionaryAttr GatedOp::getKernelKey() {
  return KeyBuilder(*this, "gated")
      .add("width", getWidth(getType()))
      .add("act", stringifyActivation(getAct()))
      .addFlag("second", getActivated() == Half::second)
      .get();
}
SmallVector<Value> GatedOp::getKernelInputs() { return {getX()}; }
int64_t GatedOp::getFlopsPerRow() { return 2 * getWidth(getType()); }

LogicalResult ActivationOp::verify() {
  // activation_c1
  if (getAct() == Activation::none)
    return emitOpError("has no function: 'none'");
  return success();
}
DictionaryAttr ActivationOp::getKernelKey() {
  return KeyBuilder(*this, "activation")
      .add("width", getWidth(getType()))
      .add("act", stringifyActivation(getAct()))
      .get();
}
SmallVector<Value> ActivationOp::getKernelInputs() { return {getX()}; }
std::optional<unsigned> ActivationOp::getOverwritableOperand() { return 0; }
int64_t ActivationOp::getFlopsPerRow() { return getWidth(getType()); }

DictionaryAttr AddOp::getKernelKey() { return KeyBuilder(*this, "add").add("width", getWidth(getType())).get(); }
SmallVector<Value> AddOp::getKernelInputs() { return {getA(), getB()}; }
std::optional<unsigned> AddOp::getOverwritableOperand() { return 1; }
int64_t AddOp::getFlopsPerRow() { return getWidth(getType()); }

//===--- rows to rows --------------------------------------------------------------------------------------------===//

LogicalResult PoolOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  RankedTensorType x;
  if (failed(inferRows(location, "pool", adaptor.getX(), x)))
    return failure();
  types.push_back(getRowsType(context, RowKind::seqs, getWidth(x)));
  return success();
}
DictionaryAttr PoolOp::getKernelKey() {
  return KeyBuilder(*this, "pool").add("kind", stringifyPooling(getKind())).add("width", getWidth(getType())).get();
}
SmallVector<Value> PoolOp::getKernelInputs() { return {getX()}; }
int64_t PoolOp::getFlopsPerRow() { return getWidth(getType()); }

LogicalResult L2NormalizeOp::verify() { return verifyEps(*this, getEps()); } // l2_normalize_c1
DictionaryAttr L2NormalizeOp::getKernelKey() {
  return KeyBuilder(*this, "l2_normalize").add("width", getWidth(getType())).add("eps", getEps()).get();
}
SmallVector<Value> L2NormalizeOp::getKernelInputs() { return {getX()}; }
std::optional<unsigned> L2NormalizeOp::getOverwritableOperand() { return 0; }
int64_t L2NormalizeOp::getFlopsPerRow() { return 3 * getWidth(getType()); }

LogicalResult SliceOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  RankedTensorType x;
  if (failed(inferRows(location, "slice", adaptor.getX(), x)))
    return failure();
  // slice_c1
  int64_t begin = adaptor.getBegin(), width = adaptor.getWidth(), available = batten::getWidth(x);
  if (begin < 0 || width < 1 || begin > available || width > available - begin)
    return emitOptionalError(location, "'batten.slice' op takes ", width, " columns from ", begin, " of rows ",
                             available, " wide");
  types.push_back(getRowsType(context, getRowKind(x), width));
  return success();
}
DictionaryAttr SliceOp::getKernelKey() {
  return KeyBuilder(*this, "slice")
      .add("width_in", batten::getWidth(getX().getType()))
      .add("begin", static_cast<int64_t>(getBegin()))
      .add("width", static_cast<int64_t>(getWidth()))
      .get();
}
SmallVector<Value> SliceOp::getKernelInputs() { return {getX()}; }
int64_t SliceOp::getFlopsPerRow() { return 0; }
int64_t SliceOp::getBytesPerRow() { return 2 * static_cast<int64_t>(getWidth() * sizeof(float)); }

LogicalResult ConcatColsOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  // concat_cols_c1
  ValueRange inputs = adaptor.getInputs();
  if (inputs.empty() || inputs.size() > kMaxConcatCols)
    return emitOptionalError(location, "'batten.concat_cols' op joins 1 to ", kMaxConcatCols, " rows, found ",
                             inputs.size());
  int64_t width = 0;
  RankedTensorType x;
  for (Value input : inputs) {
    if (failed(inferRows(location, "concat_cols", input, x)))
      return failure();
    width += getWidth(x);
  }
  types.push_back(getRowsType(context, getRowKind(x), width));
  return success();
}
LogicalResult ConcatColsOp::verify() {
  // concat_cols_c2
  for (auto [index, type] : llvm::enumerate(getInputs().getTypes()))
    if (getRowKind(type) != getRowKind(getType()))
      return emitOpError("operand ") << index << " has rows per " << stringifyRowKind(getRowKind(type))
                                     << ", the last one per " << stringifyRowKind(getRowKind(getType()));
  return success();
}
DictionaryAttr ConcatColsOp::getKernelKey() {
  SmallVector<int64_t> widths;
  for (Type type : getInputs().getTypes())
    widths.push_back(getWidth(type));
  return KeyBuilder(*this, "concat_cols").add("widths", DenseI64ArrayAttr::get(getContext(), widths)).get();
}
SmallVector<Value> ConcatColsOp::getKernelInputs() { return SmallVector<Value>(getInputs()); }
int64_t ConcatColsOp::getFlopsPerRow() { return 0; }

SmallVector<Value> SoftmaxOp::getKernelInputs() { return {getX()}; }
DictionaryAttr SoftmaxOp::getKernelKey() {
  return KeyBuilder(*this, "softmax").add("width", getWidth(getType())).get();
}
std::optional<unsigned> SoftmaxOp::getOverwritableOperand() { return 0; }
int64_t SoftmaxOp::getFlopsPerRow() { return 4 * getWidth(getType()); }
