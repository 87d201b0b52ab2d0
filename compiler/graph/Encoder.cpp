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
  std::vector<std::string> usual = {""};
  for (llvm::StringRef own : family.prefixes)
    usual.push_back(own.str());
  usual.insert(usual.end(), {"model.", "module."});
  for (const char *outer : {"module.", "model."})
    for (llvm::StringRef own : family.prefixes)
      usual.push_back(outer + own.str());
  usual.push_back("module.model.");
  // Anchors, best first: a checkpoint that lacks one is still read under its prefix, and the report names what is missing.
  std::vector<std::string> anchors = {family.wordTable.str()};
  if (!family.positionTable.empty())
    anchors.push_back(family.positionTable.str());
  for (llvm::StringRef part : {family.layer.qkv, family.layer.query})
    if (!part.empty())
      anchors.push_back(layerModule(0) + part.str());
  for (std::string anchor : anchors) {
    anchor += ".weight";
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
  headPrefix = namePrefix;
  for (llvm::StringRef own : family.prefixes) {
    llvm::StringRef outer = namePrefix;
    if (outer.consume_back(own) && (outer.empty() || outer.ends_with("."))) {
      headPrefix = outer.str();
      break;
    }
  }
  return llvm::Error::success();
}

llvm::Error Encoder::findHead() {
  pooler = !family.pooler.empty() && hasModule(namePrefix + family.pooler);
  headKind = config.head;
  if (headKind != ModelHead::None)
    return llvm::Error::success();
  // Sequence classifiers with a dense layer of their own are told by it; others share their names with token classifiers.
  // A masked-LM head may have the same dense layer, but no classifier.
  std::string classifier = headPrefix + (family.tokenOut + ".weight").str();
  bool ownDense = !family.sequenceDense.empty() && stored(headPrefix + family.sequenceDense + ".weight") &&
                  stored(headPrefix + family.sequenceOut + ".weight");
  if (!ownDense && !stored(classifier))
    return llvm::Error::success();
  if (!config.architectures.empty()) {
    noteTexts.push_back("the checkpoint has a classifier, but architectures is " + config.architectures.front() +
                        ": the classifier is left out");
    return llvm::Error::success();
  }
  if (family.tokenDense)
    return makeError(config.path + ": architectures is missing, and the checkpoint has " + quoted(classifier) +
                     ": whether sequences or tokens are classified is not clear; name " + config.family->className +
                     "ForSequenceClassification or " + config.family->className + "ForTokenClassification there");
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
  const LayerNames &names = family.layer;
  encoder.fusedQkv =
      !names.qkv.empty() &&
      (names.query.empty() || !encoder.stored(encoder.namePrefix + encoder.layerModule(0) + names.query + ".weight"));
  return encoder;
}

WeightName Encoder::norm(llvm::StringRef symbol, const std::string &module, bool weight) const {
  std::string name = module + (weight ? ".weight" : ".bias"), old = module + (weight ? ".gamma" : ".beta");
  return {(symbol + (weight ? ".w" : ".b")).str(), !stored(name) && stored(old) ? old : name, dir};
}

NormSpec Encoder::normSpec(llvm::StringRef symbol, const std::string &module, int64_t width,
                           llvm::StringRef widthKey) const {
  NormSpec spec;
  spec.weight = norm(symbol, module, true);
  if (config.normBias && !usesRms())
    spec.bias = norm(symbol, module, false);
  spec.width = width;
  spec.widthKey = widthKey.str();
  spec.eps = static_cast<float>(config.normEps);
  spec.rms = usesRms();
  return spec;
}

LinearSpec Encoder::linearSpec(llvm::StringRef symbol, const std::string &module, int64_t k, int64_t n,
                               llvm::StringRef kKey, llvm::StringRef nKey, bool bias) const {
  LinearSpec spec{{(symbol + ".w").str(), module + ".weight", dir}, {}, k, n, kKey.str(), nKey.str()};
  if (bias)
    spec.bias = {(symbol + ".b").str(), module + ".bias", dir};
  return spec;
}

