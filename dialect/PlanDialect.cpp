// The plan dialect: registration, weight expressions, types, verifiers. What needs liveness is verify-plan's.
// Verifier lines bear the labels of PlanDialect.td.
#include "dialect/PlanExpr.h"

#include "mlir/IR/DialectImplementation.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace batten;
using namespace batten::plan;

namespace {
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxWidth = 1 << 24;
constexpr unsigned kMaxExprDepth = 8; // of a text: deeper ones could exhaust the parser's stack

void printMatrixShape(AsmPrinter &printer, int64_t rows, int64_t cols, Type elem) {
  printer << rows << 'x' << cols << 'x' << elem;
}
ParseResult parseMatrixShape(AsmParser &parser, int64_t &rows, int64_t &cols, Type &elem) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<int64_t> sizes;
  if (parser.parseDimensionList(sizes, /*allowDynamic=*/false) || parser.parseType(elem))
    return failure();
  if (sizes.size() != 2)
    return parser.emitError(location, "wants two sizes, found ") << sizes.size();
  rows = sizes[0];
  cols = sizes[1];
  return success();
}
void printVectorShape(AsmPrinter &printer, int64_t cols, Type elem) { printer << cols << 'x' << elem; }
ParseResult parseVectorShape(AsmParser &parser, int64_t &cols, Type &elem) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<int64_t> sizes;
  if (parser.parseDimensionList(sizes, /*allowDynamic=*/false) || parser.parseType(elem))
    return failure();
  if (sizes.size() != 1)
    return parser.emitError(location, "wants one size, found ") << sizes.size();
  cols = sizes[0];
  return success();
}

template <typename StreamT> void printKey(StreamT &os, DictionaryAttr key) {
  auto op = key.getAs<StringAttr>("op");
  os << (op ? op.getValue() : "") << " {";
  llvm::interleaveComma(llvm::make_filter_range(key, [](NamedAttribute item) { return item.getName() != "op"; }), os,
                        [&](NamedAttribute item) {
                          os << item.getName().getValue();
                          if (!isa<UnitAttr>(item.getValue()))
                            os << " = " << item.getValue();
                        });
  os << '}';
}
void printKernelKey(OpAsmPrinter &printer, Operation *, DictionaryAttr key) { printKey(printer, key); }
ParseResult parseKernelKey(OpAsmParser &parser, DictionaryAttr &key) {
  std::string op;
  NamedAttrList attributes;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&op) || parser.parseOptionalAttrDict(attributes))
    return failure();
  if (attributes.get("op"))
    return parser.emitError(location, "the key's op is given twice");
  attributes.append("op", parser.getBuilder().getStringAttr(op));
  key = attributes.getDictionary(parser.getContext());
  return success();
}

