// Names of the bert family. Weights are asked for by the name that the checkpoint should have under the prefix found, also
// where it lacks them: resolve-weights then names all that are missing in one report.
#include "compiler/graph/Bert.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>

namespace batten {

static constexpr llvm::StringLiteral kWords = "embeddings.word_embeddings.weight";

/// Prefixes that known ways of saving leave, the usual first. Others are taken only where there is but one.
static constexpr llvm::StringLiteral kPrefixes[] = {
    "", "bert.", "model.", "module.", "module.bert.", "model.bert.", "module.model."};

llvm::Error Bert::findPrefix() {
  // Anchors, best first: a checkpoint that lacks one is still read under its prefix, and the report names what is missing.
  for (llvm::StringRef anchor : {llvm::StringRef(kWords), llvm::StringRef("embeddings.position_embeddings.weight"),
                                 llvm::StringRef("encoder.layer.0.attention.self.query.weight")}) {
    std::vector<std::string> found;
    for (const Checkpoint::Tensor &tensor : checkpoint.tensors()) {
      llvm::StringRef name = tensor.stored->name;
      if (tensor.dir == dir && name.consume_back(anchor) && (name.empty() || name.ends_with(".")))
        found.push_back(name.str());
    }
    if (found.empty())
      continue;
    if (found.size() == 1) {
      namePrefix = found.front();
    } else {
      auto known = llvm::find_if(kPrefixes, [&](llvm::StringRef prefix) { return llvm::is_contained(found, prefix); });
      if (known == std::end(kPrefixes))
        return makeError(checkpoint.directory() + ": " + llvm::Twine(found.size()) + " tensors end in " + anchor +
                         ", under " + quoted(found[0]) + ", " + quoted(found[1]) +
                         (found.size() > 2 ? ", ..: " : ": ") + "which encoder is meant is not clear");
      namePrefix = known->str();
      noteTexts.push_back("several encoders in the checkpoint: the one with prefix \"" + namePrefix + "\" is taken");
    }
    break;
  }
  llvm::StringRef outer = namePrefix;
  outer.consume_back("bert.");
  headPrefix = outer.str();
  return llvm::Error::success();
}

llvm::Error Bert::findHead() {
  pooler = stored(namePrefix + "pooler.dense.weight") || stored(namePrefix + "pooler.dense.bias");
  bool classifier = stored(headPrefix + "classifier.weight");
  headKind = config.head;
  if (headKind != ModelHead::None)
    return llvm::Error::success();
  if (!classifier)
    return llvm::Error::success();
  if (!config.architectures.empty()) {
    noteTexts.push_back("the checkpoint has a classifier, but architectures is " + config.architectures.front() +
                        ": the classifier is left out");
    return llvm::Error::success();
  }
  if (pooler) // older token classifiers were saved with a pooler that they don't use
    return makeError(config.path + ": architectures is missing, and the checkpoint has both " +
                     quoted(headPrefix + "classifier.weight") +
                     " and a pooler: whether sequences or tokens are classified "
                     "is not clear; name BertForSequenceClassification or BertForTokenClassification there");
  headKind = ModelHead::TokenClassification;
  noteTexts.push_back("architectures is missing: a classifier without a pooler classifies tokens");
  return llvm::Error::success();
}

void Bert::findSizes() {
  // The table's real rows bound the ids; a vocab_size that was rounded up or down is a note (padded vocabularies).
  wordRows = config.vocabSize;
  const Checkpoint::Tensor *words = checkpoint.lookup(dir, namePrefix + kWords.str());
  if (words && words->stored->shape.size() == 2 && words->stored->shape[1] == config.hiddenSize &&
      words->stored->shape[0] >= 1 && words->stored->shape[0] != config.vocabSize) {
    wordRows = words->stored->shape[0];
    noteTexts.push_back("vocab_size is " + std::to_string(config.vocabSize) + ", the embedding table has " +
                        std::to_string(wordRows) + " rows: ids are bounded by the table");
  }
  if (headKind == ModelHead::None)
    return;
  labelKey = config.labelCount ? "id2label" : "labels";
  labels = config.labelCount.value_or(2); // transformers' default
  const Checkpoint::Tensor *classifier = checkpoint.lookup(dir, headPrefix + "classifier.weight");
  if (!config.labelCount && classifier && classifier->stored->shape.size() == 2 && classifier->stored->shape[0] >= 1)
    labels = classifier->stored->shape[0];
}

llvm::Expected<Bert> Bert::find(const ModelConfig &config, const Checkpoint &checkpoint, llvm::StringRef dir) {
  Bert bert(config, checkpoint, dir);
  if (llvm::Error error = bert.findPrefix())
    return std::move(error);
  if (llvm::Error error = bert.findHead())
    return std::move(error);
  bert.findSizes();
  return bert;
}

WeightName Bert::norm(llvm::StringRef symbol, const std::string &module, bool weight) const {
  std::string name = namePrefix + module + (weight ? ".weight" : ".bias");
  std::string old = namePrefix + module + (weight ? ".gamma" : ".beta");
  return {(symbol + (weight ? ".w" : ".b")).str(), !stored(name) && stored(old) ? old : name, dir};
}

NormSpec Bert::normSpec(llvm::StringRef symbol, const std::string &module) const {
  return {norm(symbol, module, true), norm(symbol, module, false), config.hiddenSize, "hidden_size",
          static_cast<float>(config.layerNormEps)};
}

LinearSpec Bert::linearSpec(llvm::StringRef symbol, const std::string &module, int64_t k, int64_t n,
                            llvm::StringRef kKey, llvm::StringRef nKey) const {
  return {{(symbol + ".w").str(), module + ".weight", dir},
          {(symbol + ".b").str(), module + ".bias", dir},
          k,
          n,
          kKey.str(),
          nKey.str()};
}

EncoderLayerSpec Bert::layerSpec(int64_t index) const {
  EncoderLayerSpec spec;
  spec.label = "l" + std::to_string(index);
  std::string module = "encoder.layer." + std::to_string(index) + ".";
  auto dense = [&](const char *symbol, const char *part, int64_t k, int64_t n, llvm::StringRef kKey,
                   llvm::StringRef nKey) {
    return linearSpec(spec.label + "." + symbol, namePrefix + module + part, k, n, kKey, nKey);
  };
  int64_t d = config.hiddenSize, inner = config.intermediateSize;
  constexpr llvm::StringLiteral kHidden = "hidden_size", kInner = "intermediate_size";
  spec.q = dense("q", "attention.self.query", d, d, kHidden, kHidden);
  spec.k = dense("k", "attention.self.key", d, d, kHidden, kHidden);
  spec.v = dense("v", "attention.self.value", d, d, kHidden, kHidden);
  spec.proj = dense("proj", "attention.output.dense", d, d, kHidden, kHidden);
  spec.attentionNorm = normSpec(spec.label + ".attn_norm", module + "attention.output.LayerNorm");
  spec.up = dense("up", "intermediate.dense", d, inner, kHidden, kInner);
  spec.down = dense("down", "output.dense", inner, d, kInner, kHidden);
  spec.outputNorm = normSpec(spec.label + ".norm", module + "output.LayerNorm");
  spec.heads = config.heads;
  spec.activation = *symbolizeActivation(config.activation);
  return spec;
}

mlir::Value Bert::encoder(GraphBuilder &builder) const {
  int64_t d = config.hiddenSize;
  auto table = [&](const char *symbol, llvm::StringRef name) {
    return WeightName{symbol, (namePrefix + name).str(), dir};
  };
  mlir::Value words =
      builder.embedWords("embed.words", table("embed.words.w", kWords), {"vocab_size", "hidden_size"}, wordRows, d);
  mlir::Value types =
      builder.embedTypes("embed.types", table("embed.types.w", "embeddings.token_type_embeddings.weight"),
                         {"type_vocab_size", "hidden_size"}, config.typeVocabSize, d);
  mlir::Value positions =
      builder.embedPositions("embed.positions", table("embed.positions.w", "embeddings.position_embeddings.weight"),
                             {"max_position_embeddings", "hidden_size"}, config.maxPositions, d, /*offset=*/0);
  mlir::Value sum = builder.add("embed", builder.add("embed.add", words, types), positions);
  mlir::Value hidden = builder.layerNorm("embed.norm", sum, normSpec("embed.norm", "embeddings.LayerNorm"));
  for (int64_t i = 0; i < config.layers; ++i)
    hidden = builder.encoderLayer(hidden, layerSpec(i));
  return hidden;
}

mlir::Value Bert::pooled(GraphBuilder &builder, mlir::Value hidden) const {
  mlir::Value first = builder.pool("pooler.cls", hidden, Pooling::cls);
  LinearSpec dense = linearSpec("pooler", namePrefix + "pooler.dense", config.hiddenSize, config.hiddenSize,
                                "hidden_size", "hidden_size");
  return builder.activation("pooler.act", builder.linear("pooler", first, dense), Activation::tanh);
}

mlir::Value Bert::logits(GraphBuilder &builder, mlir::Value hidden) const {
  mlir::Value x = headKind == ModelHead::SequenceClassification ? pooled(builder, hidden) : hidden;
  return builder.linear(
      "classifier", x,
      linearSpec("classifier", headPrefix + "classifier", config.hiddenSize, labels, "hidden_size", labelKey));
}

} // namespace batten
