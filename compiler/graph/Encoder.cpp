// See the header. Weights are asked for by the name that the checkpoint should have under the prefix found, also where it
// lacks them: resolve-weights then names all that are missing in one report.
#include "compiler/graph/Encoder.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"

namespace batten {

std::string Encoder::layerModule(int64_t index) const {
  auto [before, after] = family.layer.module.split("{}");
  return (before + llvm::Twine(config.groupOf(index)) + after).str();
}

llvm::Error Encoder::findPrefix() {
  // Prefixes that known ways of saving leave, the usual first. Others are taken only where there is but one.
  std::vector<std::string> usual = {"", family.prefix.str(), "model.", "module."};
  for (const char *outer : {"module.", "model."})
    usual.push_back(outer + family.prefix.str());
  usual.push_back("module.model.");
  // Anchors, best first: a checkpoint that lacks one is still read under its prefix, and the report names what is missing.
  const std::string anchors[] = {(family.wordTable + ".weight").str(), (family.positionTable + ".weight").str(),
                                 layerModule(0) + (family.layer.query + ".weight").str()};
  for (const std::string &anchor : anchors) {
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
      auto known = llvm::find_if(usual, [&](llvm::StringRef prefix) { return llvm::is_contained(found, prefix); });
      if (known == usual.end())
        return makeError(checkpoint.directory() + ": " + llvm::Twine(found.size()) + " tensors end in " + anchor +
                         ", under " + quoted(found[0]) + ", " + quoted(found[1]) +
                         (found.size() > 2 ? ", ..: " : ": ") + "which encoder is meant is not clear");
      namePrefix = *known;
      noteTexts.push_back("several encoders in the checkpoint: the one with prefix \"" + namePrefix + "\" is taken");
    }
    break;
  }
  llvm::StringRef outer = namePrefix;
  outer.consume_back(family.prefix);
  headPrefix = outer.str();
  return llvm::Error::success();
}

llvm::Error Encoder::findHead() {
  pooler = !family.pooler.empty() && hasModule(namePrefix + family.pooler);
  headKind = config.head;
  if (headKind != ModelHead::None)
    return llvm::Error::success();
  // Sequence classifiers with a dense layer of their own are told by it; others share their names with token classifiers.
  bool ownDense = !family.sequenceDense.empty() && stored(headPrefix + family.sequenceDense + ".weight");
  std::string classifier = headPrefix + (family.tokenOut + ".weight").str();
  if (!ownDense && !stored(classifier))
    return llvm::Error::success();
  if (!config.architectures.empty()) {
    noteTexts.push_back("the checkpoint has a classifier, but architectures is " + config.architectures.front() +
                        ": the classifier is left out");
    return llvm::Error::success();
  }
  if (ownDense) {
    headKind = ModelHead::SequenceClassification;
    noteTexts.push_back("architectures is missing: a classifier with " + headPrefix + family.sequenceDense.str() +
                        " classifies sequences");
    return llvm::Error::success();
  }
  if (pooler && family.sequenceDense.empty()) // older token classifiers were saved with a pooler that they don't use
    return makeError(config.path + ": architectures is missing, and the checkpoint has both " + quoted(classifier) +
                     " and a pooler: whether sequences or tokens are classified is not clear; name " +
                     config.family->className + "ForSequenceClassification or " + config.family->className +
                     "ForTokenClassification there");
  headKind = ModelHead::TokenClassification;
  noteTexts.push_back("architectures is missing: a classifier without a " +
                      std::string(family.sequenceDense.empty() ? "pooler" : "dense layer") + " classifies tokens");
  return llvm::Error::success();
}

std::string Encoder::outModule() const {
  return headPrefix + (headKind == ModelHead::TokenClassification ? family.tokenOut : family.sequenceOut).str();
}

void Encoder::findSizes() {
  // The table's real rows bound the ids; a vocab_size that was rounded up or down is a note (padded vocabularies).
  wordRows = config.vocabSize;
  const Checkpoint::Tensor *words = checkpoint.lookup(dir, namePrefix + (family.wordTable + ".weight").str());
  if (words && words->stored->shape.size() == 2 && words->stored->shape[1] == config.embeddingSize &&
      words->stored->shape[0] >= 1 && words->stored->shape[0] != config.vocabSize) {
    wordRows = words->stored->shape[0];
    noteTexts.push_back("vocab_size is " + std::to_string(config.vocabSize) + ", the embedding table has " +
                        std::to_string(wordRows) + " rows: ids are bounded by the table");
  }
  if (headKind == ModelHead::None)
    return;
  labelKey = config.labelCount ? "id2label" : "labels";
  labels = config.labelCount.value_or(2); // transformers' default
  const Checkpoint::Tensor *out = checkpoint.lookup(dir, outModule() + ".weight");
  if (!config.labelCount && out && out->stored->shape.size() == 2 && out->stored->shape[0] >= 1)
    labels = out->stored->shape[0];
}

llvm::Expected<Encoder> Encoder::find(const ModelConfig &config, const EncoderFamily &family,
                                      const Checkpoint &checkpoint, llvm::StringRef dir) {
  Encoder encoder(config, family, checkpoint, dir);
  if (llvm::Error error = encoder.findPrefix())
    return std::move(error);
  if (llvm::Error error = encoder.findHead())
    return std::move(error);
  encoder.findSizes();
  return encoder;
}