/// Parses an expression if one begins here; absent otherwise.
OptionalParseResult parseExprIfAny(AsmParser &parser, Attribute &expr, unsigned depth) {
  SMLoc location = parser.getCurrentLocation();
  StringAttr symbol;
  if (succeeded(parser.parseOptionalSymbolName(symbol))) {
    expr = FlatSymbolRefAttr::get(symbol);
    return success();
  }
  StringRef word;
  if (failed(parser.parseOptionalKeyword(&word, {"concat", "scale", "transpose", "cast", "rope"})))
    return std::nullopt;
  if (depth == kMaxExprDepth)
    return parser.emitError(location, "weight expression is nested deeper than ") << kMaxExprDepth;
  ExprKind kind = *symbolizeExprKind(word);
  SmallVector<Attribute> operands;
  Attribute parameter;
  auto parseOne = [&]() -> ParseResult {
    OptionalParseResult operand = parseExprIfAny(parser, operands.emplace_back(), depth + 1);
    return operand.has_value() ? *operand
                               : parser.emitError(parser.getCurrentLocation(), "expected a weight expression");
  };
  if (parser.parseLParen())
    return ParseResult(failure());
  if (kind == ExprKind::rope) {
    SmallVector<Attribute> numbers;
    if (parser.parseCommaSeparatedList([&]() -> ParseResult {
          FloatAttr number;
          if (parser.parseAttribute(number, Float32Type::get(parser.getContext())))
            return failure();
          numbers.push_back(number);
          return success();
        }))
      return ParseResult(failure());
    parameter = ArrayAttr::get(parser.getContext(), numbers);
  } else if (parseOne()) {
    return ParseResult(failure());
  }
  while (kind != ExprKind::rope && succeeded(parser.parseOptionalComma())) {
    if (kind == ExprKind::concat) {
      if (parseOne())
        return ParseResult(failure());
      continue;
    }
    Type elem;
    FloatAttr factor;
    if (kind == ExprKind::cast ? parser.parseType(elem)
                               : parser.parseAttribute(factor, Float32Type::get(parser.getContext())))
      return ParseResult(failure());
    parameter = elem ? Attribute(TypeAttr::get(elem)) : Attribute(factor);
    break;
  }
  if (parser.parseRParen())
    return ParseResult(failure());
  expr =
      ExprAttr::getChecked([&] { return parser.emitError(location); }, parser.getContext(), kind, operands, parameter);
  return ParseResult(success(!!expr));
}

void printOptionalExpr(OpAsmPrinter &printer, Operation *, Attribute expr) { printExpr(printer, expr); }
OptionalParseResult parseOptionalExpr(OpAsmParser &parser, Attribute &expr) { return parseExprIfAny(parser, expr, 0); }
} // namespace

#include "dialect/PlanDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/PlanAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/PlanTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialect/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/PlanAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/PlanOps.cpp.inc"
      >();
}

//===--- types ----------------------------------------------------------------------------===//

void ExprAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printExpr(printer, *this);
  printer << '>';
}
Attribute ExprAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  Attribute expr;
  if (parser.parseLess())
    return {};
  OptionalParseResult result = parseExprIfAny(parser, expr, 0);
  if (!result.has_value() || (succeeded(*result) && !isa<ExprAttr>(expr))) {
    parser.emitError(location, "expected concat, scale, transpose, cast or rope");
    return {};
  }
  return failed(*result) || parser.parseGreater() ? Attribute() : expr;
}

LogicalResult BufType::verify(function_ref<InFlightDiagnostic()> emitError, RowKind, int64_t width, Type elem) {
  // buf_c1
  if (width < 1 || width > kMaxWidth)
    return emitError() << "a buffer's width must be from 1 to " << kMaxWidth << ", found " << width;
  // buf_c2
  if (!elem.isF32())
    return emitError() << "a buffer's elements must be f32, found " << elem;
  return success();
}

static LogicalResult verifyWeightType(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols,
                                      Type elem) {
  // panels_c1, table_c1, vector_c1
  if (rows < 1 || rows > kMaxCount || cols < 1 || cols > kMaxCount)
    return emitError() << "a weight's sizes must be from 1 to " << kMaxCount << ", found " << rows << " x " << cols;
  // panels_c2, table_c2, vector_c2
  if (!isWeightElem(elem))
    return emitError() << "a weight's elements must be f32, f16 or bf16, found " << elem;
  return success();
}
LogicalResult PanelsType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols, Type elem) {
  return verifyWeightType(emitError, rows, cols, elem);
}
LogicalResult DotPanelsType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols,
                                    Type elem) {
  // dot_panels_c2
  if (!elem.isBF16() && !elem.isSignlessInteger(8))
    return emitError() << "dot panels have elements of bf16 or i8, found " << elem;
  return verifyWeightType(emitError, rows, cols, BFloat16Type::get(elem.getContext())); // dot_panels_c1
}
LogicalResult TableType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols, Type elem) {
  return verifyWeightType(emitError, rows, cols, elem);
}
LogicalResult VecType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t cols, Type elem) {
  return verifyWeightType(emitError, 1, cols, elem);
}

