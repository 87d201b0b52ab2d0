// What the compiler's driver adds to a module before the passes: the checkpoint's tensors, the spec's stages, more lanes.
#include "compiler/graph/Import.h"
#include "compiler/spec/Text.h"
#include "dialect/BattenDialect.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace batten {

/// The element type of a safetensors dtype (Safetensors.cpp has the list).
static Type elementType(Builder &b, llvm::StringRef dtype) {
  MLIRContext *context = b.getContext();
  auto integer = [&](unsigned width, bool isUnsigned) -> Type {
    return IntegerType::get(context, width, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  return llvm::StringSwitch<llvm::function_ref<Type()>>(dtype)
      .Case("F32", [&]() -> Type { return b.getF32Type(); })
      .Case("F16", [&]() -> Type { return b.getF16Type(); })
      .Case("BF16", [&]() -> Type { return b.getBF16Type(); })
      .Case("F64", [&]() -> Type { return b.getF64Type(); })
      .Case("C64", [&]() -> Type { return ComplexType::get(b.getF32Type()); })
      .Case("BOOL", [&]() -> Type { return integer(1, false); })
      .Case("U8", [&]() -> Type { return integer(8, true); })
      .Case("U16", [&]() -> Type { return integer(16, true); })
      .Case("U32", [&]() -> Type { return integer(32, true); })
      .Case("U64", [&]() -> Type { return integer(64, true); })
      .Case("I8", [&]() -> Type { return integer(8, false); })
      .Case("I16", [&]() -> Type { return integer(16, false); })
      .Case("I32", [&]() -> Type { return integer(32, false); })
      .Case("I64", [&]() -> Type { return integer(64, false); })
      .Case("F8_E4M3", [&]() -> Type { return Float8E4M3FNType::get(context); })
      .Case("F8_E5M2", [&]() -> Type { return Float8E5M2Type::get(context); })
      .Case("F8_E8M0", [&]() -> Type { return Float8E8M0FNUType::get(context); })
      .Case("F8_E4M3FNUZ", [&]() -> Type { return Float8E4M3FNUZType::get(context); })
      .Case("F8_E5M2FNUZ", [&]() -> Type { return Float8E5M2FNUZType::get(context); })
      .Case("F6_E2M3", [&]() -> Type { return Float6E2M3FNType::get(context); })
      .Case("F6_E3M2", [&]() -> Type { return Float6E3M2FNType::get(context); })
      .Default([&]() -> Type { return Float4E2M1FNType::get(context); })();
}

void addStored(ModuleOp module, const Checkpoint &checkpoint) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  for (const Checkpoint::Tensor &tensor : checkpoint.tensors()) {
    auto type = RankedTensorType::get(tensor.stored->shape, elementType(builder, tensor.stored->dtype));
    StoredOp::create(builder, module.getLoc(), builder.getStringAttr(tensor.stored->name),
                     builder.getStringAttr(tensor.dir), builder.getStringAttr(joinPath(tensor.dir, tensor.file)),
                     TypeAttr::get(type));
  }
}

std::vector<llvm::StringRef> weightDirs(ModuleOp module) {
  std::vector<llvm::StringRef> dirs;
  for (WeightOp weight : module.getOps<WeightOp>())
    if (!llvm::is_contained(dirs, weight.getDir()))
      dirs.push_back(weight.getDir());
  return dirs;
}

llvm::Expected<std::unique_ptr<Checkpoint>> openCheckpointFor(ModuleOp module, llvm::StringRef path) {
  std::vector<llvm::StringRef> dirs = weightDirs(module);
  // The encoder's directory comes first where nothing is in the model's own.
  llvm::StringRef encoder =
      dirs.empty() || llvm::is_contained(dirs, llvm::StringRef()) ? llvm::StringRef() : dirs.front();
  if (!encoder.empty() && !isPlainName(encoder))
    return makeError(path + ": " + quoted(encoder) + " is no plain name of a sub-directory");
  llvm::Expected<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open(path, encoder);
  if (!checkpoint)
    return checkpoint;
  for (llvm::StringRef dir : dirs)
    if (!dir.empty())
      if (llvm::Error error = (*checkpoint)->addDirectory(dir))
        return std::move(error);
  return checkpoint;
}

llvm::Error addStages(ModuleOp module, llvm::ArrayRef<StageSpec> stages, llvm::ArrayRef<LaneSpec> lanes) {
  std::vector<llvm::StringRef> graphs;
  for (GraphOp graph : module.getOps<GraphOp>())
    graphs.push_back(graph.getSymName());
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  for (const StageSpec &stage : stages) {
    llvm::SmallVector<std::array<int64_t, 3>> buckets;
    for (const Bucket &bucket : stage.buckets)
      buckets.push_back({bucket.tokens, bucket.seqs, bucket.markers});
    if (module.lookupSymbol(stage.name))
      return makeError((stage.place.empty() ? "" : stage.place + ": ") + "stage " + quoted(stage.name) +
                       " has the name of a graph or weight, another name wanted");
    StageOp::create(builder, module.getLoc(), stage.name, buckets);
  }
  // Lanes may share a graph or take another graph's name: all are copied before the originals go.
  llvm::SmallVector<GraphOp> placed;
  auto fail = [&](const LaneSpec &lane, const llvm::Twine &text) {
    for (GraphOp graph : placed)
      graph.erase();
    return makeError((lane.place.empty() ? "" : lane.place + ": ") + "lane " + quoted(lane.name) + text);
  };
  for (const LaneSpec &lane : lanes) {
    auto graph = module.lookupSymbol<GraphOp>(lane.graph);
    if (!graph)
      return fail(lane,
                  ": no graph @" + lane.graph + didYouMean(lane.graph, graphs) + " (there: " + joined(graphs) + ")");
    Operation *other = module.lookupSymbol(lane.name);
    if (other && !isa<GraphOp>(other))
      return fail(lane, " has the name of a stage or weight, another name wanted");
    placed.push_back(graph.clone());
    placed.back().setSymName(lane.name);
    placed.back().setStageAttr(FlatSymbolRefAttr::get(module.getContext(), lane.stage));
  }
  for (GraphOp graph : llvm::make_early_inc_range(module.getOps<GraphOp>()))
    graph.erase();
  for (GraphOp graph : placed)
    module.push_back(graph);
  return llvm::Error::success();
}

llvm::Error mergeLanes(ModuleOp into, ModuleOp from) {
  SymbolTable symbols(into);
  auto insert = [&](Operation &op, llvm::StringRef kind) -> llvm::Error {
    llvm::StringRef name = SymbolTable::getSymbolName(&op).getValue();
    if (Operation *other = symbols.lookup(name))
      return makeError(kind + " " + quoted(name) + " has the name of a " +
                       (isa<GraphOp>(other)   ? "lane"
                        : isa<StageOp>(other) ? "stage"
                                              : "weight") +
                       " that is there, another name wanted");
    symbols.insert(op.clone());
    return llvm::Error::success();
  };
  // By directory, tensor and type, which also a graph of another author shares.
  using Tensor = std::tuple<llvm::StringRef, llvm::StringRef, Type>;
  llvm::DenseMap<Tensor, WeightOp> known; // looked up, never walked
  auto tensorOf = [](WeightOp weight) { return Tensor(weight.getDir(), weight.getTensor(), weight.getType()); };
  for (WeightOp weight : into.getOps<WeightOp>())
    known.try_emplace(tensorOf(weight), weight);
  SymbolTable theirs(from);
  for (StageOp stage : from.getOps<StageOp>())
    if (llvm::Error error = insert(*stage, "stage"))
      return error;
  for (GraphOp graph : from.getOps<GraphOp>()) {
    if (llvm::Error error = insert(*graph, "lane"))
      return error;
    symbols.lookup<GraphOp>(graph.getSymName()).walk([&](ParamOp param) {
      auto weight = theirs.lookup<WeightOp>(param.getWeight());
      WeightOp &ours = known[tensorOf(weight)];
      if (!ours) {
        ours = weight.clone();
        symbols.insert(ours); // under a new name where its own is taken
      }
      param.setWeight(ours.getSymName());
    });
  }
  return llvm::Error::success();
}

} // namespace batten
