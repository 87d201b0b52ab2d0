// The batten dialect: registration, row encoding, module-level ops, graphs and weight expressions. Row ops are in
// BattenOps.cpp. Verifier lines bear the labels of the .td files.
#include "dialect/BattenDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace batten;

#include "dialect/Enums.cpp.inc"

#include "dialect/Interfaces.cpp.inc"

#include "dialect/BattenDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/BattenAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/BattenTypes.cpp.inc"

//===--- helpers -------------------------------------------------------------------------------------------------===//

bool batten::isRows(Type type, std::optional<RowKind> kind) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isF32())
    return false;
  auto rows = dyn_cast_or_null<RowsAttr>(tensor.getEncoding());
  return rows && (!kind || rows.getKind() == *kind);
}

bool batten::isWeight(Type type, unsigned rank) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getEncoding() || tensor.getRank() != rank || !tensor.hasStaticShape())
    return false;
  Type elem = tensor.getElementType();
  return (elem.isF32() || elem.isF16() || elem.isBF16() || elem.isSignlessInteger(8)) &&
         llvm::all_of(tensor.getShape(), [](int64_t size) { return size >= 1; });
}

RankedTensorType batten::getRowsType(MLIRContext *context, RowKind kind, int64_t width) {
  return RankedTensorType::get({ShapedType::kDynamic, width}, Float32Type::get(context), RowsAttr::get(context, kind));
}

RowKind batten::getRowKind(Type rows) {
  assert(isRows(rows) && "not rows");
  return cast<RowsAttr>(cast<RankedTensorType>(rows).getEncoding()).getKind();
}

int64_t batten::getWidth(Type rows) {
  assert(isRows(rows) && "not rows");
  return cast<RankedTensorType>(rows).getDimSize(1);
}

int64_t batten::activationBytesPerRow(Operation *op) {
  int64_t bytes = 0;
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()), SmallVector<Type>(op->getResultTypes())))
    if (isRows(type))
      bytes += getWidth(type) * static_cast<int64_t>(sizeof(float));
  return bytes;
}

std::string batten::shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(shape, os);
  os << ']';
  return text;
}

//===--- dialect -------------------------------------------------------------------------------------------------===//

namespace {
/// Prints `#batten.rows<tokens>` as the alias `#tokens`.
struct RowsAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    auto rows = dyn_cast<RowsAttr>(attribute);
    if (!rows)
      return AliasResult::NoAlias;
    os << stringifyRowKind(rows.getKind());
    return AliasResult::OverridableAlias;
  }
};
} // namespace

void BattenDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/BattenAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/BattenTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/BattenOps.cpp.inc"
      >();
  addInterfaces<RowsAliases>();
}

LogicalResult BattenDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == "batten.version") {
    auto version = dyn_cast<IntegerAttr>(attribute.getValue());
    // batten_c1
    if (!version || !version.getType().isSignlessInteger(32) || version.getInt() != kDialectVersion)
      return op->emitError() << "batten.version is " << attribute.getValue() << ", this build reads " << kDialectVersion
                             << " : i32";
    return success();
  }
  if (attribute.getName() == kMaxSeqTokensAttr) {
    auto tokens = dyn_cast<IntegerAttr>(attribute.getValue());
    // batten_c2
    if (!isa<GraphOp>(op) || !tokens || !tokens.getType().isSignlessInteger(64) || tokens.getInt() < 1)
      return op->emitError() << kMaxSeqTokensAttr << " is an i64 of at least 1 on a graph, found "
                             << attribute.getValue();
    return success();
  }
  if (attribute.getName() == "batten.unused" || attribute.getName() == "batten.facts") {
    auto names = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!names || !llvm::all_of(names, llvm::IsaPred<StringAttr>))
      return op->emitError() << attribute.getName().getValue() << " must be an array of strings, found "
                             << attribute.getValue();
    return success();
  }
  if (attribute.getName() == "batten.weights" || attribute.getName() == "batten.math") {
    auto elem = dyn_cast<StringAttr>(attribute.getValue());
    if (!elem || !llvm::is_contained({"f32", "f16", "bf16", "i8"}, elem.getValue()))
      return op->emitError() << attribute.getName().getValue() << " is " << attribute.getValue()
                             << ", \"f32\", \"f16\", \"bf16\" or \"i8\" wanted";
    return success();
  }
  return op->emitError() << "unknown attribute '" << attribute.getName().getValue() << "' of the batten dialect";
}

