// Directory to module: config, modules, checkpoint, then the lanes. See the header.
#include "compiler/graph/Import.h"
#include "compiler/graph/Decision.h"
#include "compiler/graph/Encoder.h"
#include "compiler/graph/Facts.h"
#include "compiler/graph/Sentence.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/ModelConfig.h"
#include "compiler/spec/Text.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace batten {

/// The table of tensor names that a row of ConfigFamily.cpp names.
static const EncoderFamily &familyOf(llvm::StringRef names) {
  return *llvm::StringSwitch<const EncoderFamily *>(names)
              .Case("bert", &kBert)
              .Case("roberta", &kRoberta)
              .Case("distilbert", &kDistilBert)
              .Case("electra", &kElectra)
              .Case("albert", &kAlbert)
              .Case("modernbert", &kModernBert)
              .Case("nomic_bert", &kNomicBert)
              .Case("gte", &kGte)
              .Case("eurobert", &kEuroBert)
              .Case("jina_embeddings_v3", &kJinaV3);
}

static void buildLanes(ModuleOp module, const ModelConfig &config, const Encoder &encoder,
                       const std::optional<SentenceModules> &modules, int64_t embeddingColumns,
                       std::vector<std::string> &lanes) {
  GraphBuilder builder(module);
  if (config.decisionLayers) {
    buildDecisionLanes(builder, config, encoder, lanes);
    return;
  }
  if (embeddingColumns) {
    lanes.push_back("embed");
    builder.beginLane("embed", {{"embedding", RowKind::seqs, embeddingColumns}}, encoder.inputs());
    builder.endLane(sentenceEmbedding(builder, encoder.hidden(builder), *modules));
  } else if (encoder.head() != ModelHead::None) {
    lanes.push_back("classify");
    RowKind rows = encoder.head() == ModelHead::TokenClassification ? RowKind::tokens : RowKind::seqs;
    builder.beginLane("classify", {{"logits", rows, encoder.labelCount()}}, encoder.inputs());
    builder.endLane(encoder.logits(builder, encoder.hidden(builder)));
  }
  lanes.push_back("encode");
  std::vector<LaneOutput> outputs = {{"hidden", RowKind::tokens, config.hiddenSize}};
  if (encoder.hasPooler())
    outputs.push_back({"pooled", RowKind::seqs, config.hiddenSize});
  builder.beginLane("encode", outputs, encoder.inputs());
  SmallVector<Value> results{encoder.hidden(builder)};
  if (encoder.hasPooler())
    results.push_back(encoder.pooled(builder, results.front()));
  builder.endLane(results);
}

llvm::Expected<ImportedModel> importGraph(MLIRContext &context, llvm::StringRef modelDir) {
  if (!llvm::sys::fs::is_directory(modelDir))
    return makeError(modelDir + ": " + (pathExists(modelDir) ? "not a directory" : "no such directory"));
  llvm::Expected<std::optional<SentenceModules>> modules = readSentenceModules(modelDir);
  if (!modules)
    return modules.takeError();
  std::string encoderDir = *modules ? (*modules)->encoderDir : "";
  llvm::Expected<ModelConfig> config = *modules
                                           ? readModelConfig(joinPath(joinPath(modelDir, encoderDir), "config.json"))
                                           : readModelDirConfig(modelDir);
  if (!config)
    return config.takeError();
  if (*modules && config->decisionLayers)
    return makeError(
        modelDir + ": modules.json is there, and " + config->path +
        " has head_layers: whether sentences are embedded or decisions made is not clear; move one of them away");
  int64_t embeddingColumns = 0;
  if (*modules && !(*modules)->modules.empty()) {
    llvm::Expected<int64_t> width = embeddingWidth(**modules, config->hiddenSize);
    if (!width)
      return width.takeError();
    embeddingColumns = *width;
  }
  llvm::Expected<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open(modelDir, encoderDir);
  if (!checkpoint)
    return checkpoint.takeError();
  if (*modules)
    for (const SentenceModule &module : (*modules)->modules)
      if (module.kind == SentenceModule::Kind::Dense)
        if (llvm::Error error = (*checkpoint)->addDirectory(module.dir))
          return std::move(error);
  llvm::Expected<Encoder> encoder = Encoder::find(*config, familyOf(config->family->names), **checkpoint, encoderDir);
  if (!encoder)
    return encoder.takeError();

  ImportedModel model;
  model.module = ModuleOp::create(UnknownLoc::get(&context));
  buildLanes(*model.module, *config, *encoder, *modules, embeddingColumns, model.lanes);
  model.facts = factsOf(*config, *encoder, *modules);
  writeFacts(*model.module, model.facts);
  model.maxSeqTokens = config->maxSeqTokens();
  if (config->decisionLayers)
    model.notes.push_back("temperature is in the checkpoint and read by no lane: scaling logits is the caller's");
  auto note = [&](const std::vector<std::string> &texts) {
    model.notes.insert(model.notes.end(), texts.begin(), texts.end());
  };
  note(config->notes);
  if (*modules)
    note((*modules)->notes);
  note(encoder->notes());
  note((*checkpoint)->notes());
  model.checkpoint = std::move(*checkpoint);

  std::string fault; // the verifier speaks for an importer's mistake only; it must not print by itself
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (fault.empty())
      fault = diagnostic.str();
    return success();
  });
  if (failed(verify(*model.module)))
    return makeError(modelDir + ": the imported graph does not verify: " + fault);
  return model;
}

Spec specFor(const ImportedModel &model, llvm::StringRef graphPath, llvm::StringRef checkpointPath) {
  Spec spec;
  spec.graph = graphPath.str();
  spec.checkpoint = checkpointPath.str();
  spec.stages = {defaultStage(model.maxSeqTokens)};
  auto readsMarkers = [&](const std::string &lane) {
    auto graph = mlir::cast<GraphOp>(model.module.get().lookupSymbol(lane));
    return graph.walk([](GatherMarkersOp) { return WalkResult::interrupt(); }).wasInterrupted();
  };
  if (llvm::any_of(model.lanes, readsMarkers))
    spec.stages = markerStages(spec.stages.front());
  for (const std::string &lane : model.lanes)
    spec.lanes.push_back({lane, lane, spec.stages[readsMarkers(lane)].name, {}, {}, {}, {}, ""});
  return spec;
}

void writeFacts(ModuleOp module, const Facts &facts) {
  SmallVector<std::string> texts;
  for (const auto &[key, value] : facts)
    texts.push_back(key + ": " + value);
  SmallVector<llvm::StringRef> refs(texts.begin(), texts.end());
  module->setAttr("batten.facts", Builder(module.getContext()).getStrArrayAttr(refs));
}

Facts readFacts(ModuleOp module) {
  Facts facts;
  if (auto array = module->getAttrOfType<ArrayAttr>("batten.facts"))
    for (auto text : array.getAsRange<StringAttr>()) {
      auto [key, value] = text.getValue().split(": ");
      facts.emplace_back(key.str(), value.str());
    }
  return facts;
}

} // namespace batten
