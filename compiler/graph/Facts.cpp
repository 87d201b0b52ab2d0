// See the header. Import.cpp writes them into the module.
#include "compiler/graph/Facts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstdio>

namespace batten {

/// Text for people out of a config: control characters become blanks.
static std::string plainText(llvm::StringRef text) {
  std::string out = text.str();
  for (char &c : out)
    c = static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  return out;
}

static std::string realText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

static std::string number(int64_t value) { return std::to_string(value); }

using Defaulted = llvm::function_ref<std::string(const std::string &key, const std::string &value)>;

/// What a config says of positions: how many, and where they begin.
static std::string positionsText(const ModelConfig &config, Defaulted defaulted) {
  if (config.longestSequence)
    return "rotary, from 0 in each sequence; at most " +
           defaulted("max_trained_positions", number(config.longestSequence)) + " tokens, since the base would change";
  if (config.family->rope != RopeLayout::None)
    return "rotary, from 0 in each sequence; no table bounds a sequence (" + config.family->keys->positions.name.str() +
           " " + number(config.maxPositions) + ")";
  if (config.family->positionPad < 0)
    return number(config.maxPositions) + ", absolute, from 0 in each sequence";
  // transformers doesn't count padding ids; a packed sequence has no padding, so all its tokens count.
  return number(config.maxSeqTokens()) + " of " + number(config.maxPositions) + " rows, absolute, from " +
         number(config.firstPosition) + " (pad_token_id " +
         defaulted("pad_token_id", number(config.firstPosition - 1)) +
         " + 1) in each sequence; every token counts, also one with the padding's id";
}

static void addRopeFacts(Facts &facts, const ModelConfig &config, Defaulted defaulted) {
  if (config.family->rope == RopeLayout::None || config.attention.empty())
    return;
  if (config.family->rope == RopeLayout::OneTheta) {
    const LayerAttention &each = config.attention.front();
    facts.emplace_back("rotary base", defaulted("rope_theta", realText(each.ropeTheta)));
    if (each.ropeDivisor != 1)
      facts.emplace_back("rotary angles", "scaled as rope_scaling says: divided by " + realText(each.ropeDivisor) +
                                              ", and the base includes its factor");
    return;
  }
  for (bool window : {false, true}) {
    const LayerAttention *each = nullptr;
    std::string layers;
    for (int64_t i = 0; i < config.layers; ++i)
      if ((config.attention[i].window >= 0) == window) {
        each = &config.attention[i];
        layers += (layers.empty() ? "" : ", ") + number(i);
      }
    if (!each)
      continue;
    facts.emplace_back(window ? "layers with a window" : "layers without a window",
                       defaulted("global_attn_every_n_layers", layers));
    facts.emplace_back(window ? "rotary base with a window" : "rotary base without a window",
                       defaulted(window ? "local_rope_theta" : "global_rope_theta", realText(each->ropeTheta)));
    if (window)
      facts.emplace_back("window", defaulted("local_attention", number(each->window) + " keys on either side"));
  }
}

/// Biases that a config can switch.
static void addBiasFacts(Facts &facts, const ModelConfig &config, Defaulted defaulted) {
  const ConfigFamily &family = *config.family;
  auto add = [&](const char *name, const ConfigSwitch &rule, bool value) {
    if (!rule.key.empty())
      facts.emplace_back(name, defaulted(rule.key.str(), value ? "yes" : "no"));
  };
  add("biases in attention", family.attentionBias, config.attentionBias);
  add("biases of inner layers", family.upBias, config.upBias);
  if (family.downBias.key != family.upBias.key)
    add("biases after inner layers", family.downBias, config.downBias);
  add("biases of norms", family.normBias, config.normBias);
}

static void addHeadsFacts(Facts &facts, const ModelConfig &config, Defaulted defaulted) {
  std::string width = number(config.headWidth);
  facts.emplace_back("heads", number(config.heads) + " of width " +
                                  (config.family->headDim ? defaulted("head_dim", width) : width));
  if (config.family->kvHeads)
    facts.emplace_back("heads of keys and values", defaulted(config.kvHeadsKey, number(config.kvHeads)));
}

static Facts encoderFacts(const ModelConfig &config, const Encoder &encoder) {
  auto defaulted = [&](const std::string &key, const std::string &value) {
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
  addHeadsFacts(facts, config, defaulted);
  facts.emplace_back("inner size", number(config.intermediateSize));
  facts.emplace_back("activation",
                     defaulted(config.activationKey, config.activationName + " (" + config.activation + ")") +
                         (config.gated ? ", times a second linear layer" : ""));
  facts.emplace_back(encoder.usesRms() ? "rms norm eps" : "layer norm eps",
                     defaulted(config.normEpsKey, realText(config.normEps)) +
                         (config.family->epsIsFixed ? " (fixed by the family)" : ""));
  if (encoder.isPreNorm())
    facts.emplace_back("norms", "before attention and inner layers");
  addBiasFacts(facts, config, defaulted);
  facts.emplace_back("positions", positionsText(config, defaulted));
  addRopeFacts(facts, config, defaulted);
  if (!config.family->tokenTypes)
    facts.emplace_back("token types", "none");
  else
    facts.emplace_back("token types", defaulted("type_vocab_size", number(config.typeVocabSize)) + "; absent means 0");
  facts.emplace_back("names", "prefix \"" + encoder.prefix() + "\"");
  if (config.decisionLayers)
    facts.emplace_back("decision head", number(*config.decisionLayers) + " layers, 3 types of sequences");
  facts.emplace_back("own pooler", encoder.hasPooler() ? "dense, tanh" : "none");
  if (encoder.head() == ModelHead::SequenceClassification && !config.classifier.pooling.empty())
    facts.emplace_back("classifier pooling", defaulted(config.classifier.poolingKey, config.classifier.pooling));
  if (encoder.head() != ModelHead::None && !config.classifier.activation.empty()) {
    facts.emplace_back("classifier activation",
                       defaulted("classifier_activation",
                                 config.classifier.activationName + " (" + config.classifier.activation + ")"));
    facts.emplace_back("classifier bias", defaulted("classifier_bias", config.classifier.denseBias ? "yes" : "no"));
  }
  return facts;
}

Facts factsOf(const ModelConfig &config, const Encoder &encoder, const std::optional<SentenceModules> &modules) {
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

} // namespace batten
