// Reading config.json of the bert family; see the header. The family's defaults are those of transformers' BertConfig;
// sizes have none here, since a wrong guess of a size only shows as a tensor of the wrong shape, if at all.
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

struct Refusal {
  llvm::StringLiteral modelType;
  llvm::StringLiteral reason;
};

constexpr llvm::StringLiteral kRelative = "it adds a bias by relative position, which is not computed";
constexpr llvm::StringLiteral kLater = "its family is not compiled yet";

constexpr Refusal kRefusals[] = {
    {"mpnet", kRelative},
    {"t5", kRelative},
    {"mt5", kRelative},
    {"deberta", kRelative},
    {"deberta-v2", kRelative},
    {"roberta", kLater},
    {"xlm-roberta", kLater},
    {"camembert", kLater},
    {"distilbert", kLater},
    {"electra", kLater},
    {"albert", kLater},
    {"modernbert", kLater},
    {"eurobert", kLater},
    {"nomic_bert", kLater},
    {"new", "it is the GTE family with code of its own, which is not compiled yet"},
    {"jina-embeddings-v3", kLater},
};

llvm::Error checkType(const JsonObject &object, ModelConfig &config) {
  llvm::Expected<std::optional<std::string>> type = object.string("model_type");
  if (!type)
    return type.takeError();
  if (!*type) {
    bool bert = !config.architectures.empty() && llvm::StringRef(config.architectures.front()).starts_with("Bert");
    if (!bert)
      return makeError(object.where("model_type") + " is missing; known: bert");
    config.modelType = "bert";
    config.defaults.push_back("model_type");
    return llvm::Error::success();
  }
  config.modelType = **type;
  if (config.modelType == "bert")
    return llvm::Error::success();
  llvm::StringRef reason = "it is not a family that is known";
  for (const Refusal &refusal : kRefusals)
    if (config.modelType == refusal.modelType)
      reason = refusal.reason;
  return makeError(object.where("model_type") + " " + quoted(config.modelType) + " is refused: " + reason +
                   "; known: bert");
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
  if (object.has("pruned_heads")) {
    llvm::Expected<std::optional<JsonObject>> pruned = object.child("pruned_heads");
    if (!pruned)
      return pruned.takeError();
    if (!(*pruned)->raw().empty())
      return makeError(object.where("pruned_heads") + " is not empty: layers with fewer heads are not computed");
  }
  return llvm::Error::success();
}

llvm::Error readSizes(const JsonObject &object, ModelConfig &config) {
  struct Size {
    llvm::StringLiteral key;
    int64_t ModelConfig::*member;
    int64_t least, most;
  };
  const Size sizes[] = {
      {"hidden_size", &ModelConfig::hiddenSize, 1, kMostDimension},
      {"num_hidden_layers", &ModelConfig::layers, 0, kMostLayers},
      {"num_attention_heads", &ModelConfig::heads, 1, kMostDimension},
      {"intermediate_size", &ModelConfig::intermediateSize, 1, kMostDimension},
      {"vocab_size", &ModelConfig::vocabSize, 1, kMostDimension},
      {"max_position_embeddings", &ModelConfig::maxPositions, 1, kMostDimension},
  };
  for (const Size &size : sizes) {
    llvm::Expected<int64_t> value = object.requiredInteger(size.key, size.least, size.most);
    if (!value)
      return value.takeError();
    config.*size.member = *value;
  }
  llvm::Expected<std::optional<int64_t>> types = object.integer("type_vocab_size", 1, kMostDimension);
  if (!types)
    return types.takeError();
  if (!*types)
    config.defaults.push_back("type_vocab_size");
  config.typeVocabSize = types->value_or(2);
  if (config.hiddenSize % config.heads)
    return makeError(object.file() + ": hidden_size " + llvm::Twine(config.hiddenSize) +
                     " is no multiple of num_attention_heads " + llvm::Twine(config.heads));
  return llvm::Error::success();
}

llvm::Error readFunctions(const JsonObject &object, ModelConfig &config) {
  llvm::Expected<std::optional<std::string>> act = object.string("hidden_act");
  if (!act)
    return act.takeError();
  if (!*act)
    config.defaults.push_back("hidden_act");
  config.activationName = act->value_or("gelu");
  std::optional<std::string> known = activationFor(config.activationName);
  if (!known)
    return makeError(object.where("hidden_act") + " " + quoted(config.activationName) +
                     " is not an activation that is compiled; known: " + knownActivations());
  config.activation = *known;

  llvm::StringRef key = object.has("layer_norm_eps") || !object.has("norm_eps") ? "layer_norm_eps" : "norm_eps";
  llvm::Expected<std::optional<double>> eps = object.number(key);
  if (!eps)
    return eps.takeError();
  if (!*eps)
    config.defaults.push_back("layer_norm_eps");
  config.layerNormEps = eps->value_or(1e-12);
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
  for (auto read : {checkType, readSizes, readFunctions, readLabels})
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