std::pair<int64_t, int64_t> plan::getWeightShape(Type type) {
  return TypeSwitch<Type, std::pair<int64_t, int64_t>>(type)
      .Case<PanelsType, DotPanelsType, TableType>(
          [](auto matrix) { return std::pair(matrix.getRows(), matrix.getCols()); })
      .Case<VecType>([](VecType vector) { return std::pair(int64_t(1), vector.getCols()); });
}
Type plan::getWeightElem(Type type) {
  return TypeSwitch<Type, Type>(type).Case<PanelsType, DotPanelsType, TableType, VecType>(
      [](auto w) { return w.getElem(); });
}

//===--- module level --------------------------------------------------------------------------------------------===//

StringRef KernelOp::getKernelOp() { return getKey().getAs<StringAttr>("op").getValue(); }
int64_t KernelOp::getKeyInt(StringRef name) {
  auto value = getKey().getAs<IntegerAttr>(name);
  return value ? value.getInt() : 0;
}

std::string KernelOp::getKeyText() {
  std::string text;
  llvm::raw_string_ostream os(text);
  printKey(os, getKey());
  return text;
}
int64_t KernelOp::getPanels(WorkDomain domain) {
  return domain == WorkDomain::panels ? llvm::divideCeil(getKeyInt("n"), 32) : 0;
}
int64_t KernelOp::getHeads(WorkDomain domain) { return domain == WorkDomain::tasks ? getKeyInt("heads") : 0; }

