// lower-to-plan: each graph becomes a program, each op with a kernel a step, each value of rows a buffer. Graphs are
// straight lines, so one walk in order is the whole conversion; whatever has no place in a program is an error.
#include "compiler/passes/Passes.h"
#include "dialect/PlanDialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace batten {
#define GEN_PASS_DEF_LOWERTOPLAN
#include "compiler/passes/Passes.h.inc"

namespace {

/// The name in a location, if there is one.
StringRef nameIn(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().getValue();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location inner : fused.getLocations())
      if (StringRef name = nameIn(inner); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return nameIn(call.getCallee());
  return {};
}

/// Names that are used once each.
class Names {
public:
  /// The wanted name, or the first of wanted.2, wanted.3, .. that is free.
  std::string take(StringRef wanted) {
    std::string name = wanted.str();
    for (unsigned n = 2; !taken.insert(name).second; ++n)
      name = (wanted + "." + Twine(n)).str();
    return name;
  }

private:
  llvm::StringSet<> taken;
};

/// The packed weights of a module: one for each expression and type.
class PackedWeights {
public:
  explicit PackedWeights(ModuleOp module) : module(module) {
    for (Operation &op : *module.getBody())
      if (auto symbol = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
        names.take(symbol.getValue());
    for (auto packed : module.getOps<plan::PackedOp>())
      known[{packed.getExprAttr(), packed.getType()}] = packed;
  }

  /// The packed weight, made above the module's first program where it is new. A checkpoint tensor gives its own name, an expression the
  /// label of the step that first wants it; the layout follows: @l0.o.w.panels, @l0.qkv.vector.
  plan::PackedOp get(Attribute expr, Type type, StringRef label, Location location) {
    plan::PackedOp &packed = known[{expr, type}];
    if (packed)
      return packed;
    StringRef base = label;
    auto cast = dyn_cast<plan::ExprAttr>(expr);
    Attribute source = cast && cast.getKind() == plan::ExprKind::cast ? cast.getOperands().front() : expr;
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(source))
      base = symbol.getValue();
    StringRef layout = TypeSwitch<Type, StringRef>(type)
                           .Case<plan::PanelsType, plan::DotPanelsType>([](auto) { return "panels"; })
                           .Case<plan::TableType>([](auto) { return "table"; })
                           .Case<plan::VecType>([](auto) { return "vector"; });
    OpBuilder builder(*module.getOps<plan::ProgramOp>().begin());
    packed = plan::PackedOp::create(builder, location, builder.getStringAttr(names.take((base + "." + layout).str())),
                                    expr, TypeAttr::get(type), IntegerAttr(), IntegerAttr());
    return packed;
  }

private:
  ModuleOp module;
  Names names;
  DenseMap<std::pair<Attribute, Type>, plan::PackedOp> known; // looked up, never walked
};

/// Rows of rope's tables: tokens of the largest bucket of any lane that has a rope, so that all lanes share a table.
int64_t ropePositions(ModuleOp module) {
  int64_t most = 0;
  for (auto graph : module.getOps<GraphOp>())
    if (auto stage = graph.getStage() ? module.lookupSymbol<StageOp>(*graph.getStage()) : StageOp();
        stage && !graph.getBody().getOps<RopeOp>().empty())
      for (Attribute bucket : stage.getBuckets())
        most = std::max(most, cast<DenseI64ArrayAttr>(bucket)[0]);
  return most;
}

/// Lowers one graph.
class GraphLowering {
public:
  GraphLowering(GraphOp graph, PackedWeights &weights, int64_t ropePositions)
      : graph(graph), weights(weights), positionCount(ropePositions), builder(graph) {}