LogicalResult RowsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  // rows_c1
  if (shape.size() != 2 || !ShapedType::isDynamic(shape[0]) || ShapedType::isDynamic(shape[1]) || shape[1] < 1)
    return emitError() << "a tensor of rows must be ?xW with W at least 1, found " << shape.size()
                       << " dimensions or other sizes";
  return success();
}

//===--- module level --------------------------------------------------------------------------------------------===//

void WeightOp::build(OpBuilder &builder, OperationState &state, StringRef name, StringRef tensor, StringRef dir,
                     ArrayRef<StringRef> dims, RankedTensorType type) {
  build(builder, state, builder.getStringAttr(name), builder.getStringAttr(tensor), builder.getStringAttr(dir),
        dims.empty() ? ArrayAttr() : builder.getStrArrayAttr(dims), TypeAttr(), TypeAttr::get(type));
}

LogicalResult WeightOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  // weight_c1
  if ((!isWeight(type, 1) && !isWeight(type, 2)) || type.getElementType().isInteger())
    return emitOpError("must be a vector or matrix of f32, f16 or bf16 with constant sizes of at least 1, found ")
           << type;
  // weight_c2
  if (getDims() && static_cast<int64_t>(getDims()->size()) != type.getRank())
    return emitOpError("has ") << getDims()->size() << " entries in dims for " << type.getRank() << " dimensions";
  return success();
}

LogicalResult StoredOp::verify() {
  // stored_c1
  if (!cast<RankedTensorType>(getType()).hasStaticShape())
    return emitOpError("needs constant sizes, found ") << getType();
  return success();
}

void StageOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                    ArrayRef<std::array<int64_t, 3>> buckets) {
  SmallVector<Attribute> list;
  for (const std::array<int64_t, 3> &bucket : buckets)
    list.push_back(builder.getDenseI64ArrayAttr(bucket));
  build(builder, state, builder.getStringAttr(name), builder.getArrayAttr(list));
}

LogicalResult StageOp::verify() {
  // stage_c1
  if (getBuckets().empty())
    return emitOpError("has no bucket");
  ArrayRef<int64_t> last;
  for (auto [index, attribute] : llvm::enumerate(getBuckets())) {
    ArrayRef<int64_t> bucket = cast<DenseI64ArrayAttr>(attribute).asArrayRef();
    if (bucket.size() != 3)
      return emitOpError("bucket ") << index << " has " << bucket.size() << " numbers, 3 wanted: tokens, seqs, markers";
    // stage_c2
    if (bucket[0] < 1 || bucket[1] < 1 || bucket[2] < 0 ||
        llvm::any_of(bucket, [](int64_t n) { return n > std::numeric_limits<int32_t>::max(); }))
      return emitOpError("bucket ") << index << " is " << shapeText(bucket)
                                    << ": tokens and seqs must be at least 1, markers at least 0, all below 2^31";
    // stage_c3
    if (index && !(std::lexicographical_compare(last.begin(), last.end(), bucket.begin(), bucket.end())))
      return emitOpError("bucket ") << index << ", " << shapeText(bucket) << ", must come after " << shapeText(last)
                                    << ": buckets ascend and differ";
    last = bucket;
  }
  return success();
}

void batten::printBuckets(OpAsmPrinter &printer, Operation *, ArrayAttr buckets) {
  printer << '[';
  llvm::interleaveComma(buckets, printer,
                        [&](Attribute bucket) { printer << shapeText(cast<DenseI64ArrayAttr>(bucket).asArrayRef()); });
  printer << ']';
}

