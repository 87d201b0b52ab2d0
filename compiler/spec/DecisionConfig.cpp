// Configs of model directories and of decision checkpoints: an encoder's config with head_layers, in one config.json or in
// encoder/config.json and rl_agent_config.json. See ModelConfig.h.
#include "compiler/spec/ConfigReading.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/Text.h"

namespace batten {

/// Errors: heads of another width than decision checkpoints have.
static llvm::Error checkHeads(const ModelConfig &config) {
  if (!config.decisionLayers || config.headWidth == kDecisionHeadWidth)
    return llvm::Error::success();
  return makeError(config.path + ": heads are " + llvm::Twine(config.headWidth) + " wide (" + config.hiddenSizeKey +
                   " " + llvm::Twine(config.hiddenSize) + ", " + config.headsKey + " " + llvm::Twine(config.heads) +
                   "): decision checkpoints have heads of " + llvm::Twine(kDecisionHeadWidth));
}

llvm::Error readDecision(const JsonObject &object, ModelConfig &config) {
  if (!config.family->decision)
    return llvm::Error::success();
  llvm::Expected<std::optional<int64_t>> layers = object.integer("head_layers", 0, kMostLayers);
  if (!layers)
    return layers.takeError();
  config.decisionLayers = *layers;
  return checkHeads(config);
}

/// Adds what rl_agent_config.json says. Errors: it can't be read; no head_layers, or other ones than the config has; an
/// encoder of a family without decision checkpoints; as checkHeads.
static llvm::Error readAgent(llvm::StringRef path, ModelConfig &config) {
  llvm::Expected<std::string> text = readTextFile(path, kMostConfigBytes);
  if (!text)
    return text.takeError();
  llvm::Expected<llvm::json::Value> document = parseJson(*text, path);
  if (!document)
    return document.takeError();
  llvm::Expected<JsonObject> object = JsonObject::root(*document, path);
  if (!object)
    return object.takeError();
  llvm::Expected<int64_t> layers = object->requiredInteger("head_layers", 0, kMostLayers);
  if (!layers)
    return layers.takeError();
  if (!config.family->decision)
    return makeError(config.path + ": model_type " + quoted(config.modelType) + " beside " + path +
                     ": decision checkpoints have an encoder of modernbert");
  if (config.decisionLayers && *config.decisionLayers != *layers)
    return makeError(object->where("head_layers") + " is " + llvm::Twine(*layers) + ", in " + config.path + " it is " +
                     llvm::Twine(*config.decisionLayers));
  config.decisionLayers = *layers;
  return checkHeads(config);
}

llvm::Expected<ModelConfig> readModelDirConfig(llvm::StringRef modelDir) {
  std::string root = joinPath(modelDir, "config.json"), agent = joinPath(modelDir, "rl_agent_config.json"),
              encoder = joinPath(modelDir, "encoder/config.json");
  bool hasAgent = pathExists(agent), isSplit = !pathExists(root);
  if (isSplit && !(hasAgent && pathExists(encoder)))
    return makeError(modelDir + ": no config: " + root + " is not there, and of " + encoder + " and " + agent + " " +
                     (hasAgent              ? "only the latter is"
                      : pathExists(encoder) ? "only the former is"
                                            : "neither is"));
  llvm::Expected<ModelConfig> config = readModelConfig(isSplit ? encoder : root);
  if (!config)
    return config;
  if (hasAgent)
    if (llvm::Error error = readAgent(agent, *config))
      return std::move(error);
  return config;
}

} // namespace batten
