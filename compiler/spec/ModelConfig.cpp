// Reading config.json; see the header. Defaults are those of the family's configuration class in transformers. The sizes that
// every family has take none, since a wrong guess of a size only shows as a tensor of the wrong shape, if at all.
#include "compiler/spec/ModelConfig.h"
#include "compiler/spec/ConfigReading.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/Json.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <array>

namespace batten {

namespace {

struct ActivationName {
  llvm::StringLiteral transformers;
  llvm::StringLiteral dialect;
};

constexpr ActivationName kActivations[] = {
    {"gelu", "gelu_erf"},
    {"gelu_python", "gelu_erf"},
    {"gelu_new", "gelu_tanh"},
    {"gelu_fast", "gelu_tanh"},
    {"gelu_accurate", "gelu_tanh"},
    {"gelu_pytorch_tanh", "gelu_tanh"},
    {"gelu_python_tanh", "gelu_tanh"},
    {"relu", "relu"},
    {"silu", "silu"},
    {"swish", "silu"},
    {"tanh", "tanh"},
    {"linear", "none"},
};

llvm::Error checkType(const JsonObject &object, ModelConfig &config) {
  llvm::Expected<std::optional<std::string>> type = object.string("model_type");
  if (!type)
    return type.takeError();
  if (*type) {
    config.modelType = **type;
    config.family = findConfigFamily(config.modelType, object.raw());
    if (config.family)
      return llvm::Error::success();
    return makeError(object.where("model_type") + " " + quoted(config.modelType) +
                     " is refused: " + refusalReason(config.modelType) + "; known: " + knownConfigFamilies());
  }
  if (!config.architectures.empty())
    config.family = configFamilyOfArchitecture(config.architectures.front(), object.raw());
  if (!config.family)
    return makeError(object.where("model_type") + " is missing; known: " + knownConfigFamilies());
  config.modelType = config.family->modelType.str();
  config.defaults.push_back("model_type");
  return llvm::Error::success();
}

llvm::Error readSizes(const JsonObject &object, ModelConfig &config) {
  const ConfigKeys &keys = *config.family->keys;
  std::string layersKey;
  struct Size {
    ConfigKey key;
    int64_t ModelConfig::*member;
    int64_t least, most;
    std::string *spelling;
  };
  const Size sizes[] = {
      {keys.hiddenSize, &ModelConfig::hiddenSize, 1, kMostDimension, &config.hiddenSizeKey},
      {keys.layers, &ModelConfig::layers, 0, kMostLayers, &layersKey},
      {keys.heads, &ModelConfig::heads, 1, kMostHeads, &config.headsKey},
      {keys.intermediateSize, &ModelConfig::intermediateSize, 1, kMostDimension, &config.intermediateSizeKey},
      {{"vocab_size"}, &ModelConfig::vocabSize, 1, kMostDimension, nullptr},
      {keys.positions, &ModelConfig::maxPositions, 1, kMostDimension, nullptr},
  };
  for (const Size &size : sizes) {
    llvm::Expected<std::string> key = spellingOf(object, size.key);
    if (!key)
      return key.takeError();
    llvm::Expected<int64_t> value = object.requiredInteger(*key, size.least, size.most);
    if (!value)
      return value.takeError();
    config.*size.member = *value;
    if (size.spelling)
      *size.spelling = *key;
  }
  return llvm::Error::success();
}

/// Width of heads, and how many of them have keys and values of their own.
llvm::Error readHeads(const JsonObject &object, ModelConfig &config) {
  bool stated = config.family->headDim && object.has("head_dim");
  if (stated) {
    llvm::Expected<int64_t> width = object.requiredInteger("head_dim", 1, kMostHeads);
    if (!width)
      return width.takeError();
    config.headWidth = *width;
  } else {
    if (config.hiddenSize % config.heads)
      return makeError(object.file() + ": " + config.hiddenSizeKey + " " + llvm::Twine(config.hiddenSize) +
                       " is no multiple of " + config.headsKey + " " + llvm::Twine(config.heads));
    config.headWidth = config.hiddenSize / config.heads;
    if (config.family->headDim)
      config.defaults.push_back("head_dim");
  }
  if (config.headWidth > kMostHeads)
    return makeError(object.file() + ": heads are " + llvm::Twine(config.headWidth) + " wide, at most " +
                     llvm::Twine(kMostHeads) + " wanted");
  if (config.queryWidth() > kMostDimension)
    return makeError(object.file() + ": " + config.headsKey + " " + llvm::Twine(config.heads) + " times head_dim " +
                     llvm::Twine(config.headWidth) + " is above " + llvm::Twine(kMostDimension));
  config.kvHeads = config.heads;
  config.kvHeadsKey = config.headsKey;
  if (!config.family->kvHeads)
    return llvm::Error::success();
  config.kvHeadsKey = "num_key_value_heads";
  if (llvm::Error error = readDefaulted(object, config, config.kvHeadsKey, config.heads, 1, config.kvHeads))
    return error;
  if (config.heads % config.kvHeads)
    return makeError(object.file() + ": " + config.headsKey + " " + llvm::Twine(config.heads) + " is no multiple of " +
                     config.kvHeadsKey + " " + llvm::Twine(config.kvHeads));
  return llvm::Error::success();
}

/// Token types, the embeddings' own width, shared layers.
llvm::Error readFamilySizes(const JsonObject &object, ModelConfig &config) {
  const ConfigFamily &family = *config.family;
  if (family.tokenTypes)
    if (llvm::Error error = readDefaulted(object, config, "type_vocab_size", family.tokenTypes,
                                          family.tokenTypesMayBeNone ? 0 : 1, config.typeVocabSize))
      return error;
  config.embeddingSize = config.hiddenSize;
  config.embeddingSizeKey = config.hiddenSizeKey;
  if (family.embeddingSize) {
    config.embeddingSizeKey = "embedding_size";
    if (llvm::Error error =
            readDefaulted(object, config, "embedding_size", family.embeddingSize, 1, config.embeddingSize))
      return error;
  }
  if (!family.layerGroups)
    return llvm::Error::success();
  int64_t inner = 1;
  if (llvm::Error error = readDefaulted(object, config, "num_hidden_groups", 1, 1, config.layerGroups))
    return error;
  if (llvm::Error error = readDefaulted(object, config, "inner_group_num", 1, 1, inner))
    return error;
  if (inner != 1)
    return makeError(object.where("inner_group_num") + " is " + llvm::Twine(inner) +
                     ": groups of several layers are not computed, 1 wanted");
  if (config.layers % config.layerGroups)
    return makeError(object.file() + ": num_hidden_layers " + llvm::Twine(config.layers) +
                     " is no multiple of num_hidden_groups " + llvm::Twine(config.layerGroups));
  if (config.layers == 0)
    config.layerGroups = 0;
  return llvm::Error::success();
}

/// Where positions begin. Padding matters in the RoBERTa family alone: elsewhere pad_token_id is not read.
llvm::Error readPositions(const JsonObject &object, ModelConfig &config) {
  if (config.family->positionPad < 0)
    return llvm::Error::success();
  const llvm::json::Value *raw = object.raw().get("pad_token_id");
  if (raw && raw->kind() == llvm::json::Value::Null)
    return makeError(object.where("pad_token_id") + " is null: positions of " + config.modelType +
                     " begin at pad_token_id + 1, an integer wanted");
  int64_t pad = 0;
  if (llvm::Error error = readDefaulted(object, config, "pad_token_id", config.family->positionPad, 0, pad))
    return error;
  config.firstPosition = pad + 1;
  if (config.maxSeqTokens() < 1)
    return makeError(
        object.file() + ": max_position_embeddings " + llvm::Twine(config.maxPositions) +
        " leaves no position for a token: they begin at pad_token_id + 1 = " + llvm::Twine(config.firstPosition));
  return llvm::Error::success();
}

/// What an activation's name says where it may be that of a gated pair.
struct GatedName {
  llvm::StringLiteral name, activation;
};
constexpr GatedName kGatedNames[] = {{"swiglu", "silu"}, {"geglu", "gelu"}};

llvm::Error readInnerActivation(const JsonObject &object, ModelConfig &config) {
  const ConfigFamily &family = *config.family;
  config.activationKey = family.keys->activation.name.str();
  config.gated = family.gating == Gating::Always;
  llvm::Expected<std::optional<std::string>> act = object.string(config.activationKey);
  if (!act)
    return act.takeError();
  if (!*act)
    config.defaults.push_back(config.activationKey);
  config.activationName = act->value_or(family.activation.str());
  llvm::StringRef function = config.activationName;
  if (family.gating == Gating::ByActivation)
    for (const GatedName &gated : kGatedNames)
      if (function == gated.name) {
        config.gated = true;
        function = gated.activation;
      }
  std::optional<std::string> known = activationFor(function);
  if (!known)
    return makeError(object.where(config.activationKey) + " " + quoted(config.activationName) +
                     " is not an activation that is compiled; known: " + knownActivations() +
                     (family.gating == Gating::ByActivation ? ", swiglu, geglu" : ""));
  config.activation = *known;
  if (config.gated && config.activation == "none")
    return makeError(object.where(config.activationKey) + " " + quoted(config.activationName) +
                     ": gated layers without an activation are not computed");
  if (family.gating != Gating::ByActivation || !object.has("hidden_act"))
    return llvm::Error::success();
  // Configs converted for transformers' class keep both; the class's layers are always gated.
  llvm::Expected<std::string> hidden = readActivation(object, "hidden_act", "");
  if (!hidden)
    return hidden.takeError();
  if (*hidden != config.activation || !config.gated)
    return makeError(object.where("hidden_act") + " is " + describeJson(*object.raw().get("hidden_act")) + " and " +
                     config.activationKey + " is " + quoted(config.activationName) + ": which is meant is not clear");
  return llvm::Error::success();
}

llvm::Error readNorms(const JsonObject &object, ModelConfig &config) {
  const ConfigFamily &family = *config.family;
  const ConfigKey &spelling = family.keys->eps;
  config.normEps = family.eps;
  config.normEpsKey = spelling.name.str();
  if (family.epsIsFixed) {
    if (object.has(config.normEpsKey))
      config.notes.push_back(config.normEpsKey + " is not read: " + config.modelType + " has an eps of its own");
    return llvm::Error::success();
  }
  llvm::Expected<std::string> key = spellingOf(object, spelling);
  if (!key)
    return key.takeError();
  llvm::Expected<std::optional<double>> eps = object.number(*key);
  if (!eps)
    return eps.takeError();
  if (!*eps)
    config.defaults.push_back(config.normEpsKey);
  config.normEps = eps->value_or(family.eps);
  if (!(static_cast<float>(config.normEps) > 0 && config.normEps <= 1))
    return makeError(object.where(*key) + ": " + describeJson(*object.raw().get(*key)) +
                     " found, a number above 0 in f32 and at most 1 wanted");
  // Published ModernBERT configs have both; its code reads its own.
  llvm::StringRef usual = "layer_norm_eps";
  if (usual != spelling.name && usual != spelling.other && object.has(usual) &&
      object.raw().get(usual)->getAsNumber() != config.normEps)
    config.notes.push_back("layer_norm_eps is not read: " + config.modelType + " has " + config.normEpsKey);
  return llvm::Error::success();
}

llvm::Error readFunctions(const JsonObject &object, ModelConfig &config) {
  if (llvm::Error error = readInnerActivation(object, config))
    return error;
  if (llvm::Error error = readNorms(object, config))
    return error;
  const ConfigFamily &family = *config.family;
  for (auto [rule, out] :
       {std::pair(&family.attentionBias, &config.attentionBias), std::pair(&family.upBias, &config.upBias),
        std::pair(&family.downBias, &config.downBias), std::pair(&family.normBias, &config.normBias)})
    if (llvm::Error error = readSwitch(object, config, *rule, *out))
      return error;
  return llvm::Error::success();
}

llvm::Error readHead(const JsonObject &object, ModelConfig &config) {
  for (const std::string &name : config.architectures) {
    ModelHead head = llvm::StringRef(name).ends_with("ForSequenceClassification") ? ModelHead::SequenceClassification
                     : llvm::StringRef(name).ends_with("ForTokenClassification")  ? ModelHead::TokenClassification
                                                                                  : ModelHead::None;
    if (head == ModelHead::None)
      continue;
    if (config.head != ModelHead::None && config.head != head)
      return makeError(object.where("architectures") + " has both " + config.headSource + " and " + name +
                       ": which head to build is not clear");
    config.head = head;
    config.headSource = name;
  }
  return llvm::Error::success();
}

/// How a classifier pools and what lies between. Values are judged only where there may be a classifier; a checkpoint of
/// another kind may hold any.
llvm::Error readClassifier(const JsonObject &object, ModelConfig &config) {
  const ConfigFamily &family = *config.family;
  if (config.head == ModelHead::None && !config.architectures.empty())
    return llvm::Error::success();
  if (!family.poolings.empty()) {
    llvm::Expected<std::string> key = spellingOf(object, family.poolingKey);
    if (!key)
      return key.takeError();
    config.classifier.poolingKey = *key;
    llvm::Expected<std::optional<std::string>> pooling = object.string(*key);
    if (!pooling)
      return pooling.takeError();
    if (!*pooling)
      config.defaults.push_back(*key);
    std::string stated = pooling->value_or(family.poolings.front().transformers.str()), known;
    for (const PoolingName &each : family.poolings) {
      if (stated == each.transformers)
        config.classifier.pooling = each.name.str();
      known += (known.empty() ? "" : ", ") + each.transformers.str();
    }
    if (config.classifier.pooling.empty())
      return makeError(object.where(*key) + " " + quoted(stated) + " is not a pooling of " + config.modelType +
                       " classifiers; known: " + known);
  }
  if (!family.classifierKeys)
    return llvm::Error::success();
  llvm::Expected<std::optional<std::string>> act = object.string("classifier_activation");
  if (!act)
    return act.takeError();
  if (!*act)
    config.defaults.push_back("classifier_activation");
  config.classifier.activationName = act->value_or("gelu");
  llvm::Expected<std::string> known = readActivation(object, "classifier_activation", "gelu");
  if (!known)
    return known.takeError();
  config.classifier.activation = *known;
  return readSwitch(object, config, {"classifier_bias", false}, config.classifier.denseBias);
}

llvm::Error readLabels(const JsonObject &object, ModelConfig &config) {
  llvm::Expected<std::optional<int64_t>> count = object.integer("num_labels", 1, kMostDimension);
  if (!count)
    return count.takeError();
  config.labelCount = *count;
  llvm::Expected<std::optional<JsonObject>> map = object.child("id2label");
  if (!map)
    return map.takeError();
  if (!*map)
    return llvm::Error::success();
  const llvm::json::Object &raw = (*map)->raw();
  if (!config.labelCount && !raw.empty())
    config.labelCount = static_cast<int64_t>(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    std::optional<llvm::StringRef> label = raw.getString(std::to_string(i));
    if (!label) {
      config.labels.clear();
      config.notes.push_back("id2label is not a list of strings by 0 to n-1: label names left out");
      break;
    }
    config.labels.push_back(label->str());
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::string> spellingOf(const JsonObject &object, const ConfigKey &key) {
  if (key.other.empty() || !object.has(key.other))
    return key.name.str();
  if (!object.has(key.name))
    return key.other.str();
  const llvm::json::Value &a = *object.raw().get(key.name), &b = *object.raw().get(key.other);
  if (a != b && !key.mayDiffer)
    return makeError(object.where(key.name) + " is " + describeJson(a) + " and " + key.other + " is " +
                     describeJson(b) + ": two names of one value, which is meant is not clear");
  return key.name.str();
}

llvm::Error readDefaulted(const JsonObject &object, ModelConfig &config, llvm::StringRef key, int64_t fallback,
                          int64_t least, int64_t &out) {
  llvm::Expected<std::optional<int64_t>> value = object.integer(key, least, kMostDimension);
  if (!value)
    return value.takeError();
  if (!*value)
    config.defaults.push_back(key.str());
  out = value->value_or(fallback);
  return llvm::Error::success();
}

llvm::Error readSwitch(const JsonObject &object, ModelConfig &config, const ConfigSwitch &rule, bool &out) {
  out = rule.value;
  if (rule.key.empty())
    return llvm::Error::success();
  llvm::Expected<std::optional<bool>> value = object.boolean(rule.key);
  if (!value)
    return value.takeError();
  if (!*value && !llvm::is_contained(config.defaults, rule.key))
    config.defaults.push_back(rule.key.str());
  out = value->value_or(rule.value);
  return llvm::Error::success();
}

llvm::Expected<std::string> readActivation(const JsonObject &object, llvm::StringRef key, llvm::StringRef fallback) {
  llvm::Expected<std::optional<std::string>> name = object.string(key);
  if (!name)
    return name.takeError();
  std::optional<std::string> known = activationFor(name->value_or(fallback.str()));
  if (!known)
    return makeError(object.where(key) + " " + quoted(**name) +
                     " is not an activation that is compiled; known: " + knownActivations());
  return *known;
}

std::optional<std::string> activationFor(llvm::StringRef transformersName) {
  for (const ActivationName &name : kActivations)
    if (name.transformers == transformersName)
      return name.dialect.str();
  return std::nullopt;
}

std::string knownActivations() {
  std::vector<llvm::StringRef> names;
  for (const ActivationName &name : kActivations)
    names.push_back(name.transformers);
  return joined(names);
}

llvm::Expected<ModelConfig> parseModelConfig(llvm::StringRef text, llvm::StringRef path) {
  llvm::Expected<llvm::json::Value> document = parseJson(text, path);
  if (!document)
    return document.takeError();
  llvm::Expected<JsonObject> object = JsonObject::root(*document, path);
  if (!object)
    return object.takeError();
  ModelConfig config;
  config.path = path.str();
  llvm::Expected<std::optional<std::vector<std::string>>> architectures = object->strings("architectures");
  if (!architectures)
    return architectures.takeError();
  if (*architectures)
    config.architectures = std::move(**architectures);
  for (auto read : {checkType, readSizes, readHeads, readFamilySizes, readPositions, readFunctions, readLayerAttention,
                    readHead, readClassifier, readDecision, readLabels})
    if (llvm::Error error = read(*object, config))
      return std::move(error);
  if (llvm::Error error = checkUnsupported(*object, config))
    return std::move(error);
  return config;
}

llvm::Expected<ModelConfig> readModelConfig(llvm::StringRef path) {
  llvm::Expected<std::string> text = readTextFile(path, kMostConfigBytes);
  if (!text)
    return text.takeError();
  return parseModelConfig(*text, path);
}

} // namespace batten