ParseResult batten::parseBuckets(OpAsmParser &parser, ArrayAttr &buckets) {
  SmallVector<Attribute> list;
  auto parseBucket = [&]() -> ParseResult {
    SmallVector<int64_t> numbers;
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       [&] { return parser.parseInteger(numbers.emplace_back()); }))
      return failure();
    list.push_back(parser.getBuilder().getDenseI64ArrayAttr(numbers));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseBucket))
    return failure();
  buckets = parser.getBuilder().getArrayAttr(list);
  return success();
}

//===--- graph ---------------------------------------------------------------------------------------------------===//

void GraphOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type,
                    ArrayRef<StringRef> resultNames) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getResultNamesAttrName(state.name), builder.getStrArrayAttr(resultNames));
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(state.addRegion());
  for (Type input : type.getInputs())
    block->addArgument(input, state.location);
}

ParseResult GraphOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> resultNames;
  SmallVector<Type> results;
  auto parseResult = [&]() -> ParseResult {
    std::string resultName;
    if (parser.parseKeywordOrString(&resultName) || parser.parseColonType(results.emplace_back()))
      return failure();
    resultNames.push_back(builder.getStringAttr(resultName));
    return success();
  };
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren, /*allowType=*/true, /*allowAttrs=*/true) ||
      parser.parseArrow() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseResult) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  SmallVector<Type> inputs;
  for (const OpAsmParser::Argument &argument : arguments)
    inputs.push_back(argument.type);
  result.addAttribute(getFunctionTypeAttrName(result.name), TypeAttr::get(builder.getFunctionType(inputs, results)));
  result.addAttribute(getResultNamesAttrName(result.name), builder.getArrayAttr(resultNames));
  call_interface_impl::addArgAndResultAttrs(builder, result, arguments, /*resultAttrs=*/{},
                                            getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void GraphOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(getBody().getArguments(), printer, [&](BlockArgument argument) {
    printer.printRegionArgument(argument, getArgAttrDict(argument.getArgNumber())
                                              ? getArgAttrDict(argument.getArgNumber()).getValue()
                                              : ArrayRef<NamedAttribute>());
  });
  printer << ") -> (";
  llvm::interleaveComma(llvm::zip(getResultNames(), getResultTypes()), printer, [&](auto pair) {
    printer.printKeywordOrString(cast<StringAttr>(std::get<0>(pair)).getValue());
    printer << ": " << std::get<1>(pair);
  });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getSymNameAttrName(), getFunctionTypeAttrName(), getResultNamesAttrName(),
                                            getArgAttrsAttrName(), getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

LogicalResult GraphOp::verifyType() { return success(); }

LogicalResult GraphOp::verify() {
  ArrayRef<Type> inputs = getArgumentTypes();
  for (auto [index, type] : llvm::enumerate(inputs)) {
    // graph_c1
    if (!isa<IdsType, TypesType, SeqTypesType, SegmentsType>(type))
      return emitOpError("argument ") << index << " must be !batten.ids, !batten.types, !batten.seq_types or "
                                      << "!batten.segments, found " << type;
    if (llvm::is_contained(inputs.take_front(index), type))
      return emitOpError("takes ") << type << " twice";
  }
  // graph_c2
  ArrayRef<Type> results = getResultTypes();
  if (results.empty())
    return emitOpError("has no result");
  if (getResultNames().size() != results.size())
    return emitOpError("has ") << getResultNames().size() << " result names for " << results.size() << " results";
  llvm::StringSet<> names;
  for (auto name : getResultNames().getAsRange<StringAttr>())
    if (name.getValue().empty() || !names.insert(name.getValue()).second)
      return emitOpError("result name ") << name << " is empty or there twice";
  // graph_c3
  for (auto [index, type] : llvm::enumerate(results))
    if (!isRows(type))
      return emitOpError("result ") << index << " must be rows of f32, found " << type;
  return success();
}

LogicalResult GraphOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // graph_c4
  if (getStageAttr() && !symbols.lookupNearestSymbolFrom<StageOp>(*this, getStageAttr()))
    return emitOpError("stage ") << getStageAttr() << " is not a batten.stage of this module";
  return success();
}

