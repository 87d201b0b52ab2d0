// Reading config.json; see the header. Defaults are those of the family's configuration class in transformers. The sizes that
// every family has take none, since a wrong guess of a size only shows as a tensor of the wrong shape, if at all.
#include "compiler/spec/ModelConfig.h"
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
    config.family = findConfigFamily(config.modelType);
    if (config.family)
      return llvm::Error::success();
    return makeError(object.where("model_type") + " " + quoted(config.modelType) +
                     " is refused: " + refusalReason(config.modelType) + "; known: " + knownConfigFamilies());
  }
  if (!config.architectures.empty())
    config.family = configFamilyOfArchitecture(config.architectures.front());
  if (!config.family)
    return makeError(object.where("model_type") + " is missing; known: " + knownConfigFamilies());
  config.modelType = config.family->modelType.str();
  config.defaults.push_back("model_type");
  return llvm::Error::success();
}

/// Keys that switch on something that would silently compute another function.
llvm::Error checkUnsupported(const JsonObject &object) {
  for (llvm::StringLiteral key : {llvm::StringLiteral("is_decoder"), llvm::StringLiteral("add_cross_attention")}) {
    llvm::Expected<std::optional<bool>> value = object.boolean(key);
    if (!value)
      return value.takeError();
    if (value->value_or(false))
      return makeError(object.where(key) + " is true: " +
                       (key == "is_decoder" ? "causal attention" : "attention to another model's states") +
                       " is not computed, false wanted");
  }
  llvm::Expected<std::optional<std::string>> positions = object.string("position_embedding_type");
  if (!positions)
    return positions.takeError();
  if (positions->value_or("absolute") != "absolute")
    return makeError(object.where("position_embedding_type") + " " + quoted(**positions) +
                     " is not computed, \"absolute\" wanted");
  for (llvm::StringLiteral key :
       {llvm::StringLiteral("quantization_config"), llvm::StringLiteral("compression_config")})
    if (object.has(key))
      return makeError(object.where(key) +
                       " is set: quantised checkpoints are not read, weights of F32, F16 or BF16 wanted");
  // What the adapters library writes; it writes the object also where no adapter was added.
  llvm::Expected<std::optional<JsonObject>> library = object.child("adapters");
  if (!library)
    return library.takeError();
  if (*library) {
    llvm::Expected<std::optional<JsonObject>> added = (*library)->child("adapters");
    if (!added)
      return added.takeError();
    if (*added && !(*added)->raw().empty())
      return makeError((*library)->where("adapters") + " is not empty: adapters are not computed, merge them first");
  }
  if (object.has("pruned_heads")) {
    llvm::Expected<std::optional<JsonObject>> pruned = object.child("pruned_heads");
    if (!pruned)
      return pruned.takeError();
    if (!(*pruned)->raw().empty())
      return makeError(object.where("pruned_heads") + " is not empty: layers with fewer heads are not computed");
  }
  return llvm::Error::success();
}

/// The spelling of a key that the config has: the family's own, unless only the other one is there. Both with different
/// numbers are refused.
llvm::Expected<std::string> spellingOf(const JsonObject &object, const ConfigKey &key) {
  if (key.other.empty() || !object.has(key.other))
    return key.name.str();
  if (!object.has(key.name))
    return key.other.str();
  const llvm::json::Value &a = *object.raw().get(key.name), &b = *object.raw().get(key.other);
  if (a != b)
    return makeError(object.where(key.name) + " is " + describeJson(a) + " and " + key.other + " is " +
                     describeJson(b) + ": two names of one size, which is meant is not clear");
  return key.name.str();
}

