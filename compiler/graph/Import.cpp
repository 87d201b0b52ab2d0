// Directory to module: config, modules, checkpoint, then the lanes. See the header.
#include "compiler/graph/Import.h"
#include "compiler/graph/Encoder.h"
#include "compiler/graph/Sentence.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/ModelConfig.h"
#include "compiler/spec/Text.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"

#include <cstdio>

using namespace mlir;

namespace batten {

/// Text for people out of a config: control characters become blanks.
static std::string plainText(llvm::StringRef text) {
  std::string out = text.str();
  for (char &c : out)
    c = static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  return out;
}

static std::string epsText(double eps) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", eps);
  return text;
}

/// A family's table of tensor names; nothing where there is none yet.
static const EncoderFamily *familyOf(llvm::StringRef names) {
  return llvm::StringSwitch<const EncoderFamily *>(names)
      .Case("bert", &kBert)
      .Case("roberta", &kRoberta)
      .Case("distilbert", &kDistilBert)
      .Case("electra", &kElectra)
      .Case("albert", &kAlbert)
      .Default(nullptr);
}

static std::string number(int64_t value) { return std::to_string(value); }

/// What a config says of positions: how many, and where they begin.
static std::string positionsText(const ModelConfig &config, const std::string &padText) {
  if (config.family->positionPad < 0)
    return number(config.maxPositions) + ", absolute, from 0 in each sequence";
  // transformers doesn't count padding ids; a packed sequence has no padding, so all its tokens count.
  return number(config.maxSeqTokens()) + " of " + number(config.maxPositions) + " rows, absolute, from " +
         number(config.firstPosition) + " (pad_token_id " + padText +
         " + 1) in each sequence; every token counts, also one with the padding's id";
}

static Facts encoderFacts(const ModelConfig &config, const Encoder &encoder) {
  auto defaulted = [&](const std::string &key, std::string value) {
    bool absent = llvm::is_contained(config.defaults, key);
    return value + (absent ? " (default of the family: config.json has no " + key + ")" : "");
  };
  Facts facts = {{"family", defaulted("model_type", config.modelType)}, {"layers", number(config.layers)}};
  if (config.family->layerGroups) {
    facts.emplace_back("layer groups", defaulted("num_hidden_groups", number(config.layerGroups)) +
                                           "; the layers of a group share their weights");
    facts.emplace_back("layers inside a group", defaulted("inner_group_num", "1"));
  }
  facts.emplace_back("hidden size", number(config.hiddenSize));
  if (config.family->embeddingSize)
    facts.emplace_back("embedding size", defaulted("embedding_size", number(config.embeddingSize)));
  facts.emplace_back("heads", number(config.heads) + " of width " + number(config.hiddenSize / config.heads));
  facts.emplace_back("inner size", number(config.intermediateSize));
  facts.emplace_back("activation",
                     defaulted(config.activationKey, config.activationName + " (" + config.activation + ")"));
  facts.emplace_back("layer norm eps", defaulted(config.normEpsKey, epsText(config.normEps)) +
                                           (config.family->epsIsFixed ? " (fixed by the family)" : ""));
  facts.emplace_back("positions", positionsText(config, defaulted("pad_token_id", number(config.firstPosition - 1))));
  facts.emplace_back("token types",
                     config.family->tokenTypes
                         ? defaulted("type_vocab_size", number(config.typeVocabSize)) + "; absent means 0"
                         : "none");
  facts.emplace_back("names", "prefix \"" + encoder.prefix() + "\"");
  facts.emplace_back("own pooler", encoder.hasPooler() ? "dense, tanh" : "none");
  return facts;
}

static Facts factsOf(const ModelConfig &config, const Encoder &encoder, const std::optional<SentenceModules> &modules) {
  Facts facts = encoderFacts(config, encoder);
  if (modules) {
    bool normalized = false;
    for (const SentenceModule &module : modules->modules) {
      if (module.kind == SentenceModule::Kind::Pooling)
        facts.emplace_back("pooling", llvm::join(module.modes, " + ") +
                                          (module.modesAreDefault ? " (default of sentence-transformers)" : ""));
      if (module.kind == SentenceModule::Kind::Dense)
        facts.emplace_back("dense", number(module.inFeatures) + " to " + number(module.outFeatures) + ", " +
                                        module.activation + (module.bias ? "" : ", no bias") +
                                        (module.residual ? ", residual" : ""));
      normalized = module.kind == SentenceModule::Kind::Normalize;
    }
    if (!modules->modules.empty())
      facts.emplace_back("normalize", normalized ? "yes" : "no");
  }
  if (encoder.head() != ModelHead::None) {
    facts.emplace_back("classifier",
                       std::string(encoder.head() == ModelHead::TokenClassification ? "tokens" : "sequences") + ", " +
                           number(encoder.labelCount()) + " logits, no softmax or sigmoid");
    std::string labels;
    for (size_t i = 0; i < config.labels.size() && i < 256; ++i)
      labels += (i ? ", " : "") + std::to_string(i) + " = " + plainText(config.labels[i]);
    if (!labels.empty())
      facts.emplace_back("labels", labels);
  }
  return facts;
}

static void buildLanes(ModuleOp module, const ModelConfig &config, const Encoder &encoder,
                       const std::optional<SentenceModules> &modules, int64_t embeddingColumns,
                       std::vector<std::string> &lanes) {
  GraphBuilder builder(module);
  if (embeddingColumns) {
    lanes.push_back("embed");
    builder.beginLane("embed", {{"embedding", RowKind::seqs, embeddingColumns}}, encoder.readsTypes());
    builder.endLane(sentenceEmbedding(builder, encoder.hidden(builder), *modules));
  } else if (encoder.head() != ModelHead::None) {
    lanes.push_back("classify");
    RowKind rows = encoder.head() == ModelHead::TokenClassification ? RowKind::tokens : RowKind::seqs;
    builder.beginLane("classify", {{"logits", rows, encoder.labelCount()}}, encoder.readsTypes());
    builder.endLane(encoder.logits(builder, encoder.hidden(builder)));
  }
  lanes.push_back("encode");
  std::vector<LaneOutput> outputs = {{"hidden", RowKind::tokens, config.hiddenSize}};
  if (encoder.hasPooler())
    outputs.push_back({"pooled", RowKind::seqs, config.hiddenSize});
  builder.beginLane("encode", outputs, encoder.readsTypes());
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
  const EncoderFamily *family = familyOf(config->family->names);
  if (!family)
    return makeError(config->path + ": model_type " + quoted(config->modelType) +
                     " is refused: its family is not compiled yet");
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
  llvm::Expected<Encoder> encoder = Encoder::find(*config, *family, **checkpoint, encoderDir);
  if (!encoder)
    return encoder.takeError();

  ImportedModel model;
  model.module = ModuleOp::create(UnknownLoc::get(&context));
  buildLanes(*model.module, *config, *encoder, *modules, embeddingColumns, model.lanes);
  model.facts = factsOf(*config, *encoder, *modules);
  writeFacts(*model.module, model.facts);
  model.maxSeqTokens = config->maxSeqTokens();
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
  for (const std::string &lane : model.lanes)
    spec.lanes.push_back({lane, lane, spec.stages.front().name, {}, {}, {}, {}, ""});
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