WeightName Encoder::norm(llvm::StringRef symbol, const std::string &module, bool weight) const {
  std::string name = namePrefix + module + (weight ? ".weight" : ".bias");
  std::string old = namePrefix + module + (weight ? ".gamma" : ".beta");
  return {(symbol + (weight ? ".w" : ".b")).str(), !stored(name) && stored(old) ? old : name, dir};
}

NormSpec Encoder::normSpec(llvm::StringRef symbol, const std::string &module, int64_t width,
                           llvm::StringRef widthKey) const {
  return {norm(symbol, module, true), norm(symbol, module, false), width, widthKey.str(),
          static_cast<float>(config.normEps)};
}

LinearSpec Encoder::linearSpec(llvm::StringRef symbol, const std::string &module, int64_t k, int64_t n,
                               llvm::StringRef kKey, llvm::StringRef nKey) const {
  return {{(symbol + ".w").str(), module + ".weight", dir},
          {(symbol + ".b").str(), module + ".bias", dir},
          k,
          n,
          kKey.str(),
          nKey.str()};
}

LinearSpec Encoder::squareSpec(llvm::StringRef symbol, const std::string &module) const {
  return linearSpec(symbol, module, config.hiddenSize, config.hiddenSize, config.hiddenSizeKey, config.hiddenSizeKey);
}

EncoderLayerSpec Encoder::layerSpec(int64_t index) const {
  EncoderLayerSpec spec;
  spec.label = "l" + std::to_string(index);
  // Layers of a group name the same symbols, so that their weights are one.
  std::string group = (config.layerGroups ? "g" : "l") + std::to_string(config.groupOf(index)) + ".";
  std::string module = layerModule(index);
  auto full = [&](llvm::StringRef part) { return namePrefix + module + part.str(); };
  auto normed = [&](const char *symbol, llvm::StringRef part) {
    return normSpec(group + symbol, module + part.str(), config.hiddenSize, config.hiddenSizeKey);
  };
  const LayerNames &names = family.layer;
  spec.q = squareSpec(group + "q", full(names.query));
  spec.k = squareSpec(group + "k", full(names.key));
  spec.v = squareSpec(group + "v", full(names.value));
  spec.proj = squareSpec(group + "proj", full(names.proj));
  spec.attentionNorm = normed("attn_norm", names.attentionNorm);
  spec.up = linearSpec(group + "up", full(names.up), config.hiddenSize, config.intermediateSize, config.hiddenSizeKey,
                       config.intermediateSizeKey);
  spec.down = linearSpec(group + "down", full(names.down), config.intermediateSize, config.hiddenSize,
                         config.intermediateSizeKey, config.hiddenSizeKey);
  spec.outputNorm = normed("norm", names.outputNorm);
  spec.heads = config.heads;
  spec.activation = *symbolizeActivation(config.activation);
  return spec;
}

mlir::Value Encoder::hidden(GraphBuilder &builder) const {
  int64_t width = config.embeddingSize;
  const std::string &widthKey = config.embeddingSizeKey;
  auto table = [&](const char *symbol, llvm::StringRef name) {
    return WeightName{symbol, namePrefix + (name + ".weight").str(), dir};
  };
  mlir::Value sum = builder.embedWords("embed.words", table("embed.words.w", family.wordTable),
                                       {"vocab_size", widthKey}, wordRows, width);
  mlir::Value types;
  if (readsTypes())
    types = builder.embedTypes("embed.types", table("embed.types.w", family.typeTable), {"type_vocab_size", widthKey},
                               config.typeVocabSize, width);
  mlir::Value positions =
      builder.embedPositions("embed.positions", table("embed.positions.w", family.positionTable),
                             {"max_position_embeddings", widthKey}, config.maxPositions, width, config.firstPosition);
  if (types)
    sum = builder.add("embed.add", sum, types);
  sum = builder.add("embed", sum, positions);
  mlir::Value hidden =
      builder.layerNorm("embed.norm", sum, normSpec("embed.norm", family.embeddingNorm.str(), width, widthKey));
  if (family.projection == EmbeddingProjection::Always ||
      (family.projection == EmbeddingProjection::WhereWidthsDiffer && width != config.hiddenSize))
    hidden = builder.linear("embed.project", hidden,
                            linearSpec("embed.project", namePrefix + family.projectionModule.str(), width,
                                       config.hiddenSize, widthKey, config.hiddenSizeKey));
  for (int64_t i = 0; i < config.layers; ++i)
    hidden = builder.encoderLayer(hidden, layerSpec(i));
  return hidden;
}

mlir::Value Encoder::pooled(GraphBuilder &builder, mlir::Value hidden) const {
  mlir::Value first = builder.pool("pooler.cls", hidden, Pooling::cls);
  LinearSpec dense = squareSpec("pooler", namePrefix + family.pooler.str());
  return builder.activation("pooler.act", builder.linear("pooler", first, dense), Activation::tanh);
}

mlir::Value Encoder::logits(GraphBuilder &builder, mlir::Value hidden) const {
  mlir::Value x = hidden;
  if (headKind == ModelHead::SequenceClassification) {
    if (family.sequenceDense.empty()) {
      x = pooled(builder, hidden);
    } else {
      mlir::Value first = builder.pool("classifier.cls", hidden, Pooling::cls);
      LinearSpec dense = squareSpec("classifier.dense", headPrefix + family.sequenceDense.str());
      x = builder.activation("classifier.act", builder.linear("classifier.dense", first, dense),
                             family.sequenceActivation);
    }
  }
  return builder.linear(
      "classifier", x,
      linearSpec("classifier", outModule(), config.hiddenSize, labels, config.hiddenSizeKey, labelKey));
}

} // namespace batten