llvm::Error readSizes(const JsonObject &object, ModelConfig &config) {
  const ConfigKeys &keys = *config.family->keys;
  std::string layersKey, headsKey;
  struct Size {
    ConfigKey key;
    int64_t ModelConfig::*member;
    int64_t least, most;
    std::string *spelling;
  };
  const Size sizes[] = {
      {keys.hiddenSize, &ModelConfig::hiddenSize, 1, kMostDimension, &config.hiddenSizeKey},
      {keys.layers, &ModelConfig::layers, 0, kMostLayers, &layersKey},
      {keys.heads, &ModelConfig::heads, 1, kMostDimension, &headsKey},
      {keys.intermediateSize, &ModelConfig::intermediateSize, 1, kMostDimension, &config.intermediateSizeKey},
      {{"vocab_size"}, &ModelConfig::vocabSize, 1, kMostDimension, nullptr},
      {{"max_position_embeddings"}, &ModelConfig::maxPositions, 1, kMostDimension, nullptr},
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
  if (config.hiddenSize % config.heads)
    return makeError(object.file() + ": " + config.hiddenSizeKey + " " + llvm::Twine(config.hiddenSize) +
                     " is no multiple of " + headsKey + " " + llvm::Twine(config.heads));
  return llvm::Error::success();
}

/// A size with a default. Errors: as integer.
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

/// Token types, the embeddings' own width, shared layers.
llvm::Error readFamilySizes(const JsonObject &object, ModelConfig &config) {
  const ConfigFamily &family = *config.family;
  if (family.tokenTypes)
    if (llvm::Error error = readDefaulted(object, config, "type_vocab_size", 2, 1, config.typeVocabSize))
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

llvm::Error readFunctions(const JsonObject &object, ModelConfig &config) {
  const ConfigFamily &family = *config.family;
  config.activationKey = family.keys->activation.name.str();
  llvm::Expected<std::optional<std::string>> act = object.string(config.activationKey);
  if (!act)
    return act.takeError();
  if (!*act)
    config.defaults.push_back(config.activationKey);
  config.activationName = act->value_or(family.activation.str());
  std::optional<std::string> known = activationFor(config.activationName);
  if (!known)
    return makeError(object.where(config.activationKey) + " " + quoted(config.activationName) +
                     " is not an activation that is compiled; known: " + knownActivations());
  config.activation = *known;

  config.layerNormEps = family.eps;
  if (family.epsIsFixed) {
    if (object.has("layer_norm_eps"))
      config.notes.push_back("layer_norm_eps is not read: " + config.modelType + " has an eps of its own");
    return llvm::Error::success();
  }
  llvm::StringRef key = object.has("layer_norm_eps") || !object.has("norm_eps") ? "layer_norm_eps" : "norm_eps";
  llvm::Expected<std::optional<double>> eps = object.number(key);
  if (!eps)
    return eps.takeError();
  if (!*eps)
    config.defaults.push_back("layer_norm_eps");
  config.layerNormEps = eps->value_or(family.eps);
  if (!(static_cast<float>(config.layerNormEps) > 0 && config.layerNormEps <= 1))
    return makeError(object.where(key) + ": " + describeJson(*object.raw().get(key)) +
                     " found, a number above 0 in f32 and at most 1 wanted");
  return llvm::Error::success();
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
  for (auto read : {checkType, readSizes, readFamilySizes, readPositions, readFunctions, readLabels})
    if (llvm::Error error = read(*object, config))
      return std::move(error);
  if (llvm::Error error = checkUnsupported(*object))
    return std::move(error);
  for (const std::string &name : config.architectures) {
    ModelHead head = llvm::StringRef(name).ends_with("ForSequenceClassification") ? ModelHead::SequenceClassification
                     : llvm::StringRef(name).ends_with("ForTokenClassification")  ? ModelHead::TokenClassification
                                                                                  : ModelHead::None;
    if (head == ModelHead::None)
      continue;
    if (config.head != ModelHead::None && config.head != head)
      return makeError(object->where("architectures") + " has both " + config.headSource + " and " + name +
                       ": which head to build is not clear");
    config.head = head;
    config.headSource = name;
  }
  return config;
}

llvm::Expected<ModelConfig> readModelConfig(llvm::StringRef path) {
  llvm::Expected<std::string> text = readTextFile(path, kMostConfigBytes);
  if (!text)
    return text.takeError();
  return parseModelConfig(*text, path);
}

} // namespace batten
