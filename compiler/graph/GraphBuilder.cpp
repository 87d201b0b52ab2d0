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

void GraphBuilder::beginLane(llvm::StringRef name, llvm::ArrayRef<LaneOutput> outputs, LaneInputs reads) {
  MLIRContext *context = module.getContext();
  SmallVector<Type> inputs{IdsType::get(context)}, results;
  if (reads.types)
    inputs.push_back(TypesType::get(context));
  if (reads.seqTypes)
    inputs.push_back(SeqTypesType::get(context));
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
  if (reads.maxSeqTokens)
    lane->setAttr(kMaxSeqTokensAttr, body.getI64IntegerAttr(reads.maxSeqTokens));
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

void GraphBuilder::require(const WeightName &name, llvm::ArrayRef<llvm::StringRef> dims,
                           llvm::ArrayRef<int64_t> shape) {
  WeightOp &weight = bySymbol[name.symbol];
  if (!weight)
    weight = WeightOp::create(weights, at(name.symbol), name.symbol, name.tensor, name.dir, dims,
                              RankedTensorType::get(shape, weights.getF32Type()));
}

Value GraphBuilder::param(const WeightName &name, llvm::ArrayRef<llvm::StringRef> dims, llvm::ArrayRef<int64_t> shape) {
  require(name, dims, shape);
  WeightOp weight = bySymbol[name.symbol];
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

Value GraphBuilder::norm(llvm::StringRef label, Value x, const NormSpec &spec) {
  Value weight = param(spec.weight, {spec.widthKey}, {spec.width});
  if (spec.rms)
    return RmsNormOp::create(body, at(label), x, weight, body.getF32FloatAttr(spec.eps));
  Value bias = spec.bias.symbol.empty() ? Value() : param(spec.bias, {spec.widthKey}, {spec.width});
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

Value GraphBuilder::addType(llvm::StringRef label, Value x, const WeightName &table,
                            llvm::ArrayRef<llvm::StringRef> dims, int64_t types) {
  Value weight = param(table, dims, {types, getWidth(x.getType())});
  return AddTypeOp::create(body, at(label), x, lane.getInput<SeqTypesType>(), weight);
}

Value GraphBuilder::gatherMarkers(llvm::StringRef label, Value x) {
  return GatherMarkersOp::create(body, at(label), x, lane.getInput<SegmentsType>());
}

Value GraphBuilder::decisionFeatures(llvm::StringRef label, Value x, Value logits) {
  return DecisionFeaturesOp::create(body, at(label), x, logits, lane.getInput<SegmentsType>());
}

Value GraphBuilder::linears(const std::string &label, llvm::StringRef joined, llvm::ArrayRef<llvm::StringRef> parts,
                            Value x, llvm::ArrayRef<LinearSpec> specs) {
  std::string joinedLabel = label + joined.str();
  if (specs.size() == 1)
    return linear(joinedLabel, x, specs.front());
  SmallVector<Value> values;
  for (auto [part, spec] : llvm::zip_equal(parts, specs))
    values.push_back(linear(label + part.str(), x, spec));
  return concatCols(joinedLabel, values);
}

Value GraphBuilder::attention(Value x, const EncoderLayerSpec &spec) {
  Value qkv = linears(spec.label + ".", "qkv", {"q", "k", "v"}, x, spec.qkv);
  Value segments = lane.getInput<SegmentsType>();
  IntegerAttr heads = body.getI64IntegerAttr(spec.heads), headWidth = body.getI64IntegerAttr(spec.headWidth);
  IntegerAttr kvHeads = spec.kvHeads == spec.heads ? IntegerAttr() : body.getI64IntegerAttr(spec.kvHeads);
  IntegerAttr window = spec.window < 0 ? IntegerAttr() : body.getI64IntegerAttr(spec.window);
  if (spec.ropeTheta > 0)
    qkv = RopeOp::create(body, at(spec.label + ".rope"), qkv, segments, heads, kvHeads, headWidth,
                         body.getF32FloatAttr(static_cast<float>(spec.ropeTheta)),
                         spec.ropeDivisor == 1 ? FloatAttr()
                                               : body.getF32FloatAttr(static_cast<float>(spec.ropeDivisor)));
  auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.headWidth)));
  Value attended = AttentionOp::create(body, at(spec.label + ".attn"), qkv, segments, heads, kvHeads, headWidth, window,
                                       body.getF32FloatAttr(scale));
  return linear(spec.label + ".proj", attended, spec.proj);
}

Value GraphBuilder::innerLayers(Value x, const EncoderLayerSpec &spec) {
  Value up = linears(spec.label + ".", spec.gated ? "upgate" : "up", {"gate", "up"}, x, spec.up);
  Value inner = spec.gated ? GatedOp::create(body, at(spec.label + ".gated"), spec.activation, *spec.gated, up)
                           : activation(spec.label + ".act", up, spec.activation);
  return linear(spec.label + ".down", inner, spec.down);
}

Value GraphBuilder::encoderLayer(Value hidden, const EncoderLayerSpec &spec) {
  std::string attnNorm = spec.label + ".attn_norm", attnAdd = spec.label + ".attn_add", outNorm = spec.label + ".norm",
              outAdd = spec.label + ".add";
  if (spec.preNorm) {
    Value x = spec.attentionNorm ? norm(attnNorm, hidden, *spec.attentionNorm) : hidden;
    hidden = add(attnAdd, attention(x, spec), hidden);
    return add(outAdd, innerLayers(norm(outNorm, hidden, spec.outputNorm), spec), hidden);
  }
  Value middle = norm(attnNorm, add(attnAdd, attention(hidden, spec), hidden), *spec.attentionNorm);
  return norm(outNorm, add(outAdd, innerLayers(middle, spec), middle), spec.outputNorm);
}

} // namespace batten