static bool isIdentifier(StringRef name) {
  return !name.empty() && llvm::isAlpha(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// The part of a key that steps and kernels have in common.
static LogicalResult verifyKey(Operation *op, DictionaryAttr key) {
  // kernel_c1, step_c2
  auto name = key.getAs<StringAttr>("op");
  if (!name || !isIdentifier(name.getValue()))
    return op->emitOpError("key needs an op: letters, digits and underscores");
  // kernel_c2
  for (NamedAttribute item : key) {
    auto number = dyn_cast<IntegerAttr>(item.getValue());
    auto real = dyn_cast<FloatAttr>(item.getValue());
    if (!(number && number.getType().isSignlessInteger(64) && number.getInt() >= 0 && number.getInt() <= kMaxCount) &&
        !(real && real.getType().isF32()) && !isa<StringAttr, UnitAttr, DenseI64ArrayAttr>(item.getValue()))
      return op->emitOpError("key attribute '")
             << item.getName().getValue()
             << "' must be an i64 from 0 to 2^31 - 1, f32, a string, a flag or an array of i64, found "
             << item.getValue();
    if (!isIdentifier(item.getName().getValue()))
      return op->emitOpError("key attribute '") << item.getName().getValue() << "' must be named by an identifier";
  }
  return success();
}

LogicalResult KernelOp::verify() {
  if (failed(verifyKey(*this, getKey())))
    return failure();
  // kernel_c3
  if (getSlabRows() && (static_cast<int64_t>(*getSlabRows()) < 1 || static_cast<int64_t>(*getSlabRows()) > kMaxCount))
    return emitOpError("slab_rows must be from 1 to ")
           << kMaxCount << ", found " << static_cast<int64_t>(*getSlabRows());
  // kernel_c4
  if (getEntry().has_value() != getEntryBytes().has_value())
    return emitOpError("needs entry and entry_bytes together");
  if (getEntry() && (static_cast<int64_t>(*getEntry()) < 0 || static_cast<int64_t>(*getEntryBytes()) < 1))
    return emitOpError("entry must be at least 0 and entry_bytes at least 1, found ")
           << static_cast<int64_t>(*getEntry()) << " and " << static_cast<int64_t>(*getEntryBytes());
  return success();
}

LogicalResult PackedOp::verify() {
  // packed_c1
  if (!isa<PanelsType, DotPanelsType, TableType, VecType>(getType()))
    return emitOpError("must be panels, a table or a vector, found ") << getType();
  if (getExprAttr() && !isa<FlatSymbolRefAttr, ExprAttr>(getExprAttr()))
    return emitOpError("expression must be a symbol or a weight expression, found ") << getExprAttr();
  // packed_c3
  if (getOffset().has_value() != getBytes().has_value())
    return emitOpError("needs offset and bytes together");
  if (!getOffset())
    return success();
  int64_t offset = *getOffset(), bytes = *getBytes();
  if (offset < 0 || offset % 64 || bytes < 64 || bytes % 64)
    return emitOpError("offset and bytes must be multiples of 64, at least 0 and 64, found ")
           << offset << " and " << bytes;
  return success();
}

LogicalResult PackedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getExprAttr())
    return success();
  // packed_c2
  if (auto expr = dyn_cast<ExprAttr>(getExprAttr()); expr && expr.getKind() == ExprKind::rope) {
    auto table = dyn_cast<TableType>(getType());
    if (!table || table.getCols() % 2 || !table.getElem().isF32())
      return emitOpError("rope gives a table of f32 with an even number of columns, the type is ") << getType();
    return success();
  }
  auto lookUp = [&](FlatSymbolRefAttr name) { return symbols.lookupNearestSymbolFrom<WeightOp>(*this, name); };
  FailureOr<SmallVector<int64_t>> shape = getExprShape(getExprAttr(), lookUp, [&] { return emitOpError(); });
  if (failed(shape))
    return failure();
  // packed_c4
  if (bool isI8 = getWeightElem(getType()).isInteger(); isI8 != isCastToI8(getExprAttr()))
    return emitOpError("type is ") << getType()
                                   << (isI8 ? ", the expression no cast to i8" : ", the expression a cast to i8");
  auto [rows, cols] = getWeightShape(getType());
  SmallVector<int64_t> wanted = isa<VecType>(getType()) ? SmallVector<int64_t>{cols} : SmallVector<int64_t>{rows, cols};
  if (*shape != wanted)
    return emitOpError("expression gives ") << shapeText(*shape) << ", the type is " << shapeText(wanted);
  return success();
}

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name, FlatSymbolRefAttr stage) {
  state.getOrAddProperties<Properties>().sym_name = builder.getStringAttr(name);
  state.getOrAddProperties<Properties>().stage = stage;
  state.addRegion()->emplaceBlock();
}

LogicalResult ProgramOp::verify() {
  llvm::StringSet<> labels, outputs;
  for (Operation &op : getBody().front()) {
    // program_c1
    if (!isa<BufferOp, WeightRefOp, StepOp, OutputOp, LayoutOp>(op))
      return op.emitError() << "'" << op.getName() << "' does not belong in a plan.program";
    // program_c2
    if (auto step = dyn_cast<StepOp>(op); step && !labels.insert(step.getLabel()).second)
      return step.emitOpError("label ") << step.getLabelAttr() << " is there twice";
    if (auto output = dyn_cast<OutputOp>(op); output && !outputs.insert(output.getName()).second)
      return output.emitOpError("name ") << output.getNameAttr() << " is there twice";
  }
  // program_c3
  for (auto [what, attribute] : {std::pair<StringRef, int64_t>{"id_count", getIdCount()},
                                 {"type_count", getTypeCount()},
                                 {"seq_type_count", getSeqTypeCount()},
                                 {"max_seq_tokens", getMaxSeqTokens()}})
    if (attribute < 0 || attribute > kMaxCount)
      return emitOpError() << what << " must be from 0 to " << kMaxCount << ", found " << attribute;
  // program_c4
  for (StringAttr digest : {getImageDigestAttr(), getCommonDigestAttr(), getPanelsDigestAttr()})
    if (digest && (digest.size() != 64 || digest.getValue().find_first_not_of("0123456789abcdef") != StringRef::npos))
      return emitOpError("digest must be 64 lower case hex digits, found ") << digest;
  return success();
}

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // program_c5
  if (getStageAttr() && !symbols.lookupNearestSymbolFrom<StageOp>((*this)->getParentOp(), getStageAttr()))
    return emitOpError("stage ") << getStageAttr() << " is not a batten.stage of this module";
  return success();
}