LinearSpec Encoder::squareSpec(llvm::StringRef symbol, const std::string &module, bool bias) const {
  return linearSpec(symbol, module, config.hiddenSize, config.hiddenSize, config.hiddenSizeKey, config.hiddenSizeKey,
                    bias);
}

std::vector<LinearSpec> Encoder::qkvSpecs(const std::string &group, const std::string &module) const {
  const LayerNames &names = family.layer;
  auto spec = [&](const char *symbol, llvm::StringRef part, int64_t n, const std::string &nKey) {
    return linearSpec(group + symbol, module + part.str(), config.hiddenSize, n, config.hiddenSizeKey, nKey,
                      config.attentionBias);
  };
  // Where the config has no width of heads, all queries are as wide as hidden states.
  auto key = [&](const std::string &heads) {
    return config.family->headDim ? heads + " * head_dim" : config.hiddenSizeKey;
  };
  if (fusedQkv)
    return {spec("qkv", names.qkv, config.queryWidth() + 2 * config.keyWidth(), "3 * " + key(config.headsKey))};
  return {spec("q", names.query, config.queryWidth(), key(config.headsKey)),
          spec("k", names.key, config.keyWidth(), key(config.kvHeadsKey)),
          spec("v", names.value, config.keyWidth(), key(config.kvHeadsKey))};
}

std::vector<LinearSpec> Encoder::upSpecs(const std::string &group, const std::string &module) const {
  const LayerNames &names = family.layer;
  auto spec = [&](const char *symbol, llvm::StringRef part, int64_t times) {
    return linearSpec(group + symbol, module + part.str(), config.hiddenSize, times * config.intermediateSize,
                      config.hiddenSizeKey, (times == 1 ? "" : "2 * ") + config.intermediateSizeKey, config.upBias);
  };
  if (!config.gated)
    return {spec("up", names.up, 1)};
  if (!names.upGate.empty())
    return {spec("upgate", names.upGate, 2)};
  return {spec("gate", names.gate, 1), spec("up", names.plain, 1)};
}

EncoderLayerSpec Encoder::layerSpec(int64_t index) const {
  EncoderLayerSpec spec;
  spec.label = "l" + std::to_string(index);
  // Layers of a group name the same symbols, so that their weights are one.
  std::string group = (config.layerGroups ? "g" : "l") + std::to_string(config.groupOf(index)) + ".";
  std::string full = namePrefix + layerModule(index);
  auto normed = [&](const char *symbol, llvm::StringRef part) {
    return normSpec(group + symbol, full + part.str(), config.hiddenSize, config.hiddenSizeKey);
  };
  const LayerNames &names = family.layer;
  spec.preNorm = isPreNorm();
  spec.qkv = qkvSpecs(group, full);
  spec.proj = linearSpec(group + "proj", full + names.proj.str(), config.queryWidth(), config.hiddenSize,
                         config.family->headDim ? config.headsKey + " * head_dim" : config.hiddenSizeKey,
                         config.hiddenSizeKey, config.attentionBias);
  if (index > 0 || family.firstAttentionNorm)
    spec.attentionNorm = normed("attn_norm", names.attentionNorm);
  spec.up = upSpecs(group, full);
  if (config.gated)
    spec.gated = names.upGate.empty() ? Half::first : names.activated;
  spec.down = linearSpec(group + "down", full + names.down.str(), config.intermediateSize, config.hiddenSize,
                         config.intermediateSizeKey, config.hiddenSizeKey, config.downBias);
  spec.outputNorm = normed("norm", names.outputNorm);
  spec.heads = config.heads;
  spec.kvHeads = config.kvHeads;
  spec.headWidth = config.headWidth;
  spec.ropeTheta = config.attention[index].ropeTheta;
  spec.ropeDivisor = config.attention[index].ropeDivisor;
  spec.window = config.attention[index].window;
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
  if (inputs().types) {
    mlir::Value types = builder.embedTypes("embed.types", table("embed.types.w", family.typeTable),
                                           {"type_vocab_size", widthKey}, config.typeVocabSize, width);
    sum = builder.add(family.positionTable.empty() ? "embed" : "embed.add", sum, types);
  }
  if (!family.positionTable.empty()) {
    mlir::Value positions =
        builder.embedPositions("embed.positions", table("embed.positions.w", family.positionTable),
                               {"max_position_embeddings", widthKey}, config.maxPositions, width, config.firstPosition);
    sum = builder.add("embed", sum, positions);
  }
  mlir::Value hidden = sum;
  if (!family.embeddingNorm.empty())
    hidden = builder.norm("embed.norm", sum,
                          normSpec("embed.norm", namePrefix + family.embeddingNorm.str(), width, widthKey));
  if (family.projection == EmbeddingProjection::Always ||
      (family.projection == EmbeddingProjection::WhereWidthsDiffer && width != config.hiddenSize))
    hidden = builder.linear("embed.project", hidden,
                            linearSpec("embed.project", namePrefix + family.projectionModule.str(), width,
                                       config.hiddenSize, widthKey, config.hiddenSizeKey));
  for (int64_t i = 0; i < config.layers; ++i)
    hidden = builder.encoderLayer(hidden, layerSpec(i));
  if (!family.finalNorm.empty())
    hidden = builder.norm(
        "norm", hidden, normSpec("norm", namePrefix + family.finalNorm.str(), config.hiddenSize, config.hiddenSizeKey));
  return hidden;
}