  LogicalResult run() {
    if (!graph.getStage())
      return graph.emitOpError("has no stage: the program could not be placed");
    program = plan::ProgramOp::create(builder, graph.getLoc(), graph.getSymName(), graph.getStageAttr());
    builder.setInsertionPointToStart(&program.getBody().front());
    for (Operation &op : graph.getBody().front())
      if (failed(lower(op)))
        return failure();
    limit(ids, &plan::ProgramOp::setIdCount);
    limit(types, &plan::ProgramOp::setTypeCount);
    limit(seqTypes, &plan::ProgramOp::setSeqTypeCount);
    if (auto stated = graph->getAttrOfType<IntegerAttr>(kMaxSeqTokensAttr))
      positions = std::min(positions.value_or(stated.getInt()), stated.getInt());
    limit(positions, &plan::ProgramOp::setMaxSeqTokens);
    program.setReadsMarkers(readsMarkers);
    graph.erase();
    return success();
  }

private:
  LogicalResult lower(Operation &op) {
    Builder &b = builder;
    auto expr = [&](plan::ExprKind kind, ValueRange inputs, Attribute parameter = {}) {
      SmallVector<Attribute> operands;
      for (Value input : inputs)
        operands.push_back(exprs.lookup(input));
      return plan::ExprAttr::get(b.getContext(), kind, operands, parameter);
    };
    return TypeSwitch<Operation *, LogicalResult>(&op)
        .Case([&](ParamOp param) {
          exprs[param] = param.getWeightAttr();
          return success();
        })
        .Case([&](ConcatOp concat) {
          exprs[concat] = expr(plan::ExprKind::concat, concat.getInputs());
          return success();
        })
        .Case([&](ScaleOp scale) {
          exprs[scale] = expr(plan::ExprKind::scale, scale.getInput(), scale.getFactorAttr());
          return success();
        })
        .Case([&](TransposeOp transpose) {
          exprs[transpose] = expr(plan::ExprKind::transpose, transpose.getInput());
          return success();
        })
        .Case([&](CastOp cast) {
          exprs[cast] = expr(plan::ExprKind::cast, cast.getInput(),
                             TypeAttr::get(mlir::cast<RankedTensorType>(cast.getType()).getElementType()));
          return success();
        })
        .Case([&](KernelOpInterface kernel) { return lowerKernel(kernel); })
        .Case([&](ReturnOp op) {
          for (auto [name, value] : llvm::zip(graph.getResultNames().getAsRange<StringAttr>(), op.getResults()))
            plan::OutputOp::create(builder, op.getLoc(), name, buffers.lookup(value));
          return success();
        })
        .Default([](Operation *op) { return op->emitOpError("has no kernel and no place in a program"); });
  }

  LogicalResult lowerKernel(KernelOpInterface kernel) {
    Location location = kernel.getLoc();
    StringRef name = nameIn(location);
    std::string label = labels.take(!name.empty() ? name.str() : kernel->getName().stripDialect().str());
    noteLimits(kernel);
    SmallVector<Value> inputs = kernel.getKernelInputs(), operands;
    if (auto rope = dyn_cast<RopeOp>(*kernel)) {
      operands.push_back(ropeTable(rope));
      if (!operands.back())
        return failure();
    }
    for (Value input : inputs) {
      operands.push_back(isRows(input.getType()) ? buffers.lookup(input) : weight(input, kernel, label));
      if (!operands.back())
        return failure();
    }
    std::optional<unsigned> overwritten = kernel.getOverwritableOperand();
    assert((!overwritten || kernel->getOperand(*overwritten) == inputs.back()) && "the last input is overwritten");
    Value result = kernel->getResult(0);
    auto type =
        plan::BufType::getChecked([&] { return kernel->emitOpError(); }, builder.getContext(),
                                  getRowKind(result.getType()), getWidth(result.getType()), Type(builder.getF32Type()));
    if (!type)
      return failure();
    Value buffer = plan::BufferOp::create(builder, location, type);
    buffers[result] = buffer;
    plan::StepOp::create(builder, location, label, kernel.getKernelKey(), kernel.getWorkDomain(), operands,
                         /*inouts=*/ValueRange(), /*outs=*/buffer, /*overwrite=*/overwritten.has_value(),
                         kernel.getFlopsPerRow(), kernel.getFlopsPerPair(), kernel.getBytesPerRow());
    return success();
  }

