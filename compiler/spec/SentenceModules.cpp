// Reading a sentence-transformers directory; see the header.
#include "compiler/spec/SentenceModules.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/Json.h"
#include "compiler/spec/ModelConfig.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>

namespace batten {

namespace {

constexpr llvm::StringLiteral kEmbedding = "sentence_embedding";

struct PoolFlag {
  llvm::StringLiteral flag;
  llvm::StringLiteral mode; ///< as the newer key spells it
};

/// In the order in which the library joins them.
constexpr PoolFlag kPoolFlags[] = {
    {"pooling_mode_cls_token", "cls"},
    {"pooling_mode_max_tokens", "max"},
    {"pooling_mode_mean_tokens", "mean"},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
    {"pooling_mode_weightedmean_tokens", "weightedmean"},
    {"pooling_mode_lasttoken", "lasttoken"},
};

llvm::Error addMode(SentenceModule &module, llvm::StringRef mode, const std::string &where) {
  std::string kind = llvm::StringSwitch<std::string>(mode)
                         .Case("cls", "cls")
                         .Case("max", "max")
                         .Case("mean", "mean")
                         .Case("mean_sqrt_len_tokens", "mean_sqrt_len")
                         .Case("lasttoken", "last")
                         .Default("");
  if (kind.empty())
    return makeError(where + ": pooling " + quoted(mode) +
                     " is not computed; known: cls, max, mean, mean_sqrt_len_tokens, lasttoken");
  module.modes.push_back(kind);
  return llvm::Error::success();
}

llvm::Error readPoolingModes(const JsonObject &config, SentenceModule &module) {
  if (config.has("pooling_mode")) { // the newer key wins over flags, as in the library
    std::vector<std::string> modes;
    if (config.raw().getArray("pooling_mode")) {
      llvm::Expected<std::optional<std::vector<std::string>>> list = config.strings("pooling_mode");
      if (!list)
        return list.takeError();
      modes = **list;
    } else {
      llvm::Expected<std::optional<std::string>> one = config.string("pooling_mode");
      if (!one)
        return one.takeError();
      modes.push_back(**one);
    }
    if (modes.empty() || modes.size() > 6)
      return makeError(config.where("pooling_mode") + ": " + llvm::Twine(modes.size()) + " modes, 1 to 6 wanted");
    for (const std::string &mode : modes)
      if (llvm::Error error = addMode(module, mode, config.where("pooling_mode")))
        return error;
    return llvm::Error::success();
  }
  for (const PoolFlag &flag : kPoolFlags) {
    llvm::Expected<std::optional<bool>> value = config.boolean(flag.flag);
    if (!value)
      return value.takeError();
    if (value->value_or(false))
      if (llvm::Error error = addMode(module, flag.mode, config.where(flag.flag)))
        return error;
  }
  if (module.modes.empty()) { // the library's default, for absent flags and for flags that are all off
    module.modes.push_back("mean");
    module.modesAreDefault = true;
  }
  return llvm::Error::success();
}

llvm::Error readPooling(const JsonObject &config, SentenceModule &module) {
  for (llvm::StringLiteral key :
       {llvm::StringLiteral("word_embedding_dimension"), llvm::StringLiteral("embedding_dimension")}) {
    llvm::Expected<std::optional<int64_t>> width = config.integer(key, 1, kMostDimension);
    if (!width)
      return width.takeError();
    if (*width)
      module.width = *width;
  }
  llvm::Expected<std::optional<bool>> prompt = config.boolean("include_prompt");
  if (!prompt)
    return prompt.takeError();
  if (!prompt->value_or(true))
    return makeError(config.where("include_prompt") +
                     " is false: a batch does not say where a prompt ends, so its tokens can't be left out of pooling");
  return readPoolingModes(config, module);
}

llvm::Error readDenseActivation(const JsonObject &config, SentenceModule &module) {
  if (!config.raw().get("activation_function")) { // the library's default
    module.activation = "tanh";
    return llvm::Error::success();
  }
  llvm::Expected<std::optional<std::string>> name = config.string("activation_function");
  if (!name)
    return name.takeError();
  if (!*name) {
    module.activation = "none";
    return llvm::Error::success();
  }
  llvm::StringRef full = **name, last = full.rsplit('.').second;
  module.activation = full.starts_with("torch.nn.") ? llvm::StringSwitch<std::string>(last)
                                                          .Case("Tanh", "tanh")
                                                          .Case("Identity", "none")
                                                          .Case("ReLU", "relu")
                                                          .Case("GELU", "gelu_erf")
                                                          .Case("SiLU", "silu")
                                                          .Default("")
                                                    : "";
  if (module.activation.empty())
    return makeError(config.where("activation_function") + " " + quoted(full) +
                     " is not computed; known in torch.nn.modules: activation.Tanh, activation.ReLU, activation.GELU, "
                     "activation.SiLU, linear.Identity");
  return llvm::Error::success();
}

llvm::Error readDense(const JsonObject &config, SentenceModule &module) {
  llvm::Expected<int64_t> in = config.requiredInteger("in_features", 1, kMostDimension);
  if (!in)
    return in.takeError();
  llvm::Expected<int64_t> out = config.requiredInteger("out_features", 1, kMostDimension);
  if (!out)
    return out.takeError();
  llvm::Expected<std::optional<bool>> bias = config.boolean("bias");
  if (!bias)
    return bias.takeError();
  llvm::Expected<std::optional<bool>> residual = config.boolean("use_residual");
  if (!residual)
    return residual.takeError();
  module.inFeatures = *in;
  module.outFeatures = *out;
  module.bias = bias->value_or(true);
  module.residual = residual->value_or(false);
  return readDenseActivation(config, module);
}

/// Modules pass values by name; only the pooled embedding is passed on here.
llvm::Error checkNames(const JsonObject &config) {
  for (llvm::StringLiteral key :
       {llvm::StringLiteral("module_input_name"), llvm::StringLiteral("module_output_name")}) {
    llvm::Expected<std::optional<std::string>> name = config.string(key);
    if (!name)
      return name.takeError();
    if (*name && **name != kEmbedding)
      return makeError(config.where(key) + " " + quoted(**name) + " is not computed, " + quoted(kEmbedding) +
                       " wanted");
  }
  return llvm::Error::success();
}

/// Parses a module's config; calls read with the object. A missing file is an empty object where `optional`.
llvm::Error withConfig(const std::string &path, bool optional,
                       llvm::function_ref<llvm::Error(const JsonObject &)> read) {
  std::string text = "{}";
  if (!optional || pathExists(path)) {
    llvm::Expected<std::string> found = readTextFile(path, kMostConfigBytes);
    if (!found)
      return found.takeError();
    text = std::move(*found);
  }
  llvm::Expected<llvm::json::Value> document = parseJson(text, path);
  if (!document)
    return document.takeError();
  llvm::Expected<JsonObject> object = JsonObject::root(*document, path);
  return object ? read(*object) : object.takeError();
}

/// sentence_bert_config.json beside the encoder: notes, and tasks that are another model.
llvm::Error readEncoderConfig(const std::string &path, SentenceModules &out, bool encoderOnly) {
  return withConfig(path, /*optional=*/true, [&](const JsonObject &config) -> llvm::Error {
    llvm::Expected<std::optional<int64_t>> cut = config.integer("max_seq_length", 1, INT32_MAX);
    if (!cut)
      return cut.takeError();
    if (*cut)
      out.notes.push_back("sentence-transformers cuts texts at " + std::to_string(**cut) +
                          " tokens here (max_seq_length); nothing is cut by a bundle");
    llvm::Expected<std::optional<bool>> lower = config.boolean("do_lower_case");
    if (!lower)
      return lower.takeError();
    if (lower->value_or(false))
      out.notes.push_back("sentence-transformers lowers the case of texts before tokenizing here (do_lower_case)");
    llvm::Expected<std::optional<std::string>> task = config.string("transformer_task");
    if (!task)
      return task.takeError();
    if (*task && **task != "feature-extraction" && !encoderOnly)
      return makeError(config.where("transformer_task") + " " + quoted(**task) +
                       " is not computed before pooling, \"feature-extraction\" wanted");
    if (config.has("query_expansion"))
      return makeError(config.where("query_expansion") + " is set: multi-vector models are not computed");
    return llvm::Error::success();
  });
}

struct ListedModule {
  std::string type, name, dir;
};

llvm::Expected<std::vector<ListedModule>> readList(const std::string &path) {
  llvm::Expected<std::string> text = readTextFile(path, kMostConfigBytes);
  if (!text)
    return text.takeError();
  llvm::Expected<llvm::json::Value> document = parseJson(*text, path);
  if (!document)
    return document.takeError();
  const llvm::json::Array *array = document->getAsArray();
  if (!array)
    return makeError(path + ": " + describeJson(*document) + " found, an array of modules wanted");
  std::vector<ListedModule> list;
  for (size_t i = 0; i < array->size(); ++i) {
    std::string where = path + ": [" + std::to_string(i) + "]";
    const llvm::json::Object *object = (*array)[i].getAsObject();
    if (!object)
      return makeError(where + ": " + describeJson((*array)[i]) + " found, an object wanted");
    std::optional<llvm::StringRef> type = object->getString("type"), dir = object->getString("path");
    if (!type)
      return makeError(where + ".type is missing or not a string");
    if (!dir)
      return makeError(where + ".path is missing or not a string");
    if (!dir->empty() && !isPlainName(*dir))
      return makeError(where + ".path " + quoted(*dir) + " is no plain name of a sub-directory");
    llvm::StringRef name = type->rsplit('.').second;
    if (!type->starts_with("sentence_transformers.") || name.empty())
      return makeError(
          where + ".type " + quoted(*type) +
          " is refused: code of its own; known in sentence_transformers: Transformer, Pooling, Dense, Normalize");
    list.push_back({type->str(), name.str(), dir->str()});
  }
  return list;
}

} // namespace

static llvm::Error readModule(llvm::StringRef modelDir, const ListedModule &listed, SentenceModules &out) {
  SentenceModule module;
  module.dir = listed.dir;
  std::string config = joinPath(joinPath(modelDir, listed.dir), "config.json");
  bool pooled = !out.modules.empty();
  if (listed.name == "Dropout")
    return llvm::Error::success(); // the identity outside training
  if (listed.name == "Pooling") {
    if (pooled)
      return makeError(out.path + ": a second Pooling, after " + quoted(out.modules.back().dir));
    if (llvm::Error error =
            withConfig(config, false, [&](const JsonObject &object) { return readPooling(object, module); }))
      return error;
    if (module.modesAreDefault)
      out.notes.push_back(joinPath(listed.dir, "config.json") + " names no pooling mode: mean, the library's default");
  } else if (listed.name == "Dense" || listed.name == "Normalize") {
    if (!pooled)
      return makeError(out.path + ": " + listed.name + " before Pooling: token embeddings are not computed on");
    bool dense = listed.name == "Dense";
    module.kind = dense ? SentenceModule::Kind::Dense : SentenceModule::Kind::Normalize;
    if (dense && listed.dir.empty())
      return makeError(out.path + ": Dense without a path: its weights can't be found");
    if (!listed.dir.empty() || dense)
      if (llvm::Error error = withConfig(config, /*optional=*/!dense, [&](const JsonObject &object) -> llvm::Error {
            if (llvm::Error named = checkNames(object))
              return named;
            return dense ? readDense(object, module) : llvm::Error::success();
          }))
        return error;
  } else {
    return makeError(out.path + ": module " + quoted(listed.type) +
                     " is not computed; known: Transformer, Pooling, Dense, Normalize");
  }
  out.modules.push_back(std::move(module));
  return llvm::Error::success();
}

llvm::Expected<std::optional<SentenceModules>> readSentenceModules(llvm::StringRef modelDir) {
  std::string path = joinPath(modelDir, "modules.json");
  if (!pathExists(path))
    return std::nullopt;
  llvm::Expected<std::vector<ListedModule>> list = readList(path);
  if (!list)
    return list.takeError();
  SentenceModules out;
  out.path = path;
  if (list->empty() || (list->front().name != "Transformer" && list->front().name != "BERT"))
    return makeError(path + ": " +
                     (list->empty() ? "no modules" : "module " + quoted(list->front().type) + " comes first") +
                     ", a Transformer wanted");
  out.encoderDir = list->front().dir;
  bool encoderOnly = list->size() == 1;
  std::string encoder = joinPath(modelDir, out.encoderDir);
  if (llvm::Error error = readEncoderConfig(joinPath(encoder, "sentence_bert_config.json"), out, encoderOnly))
    return std::move(error);
  for (const ListedModule &listed : llvm::drop_begin(*list))
    if (llvm::Error error = readModule(modelDir, listed, out))
      return std::move(error);
  if (out.modules.empty() && !encoderOnly)
    return makeError(path + ": no Pooling: there is no embedding of a sequence");
  return out;
}

} // namespace batten
