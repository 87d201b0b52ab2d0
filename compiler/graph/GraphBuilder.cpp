// See the header. Weights stand before all graphs, in the order in which they are first used.
#include "compiler/graph/GraphBuilder.h"

#include <cmath>

using namespace mlir;

namespace batten {

llvm::StringRef argumentName(Type type) {
  return isa<IdsType>(type) ? "ids" : isa<TypesType>(type) ? "types" : isa<SeqTypesType>(type) ? "seq_types" : "seg";
}

GraphBuilder::GraphBuilder(ModuleOp module) : module(module), weights(module.getContext()), body(module.getContext()) {
  module->setAttr("batten.version", weights.getI32IntegerAttr(kDialectVersion));
}

Location GraphBuilder::at(llvm::StringRef label) { return NameLoc::get(StringAttr::get(module.getContext(), label)); }

void GraphBuilder::beginLane(llvm::StringRef name, llvm::ArrayRef<LaneOutput> outputs, bool readsTypes) {
  MLIRContext *context = module.getContext();
  SmallVector<Type> inputs{IdsType::get(context)}, results;
  if (readsTypes)
    inputs.push_back(TypesType::get(context));
  inputs.push_back(SegmentsType::get(context));
  SmallVector<llvm::StringRef> names;
  for (const LaneOutput &output : outputs) {
    results.push_back(getRowsType(context, output.rows, output.width));
    names.push_back(output.name);
  }
  body.setInsertionPointToEnd(module.getBody());
  bool first = !lanesBegun;
  lanesBegun = true;
  lane = GraphOp::create(body, at(name), name, FunctionType::get(context, inputs, results), names);
  if (first)
    weights.setInsertionPoint(lane);
  Block &block = lane.getBody().empty() ? lane.getBody().emplaceBlock() : lane.getBody().front();
  if (block.getNumArguments() == 0)
    block.addArguments(inputs, SmallVector<Location>(inputs.size(), at(name)));
  for (BlockArgument argument : block.getArguments())
    argument.setLoc(at(argumentName(argument.getType())));
  body.setInsertionPointToEnd(&lane.getBody().front());
  laneParams.clear();
}

void GraphBuilder::endLane(llvm::ArrayRef<Value> results) {
  ReturnOp::create(body, lane.getLoc(), results);
  lane = {};
}

Value GraphBuilder::param(const WeightName &name, llvm::ArrayRef<llvm::StringRef> dims, llvm::ArrayRef<int64_t> shape) {
  WeightOp &weight = bySymbol[name.symbol];
  if (!weight)
    weight = WeightOp::create(weights, at(name.symbol), name.symbol, name.tensor, name.dir, dims,
                              RankedTensorType::get(shape, weights.getF32Type()));
  Value &value = laneParams[name.symbol];
  if (!value)
    value = ParamOp::create(body, at(name.symbol), weight);
  return value;
}

Value GraphBuilder::embedWords(llvm::StringRef label, const WeightName &table, llvm::ArrayRef<llvm::StringRef> dims,
                               int64_t rows, int64_t width) {
  Value weight = param(table, dims, {rows, width});
  return EmbedOp::create(body, at(label), lane.getInput<IdsType>(), weight);
}

Value GraphBuilder::embedTypes(llvm::StringRef label, const WeightName &table, llvm::ArrayRef<llvm::StringRef> dims,
                               int64_t rows, int64_t width) {
  Value weight = param(table, dims, {rows, width});
  return EmbedTypesOp::create(body, at(label), lane.getInput<TypesType>(), weight);
}

Value GraphBuilder::embedPositions(llvm::StringRef label, const WeightName &table, llvm::ArrayRef<llvm::StringRef> dims,
                                   int64_t rows, int64_t width, int64_t offset) {
  Value weight = param(table, dims, {rows, width});
  return EmbedPositionsOp::create(body, at(label), lane.getInput<SegmentsType>(), weight, offset);
}

Value GraphBuilder::add(llvm::StringRef label, Value a, Value b) { return AddOp::create(body, at(label), a, b); }

Value GraphBuilder::linear(llvm::StringRef label, Value x, const LinearSpec &spec) {
  Value weight = param(spec.weight, {spec.nKey, spec.kKey}, {spec.n, spec.k});
  Value bias = spec.bias.symbol.empty() ? Value() : param(spec.bias, {spec.nKey}, {spec.n});
  return LinearOp::create(body, at(label), x, weight, bias);
}

Value GraphBuilder::layerNorm(llvm::StringRef label, Value x, const NormSpec &spec) {
  Value weight = param(spec.weight, {spec.widthKey}, {spec.width});
  Value bias = param(spec.bias, {spec.widthKey}, {spec.width});
  return LayerNormOp::create(body, at(label), x.getType(), x, weight, bias, body.getF32FloatAttr(spec.eps));
}

Value GraphBuilder::activation(llvm::StringRef label, Value x, Activation activation) {
  if (activation == Activation::none)
    return x;
  return ActivationOp::create(body, at(label), x.getType(), activation, x);
}

Value GraphBuilder::pool(llvm::StringRef label, Value x, Pooling kind) {
  return PoolOp::create(body, at(label), kind, x, lane.getInput<SegmentsType>());
}

Value GraphBuilder::concatCols(llvm::StringRef label, llvm::ArrayRef<Value> parts) {
  if (parts.size() == 1)
    return parts.front();
  return ConcatColsOp::create(body, at(label), parts);
}

Value GraphBuilder::l2Normalize(llvm::StringRef label, Value x, float eps) {
  return L2NormalizeOp::create(body, at(label), x.getType(), x, body.getF32FloatAttr(eps));
}

Value GraphBuilder::encoderLayer(Value hidden, const EncoderLayerSpec &spec) {
  auto named = [&](const char *part) { return spec.label + "." + part; };
  Value q = linear(named("q"), hidden, spec.q);
  Value k = linear(named("k"), hidden, spec.k);
  Value v = linear(named("v"), hidden, spec.v);
  Value qkv = concatCols(named("qkv"), {q, k, v});
  int64_t headWidth = spec.q.n / spec.heads;
  auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(headWidth)));
  Value attended = AttentionOp::create(body, at(named("attn")), qkv, lane.getInput<SegmentsType>(),
                                       body.getI64IntegerAttr(spec.heads), IntegerAttr(),
                                       body.getI64IntegerAttr(headWidth), IntegerAttr(), body.getF32FloatAttr(scale));
  Value projected = linear(named("proj"), attended, spec.proj);
  Value middle = layerNorm(named("attn_norm"), add(named("attn_add"), projected, hidden), spec.attentionNorm);
  Value up = activation(named("act"), linear(named("up"), middle, spec.up), spec.activation);
  Value down = linear(named("down"), up, spec.down);
  return layerNorm(named("norm"), add(named("add"), down, middle), spec.outputNorm);
}

} // namespace batten
