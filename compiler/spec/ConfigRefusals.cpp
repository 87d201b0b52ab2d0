// Keys that switch on something that would silently compute another function; see ConfigReading.h. What only one family has is
// in its row of ConfigFamily.cpp.
#include "compiler/spec/ConfigReading.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"

namespace batten {

namespace {

constexpr RefusedSwitch kSwitches[] = {
    {"is_decoder", "causal attention is not computed"},
    {"add_cross_attention", "attention to another model's states is not computed"},
};

llvm::Error checkSwitches(const JsonObject &object, llvm::ArrayRef<RefusedSwitch> switches) {
  for (const RefusedSwitch &each : switches) {
    llvm::Expected<std::optional<bool>> value = object.boolean(each.key);
    if (!value)
      return value.takeError();
    if (value->value_or(false))
      return makeError(object.where(each.key) + " is true: " + each.reason + ", false wanted");
  }
  return llvm::Error::success();
}

llvm::Error checkPositions(const JsonObject &object, const ModelConfig &config) {
  llvm::Expected<std::optional<std::string>> positions = object.string("position_embedding_type");
  if (!positions)
    return positions.takeError();
  llvm::ArrayRef<llvm::StringLiteral> known = config.family->positionTypes;
  if (!*positions || llvm::is_contained(known, llvm::StringRef(**positions)))
    return llvm::Error::success();
  std::string wanted;
  for (llvm::StringRef name : known)
    wanted += (wanted.empty() ? "\"" : " or \"") + name.str() + "\"";
  return makeError(object.where("position_embedding_type") + " " + quoted(**positions) + " is not computed, " + wanted +
                   " wanted");
}

llvm::Error checkQuantized(const JsonObject &object) {
  for (llvm::StringRef key : {"quantization_config", "compression_config"})
    if (object.has(key))
      return makeError(object.where(key) +
                       " is set: quantised checkpoints are not read, weights of F32, F16 or BF16 wanted");
  return llvm::Error::success();
}

llvm::Error checkAdapters(const JsonObject &object) {
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
  // What rotary XLM-RoBERTa checkpoints have: an adapter in each linear layer for each task.
  llvm::Expected<std::optional<std::vector<std::string>>> tasks = object.strings("lora_adaptations");
  if (!tasks)
    return tasks.takeError();
  if (*tasks && !(*tasks)->empty())
    return makeError(object.where("lora_adaptations") + " has " + quoted((*tasks)->front()) +
                     ((*tasks)->size() > 1 ? ", .." : "") + ": adapters are not computed, merge one of them first");
  return llvm::Error::success();
}

llvm::Error checkPruned(const JsonObject &object) {
  llvm::Expected<std::optional<JsonObject>> pruned = object.child("pruned_heads");
  if (!pruned)
    return pruned.takeError();
  if (*pruned && !(*pruned)->raw().empty())
    return makeError(object.where("pruned_heads") + " is not empty: layers with fewer heads are not computed");
  return llvm::Error::success();
}

llvm::Error checkExperts(const JsonObject &object) {
  for (llvm::StringRef key : {"num_experts", "moe_every_n_layers"}) {
    llvm::Expected<std::optional<int64_t>> count = object.integer(key, 0, kMostDimension);
    if (!count)
      return count.takeError();
    if (count->value_or(0))
      return makeError(object.where(key) + " is " + llvm::Twine(**count) +
                       ": mixtures of experts are not computed, 0 wanted");
  }
  return llvm::Error::success();
}

llvm::Error checkLayerNormType(const JsonObject &object) {
  llvm::Expected<std::optional<std::string>> type = object.string("layer_norm_type");
  if (!type)
    return type.takeError();
  if (type->value_or("layer_norm") != "layer_norm")
    return makeError(object.where("layer_norm_type") + " " + quoted(**type) +
                     " is not computed for this family, \"layer_norm\" wanted");
  return llvm::Error::success();
}

} // namespace

llvm::Error checkUnsupported(const JsonObject &object, const ModelConfig &config) {
  if (llvm::Error error = checkSwitches(object, kSwitches))
    return error;
  if (llvm::Error error = checkSwitches(object, config.family->refused))
    return error;
  if (llvm::Error error = checkPositions(object, config))
    return error;
  for (auto check : {checkQuantized, checkAdapters, checkPruned, checkExperts, checkLayerNormType})
    if (llvm::Error error = check(object))
      return error;
  return llvm::Error::success();
}

} // namespace batten