  /// The operand for a weight: vectors by rank, panels where the work is in panels, else tables. Null, with a diagnostic,
  /// where a plan can't hold its sizes.
  Value weight(Value value, KernelOpInterface kernel, StringRef label) {
    auto tensor = cast<RankedTensorType>(value.getType());
    int64_t rows = tensor.getDimSize(0), cols = tensor.getDimSize(tensor.getRank() - 1);
    Type elem = tensor.getElementType(), type;
    Location location = kernel.getLoc();
    MLIRContext *context = builder.getContext();
    auto emit = [&] { return kernel->emitOpError(); };
    if (tensor.getRank() == 1)
      type = plan::VecType::getChecked(emit, context, cols, elem);
    else if (auto linear = dyn_cast<LinearOp>(*kernel); linear && linear.getMath() != Math::f32)
      type = plan::DotPanelsType::getChecked(emit, context, rows, cols, elem);
    else if (kernel.getWorkDomain() == WorkDomain::panels)
      type = plan::PanelsType::getChecked(emit, context, rows, cols, elem);
    else
      type = plan::TableType::getChecked(emit, context, rows, cols, elem);
    if (!type)
      return {};
    return reference(weights.get(exprs.lookup(value), type, label, location), location);
  }

  Value reference(plan::PackedOp packed, Location location) {
    Value &operand = operandOf[packed];
    if (!operand)
      operand = plan::WeightRefOp::create(builder, location, packed.getType(), packed.getSymName());
    return operand;
  }

  /// Cosines and sines for every position of the largest bucket. Null, with a diagnostic, where a plan can't hold its size.
  Value ropeTable(RopeOp rope) {
    MLIRContext *context = builder.getContext();
    Type type = plan::TableType::getChecked([&] { return rope.emitOpError(); }, context, positionCount,
                                            static_cast<int64_t>(rope.getHeadWidth()), Type(builder.getF32Type()));
    if (!type)
      return {};
    SmallVector<Attribute> numbers{rope.getThetaAttr()};
    if (rope.getDivisor())
      numbers.push_back(rope.getDivisorAttr());
    auto expr = plan::ExprAttr::get(context, plan::ExprKind::rope, {}, builder.getArrayAttr(numbers));
    return reference(weights.get(expr, type, "rope", rope.getLoc()), rope.getLoc());
  }

  /// What the batch may hold, by the rows of the tables that its numbers are looked up in.
  void noteLimits(Operation *op) {
    auto note = [](std::optional<int64_t> &limit, Value table, int64_t offset = 0) {
      if (!table)
        return;
      int64_t rows = cast<RankedTensorType>(table.getType()).getDimSize(0) - offset;
      limit = limit ? std::min(*limit, rows) : rows;
    };
    TypeSwitch<Operation *>(op)
        .Case([&](EmbedOp embed) { note(ids, embed.getTable()); })
        .Case([&](EmbedTypesOp embed) { note(types, embed.getTable()); })
        .Case([&](AddTypeOp add) { note(seqTypes, add.getTable()); })
        .Case<GatherMarkersOp, DecisionFeaturesOp>([&](auto) { readsMarkers = true; })
        .Case([&](EmbedPositionsOp embed) { note(positions, embed.getTable(), embed.getOffset()); })
        .Case([&](EmbedSumOp embed) {
          note(ids, embed.getWords());
          note(types, embed.getTypeTable());
          note(positions, embed.getPositions(), embed.getOffset());
        });
  }
  void limit(std::optional<int64_t> value, void (plan::ProgramOp::*set)(uint64_t)) {
    if (value)
      (program.*set)(*value);
  }

  GraphOp graph;
  PackedWeights &weights;
  int64_t positionCount; ///< of rope's tables
  OpBuilder builder;
  plan::ProgramOp program;
  Names labels;
  DenseMap<Value, Attribute> exprs; // of weight values; looked up, never walked
  DenseMap<Value, Value> buffers;   // of values of rows
  DenseMap<Operation *, Value> operandOf;
  std::optional<int64_t> ids, types, seqTypes, positions;
  bool readsMarkers = false;
};

struct LowerToPlan : impl::LowerToPlanBase<LowerToPlan> {
  using LowerToPlanBase::LowerToPlanBase;

  void runOnOperation() override {
    PackedWeights weights(getOperation());
    int64_t positions = ropePositions(getOperation());
    for (GraphOp graph : llvm::make_early_inc_range(getOperation().getOps<GraphOp>()))
      if (failed(GraphLowering(graph, weights, positions).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace batten