mlir::Value Encoder::pooled(GraphBuilder &builder, mlir::Value hidden) const {
  mlir::Value first = builder.pool("pooler.cls", hidden, Pooling::cls);
  LinearSpec dense = squareSpec("pooler", namePrefix + family.pooler.str());
  return builder.activation("pooler.act", builder.linear("pooler", first, dense), Activation::tanh);
}

mlir::Value Encoder::headDense(GraphBuilder &builder, mlir::Value x) const {
  const ClassifierConfig &classifier = config.classifier;
  bool bias = !config.family->classifierKeys || classifier.denseBias;
  Activation act =
      classifier.activation.empty() ? family.sequenceActivation : *symbolizeActivation(classifier.activation);
  x = builder.linear("classifier.dense", x,
                     squareSpec("classifier.dense", headPrefix + family.sequenceDense.str(), bias));
  x = builder.activation("classifier.act", x, act);
  if (family.sequenceNorm.empty())
    return x;
  return builder.norm(
      "classifier.norm", x,
      normSpec("classifier.norm", headPrefix + family.sequenceNorm.str(), config.hiddenSize, config.hiddenSizeKey));
}

mlir::Value Encoder::logits(GraphBuilder &builder, mlir::Value hidden) const {
  bool sequences = headKind == ModelHead::SequenceClassification, late = config.classifier.pooling == "late";
  LinearSpec out = linearSpec("classifier", outModule(), config.hiddenSize, labels, config.hiddenSizeKey, labelKey);
  if (sequences && family.sequenceDense.empty())
    return builder.linear("classifier", pooled(builder, hidden), out);
  mlir::Value x = hidden;
  if (sequences && !late) {
    const std::string &pooling = config.classifier.pooling;
    Pooling kind = pooling.empty() ? Pooling::cls : *symbolizePooling(pooling);
    x = builder.pool("classifier." + stringifyPooling(kind).str(), hidden, kind);
  }
  if (sequences || family.tokenDense)
    x = headDense(builder, x);
  x = builder.linear(sequences && late ? "classifier.tokens" : "classifier", x, out);
  return sequences && late ? builder.pool("classifier", x, Pooling::mean) : x;
}

} // namespace batten