//===--- in a program --------------------------------------------------------------------------------------------===//

LogicalResult WeightRefOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // weight_c1
  auto packed = symbols.lookupNearestSymbolFrom<PackedOp>((*this)->getParentOp()->getParentOp(), getPackedAttr());
  if (!packed)
    return emitOpError() << getPackedAttr() << " is not a plan.packed of this module";
  if (packed.getType() != getType())
    return emitOpError("has type ") << getType() << ", " << getPackedAttr() << " is " << packed.getType();
  return success();
}

LogicalResult StepOp::verify() {
  // step_c1
  if (getLabel().empty())
    return emitOpError("has an empty label");
  // step_c2
  if (auto key = dyn_cast<DictionaryAttr>(getKernel()); key && failed(verifyKey(*this, key)))
    return failure();
  // step_c3
  if (getInouts().size() + getOuts().size() != 1)
    return emitOpError("writes ") << getInouts().size() + getOuts().size() << " buffers, one wanted";
  // step_c4
  if (llvm::is_contained(getIns(), getOutput()))
    return emitOpError("reads and writes one buffer: that is inout");
  // step_c5
  if (getPointerCount() > kMaxKernelPointers)
    return emitOpError("has ") << getPointerCount() << " pointers, a kernel takes at most " << kMaxKernelPointers;
  // step_c6
  if (!getInouts().empty() && isa<DictionaryAttr>(getKernel()) && !getOverwrite())
    return emitOpError("is in place, but its kernel does not overwrite its input");
  // step_c7
  for (int64_t cost : {int64_t(getFlopsPerRow()), int64_t(getFlopsPerPair()), int64_t(getBytesPerRow())})
    if (cost < 0)
      return emitOpError("has a cost below 0: ") << cost;
  return success();
}

LogicalResult StepOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto name = dyn_cast<FlatSymbolRefAttr>(getKernel());
  if (!name)
    return success();
  // step_c2
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>((*this)->getParentOp()->getParentOp(), name);
  if (!kernel)
    return emitOpError() << name << " is not a plan.kernel of this module";
  // step_c6
  if (!getInouts().empty() && !kernel.getOverwrite())
    return emitOpError("is in place, but kernel ") << name << " does not overwrite its input";
  return success();
}

LogicalResult OutputOp::verify() {
  // output_c1
  if (getName().empty())
    return emitOpError("has an empty name");
  return success();
}

LogicalResult LayoutOp::verify() {
  // layout_c1
  ArrayRef<int64_t> bucket = getBucket();
  if (bucket.size() != 3 || bucket[0] < 1 || bucket[1] < 1 || bucket[2] < 0 ||
      llvm::any_of(bucket, [](int64_t n) { return n > kMaxCount; }))
    return emitOpError("bucket must be [tokens, seqs, markers] with tokens and seqs at least 1, found ")
           << shapeText(bucket);
  // layout_c2
  auto buffers = cast<ProgramOp>((*this)->getParentOp()).getBody().getOps<BufferOp>();
  int64_t count = std::distance(buffers.begin(), buffers.end());
  if (static_cast<int64_t>(getOffsets().size()) != count)
    return emitOpError("has ") << getOffsets().size() << " offsets for " << count << " buffers";
  // layout_c3
  for (auto [what, bytes] : {std::pair<StringRef, int64_t>{"arena", getArena()},
                             {"lower_bound", getLowerBound()},
                             {"scratch", getScratch()}})
    if (bytes < 0)
      return emitOpError() << what << " must be at least 0, found " << bytes;
  return success();
}