LogicalResult ReturnOp::verify() {
  // return_c1
  ArrayRef<Type> wanted = cast<GraphOp>((*this)->getParentOp()).getResultTypes();
  if (wanted.size() != getNumOperands())
    return emitOpError("gives ") << getNumOperands() << " values, the graph has " << wanted.size() << " results";
  for (auto [index, want, got] : llvm::enumerate(wanted, getOperandTypes()))
    if (want != got)
      return emitOpError("value ") << index << " is " << got << ", the graph's result is " << want;
  return success();
}

//===--- weights as values ---------------------------------------------------------------------------------------===//

void ParamOp::build(OpBuilder &builder, OperationState &state, WeightOp weight) {
  build(builder, state, cast<RankedTensorType>(weight.getType()), FlatSymbolRefAttr::get(weight.getSymNameAttr()));
}

LogicalResult ParamOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr());
  // param_c1
  if (!weight)
    return emitOpError() << getWeightAttr() << " is not a batten.weight of this module";
  // param_c2
  if (weight.getType() != getType())
    return emitOpError("has type ") << getType() << ", weight " << getWeightAttr() << " is " << weight.getType();
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  int64_t rows = 0;
  RankedTensorType first;
  for (Type type : adaptor.getInputs().getTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() < 1)
      return emitOptionalError(location, "'batten.concat' op joins weights, found ", type);
    if (!first)
      first = tensor;
    rows += tensor.getDimSize(0);
  }
  if (!first)
    return failure(); // verify has the words: only the generic form gets here without operands
  SmallVector<int64_t> shape(first.getShape());
  shape[0] = rows;
  types.push_back(first.clone(shape));
  return success();
}

LogicalResult ConcatOp::verify() {
  // concat_c1
  if (getInputs().empty())
    return emitOpError("needs at least one operand");
  auto first = cast<RankedTensorType>(getInputs().front().getType());
  for (auto [index, type] : llvm::enumerate(getInputs().getTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    // concat_c1
    if (tensor.getRank() != first.getRank() || tensor.getElementType() != first.getElementType())
      return emitOpError("operand ") << index << " is " << tensor << ", operand 0 is " << first
                                     << ": ranks and element types must agree";
    // concat_c2
    if (tensor.getShape().drop_front() != first.getShape().drop_front())
      return emitOpError("operand ") << index << " has " << tensor.getDimSize(1) << " columns, operand 0 has "
                                     << first.getDimSize(1);
  }
  return success();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? OpFoldResult(getInputs().front()) : OpFoldResult();
}

LogicalResult ScaleOp::verify() {
  // scale_c1
  if (!getFactor().isFinite())
    return emitOpError("factor is not finite");
  return success();
}

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return getFactor().isExactlyValue(1.0) ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto tensor = dyn_cast<RankedTensorType>(adaptor.getInput().getType());
  if (!tensor || tensor.getRank() != 2)
    return emitOptionalError(location, "'batten.transpose' op takes a matrix, found ", adaptor.getInput().getType());
  types.push_back(tensor.clone({tensor.getDimSize(1), tensor.getDimSize(0)}));
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  auto inner = getInput().getDefiningOp<TransposeOp>();
  return inner ? OpFoldResult(inner.getInput()) : OpFoldResult();
}

LogicalResult CastOp::verify() {
  // cast_c1
  auto input = cast<RankedTensorType>(getInput().getType()), result = cast<RankedTensorType>(getType());
  if (input.getShape() != result.getShape())
    return emitOpError("has shape ") << shapeText(result.getShape()) << ", the operand " << shapeText(input.getShape());
  // cast_c2
  if (input.getElementType().isInteger() || (result.getElementType().isInteger() && result.getRank() != 2))
    return emitOpError("makes i8 of a matrix of another type only, found ") << input << " to " << result;
  return success();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput()) : OpFoldResult();
}
