// Rotary bases and windows of each layer; see ConfigReading.h. Computed are angles p * theta^(-2j / width) / divisor of the
// pairs (j, j + width / 2) of a whole head; whatever else a config asks for is refused by its key.
//
// Spellings of one base: rope_parameters.rope_theta (transformers 5), rope_theta or rope_scaling.rope_theta (transformers 4),
// rotary_emb_base (code of the checkpoint's own). Of one base for each kind of layer: rope_parameters.full_attention and
// .sliding_attention, or global_rope_theta and local_rope_theta; kinds by layer_types, or by global_attn_every_n_layers.
#include "compiler/spec/ConfigReading.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace batten {

namespace {

constexpr llvm::StringLiteral kFull = "full_attention", kSliding = "sliding_attention";

/// A base that a config states, and by which key.
struct Base {
  std::optional<double> theta;
  std::string where;
};

/// Reads a base. Errors: no number; not above 0 or not finite in f32; another one than the base that was found before.
llvm::Error readBase(const JsonObject &object, llvm::StringRef key, Base &base) {
  llvm::Expected<std::optional<double>> theta = object.number(key);
  if (!theta)
    return theta.takeError();
  if (!*theta)
    return llvm::Error::success();
  auto rounded = static_cast<float>(**theta);
  if (!(rounded > 0 && std::isfinite(rounded)))
    return makeError(object.where(key) + ": " + describeJson(*object.raw().get(key)) +
                     " found, a number above 0 that f32 holds wanted");
  if (base.theta && *base.theta != **theta)
    return makeError(object.where(key) + " is " + describeJson(*object.raw().get(key)) + " and " + base.where +
                     " is another: which base of the rotary angles is meant is not clear");
  if (!base.theta)
    base = {*theta, object.where(key).substr(object.file().size() + 2)};
  return llvm::Error::success();
}

/// Refuses scaled angles that an object of rope parameters asks for. Errors: a type other than default; no type, but a
/// factor; wrong types.
llvm::Error checkAngles(const JsonObject &rope) {
  bool stated = false;
  for (llvm::StringRef key : {"rope_type", "type"}) {
    llvm::Expected<std::optional<std::string>> type = rope.string(key);
    if (!type)
      return type.takeError();
    stated |= type->has_value();
    if (type->value_or("default") != "default")
      return makeError(rope.where(key) + " " + quoted(**type) +
                       " is not computed: scaled rotary angles are refused, \"default\" wanted");
  }
  llvm::Expected<std::optional<double>> factor = rope.number("factor");
  if (!factor)
    return factor.takeError();
  if (!stated && factor->value_or(1) != 1)
    return makeError(rope.where("factor") + " is " + describeJson(*rope.raw().get("factor")) +
                     " without a rope_type: scaled rotary angles are not computed, 1 wanted");
  return llvm::Error::success();
}

llvm::Error checkShare(const JsonObject &object, llvm::StringRef key, double fallback) {
  llvm::Expected<std::optional<double>> share = object.number(key);
  if (!share)
    return share.takeError();
  if (share->value_or(fallback) == 1)
    return llvm::Error::success();
  return makeError(object.where(key) +
                   (*share ? " is " + describeJson(*object.raw().get(key)) : " is missing, which means 0") +
                   ": rotary angles for a part of each head are not computed, 1 wanted");
}

/// Scaled angles by keys of the config itself: refused, or a bound of the sequences that they leave alone.
llvm::Error checkRopeKeys(const JsonObject &object, ModelConfig &config) {
  if (llvm::Error error = checkShare(object, "partial_rotary_factor", 1))
    return error;
  if (!config.family->ropeFraction.empty())
    if (llvm::Error error = checkShare(object, config.family->ropeFraction, 0))
      return error;
  if (object.has("rotary_emb_scale_base"))
    return makeError(object.where("rotary_emb_scale_base") +
                     " is set: angles that decay with the distance (xPos) are not computed, null wanted");
  if (!object.has("rotary_scaling_factor"))
    return llvm::Error::success();
  if (!config.family->lengthScaling)
    return makeError(object.where("rotary_scaling_factor") +
                     " is set: bases that depend on the sequence's length are not computed, null wanted");
  // Up to this length the base is the plain one; longer sequences are refused at run time.
  llvm::Expected<std::optional<double>> factor = object.number("rotary_scaling_factor");
  if (!factor)
    return factor.takeError();
  if (llvm::Error error = readDefaulted(object, config, "max_trained_positions", 2048, 1, config.longestSequence))
    return error;
  config.notes.push_back("sequences are bounded by max_trained_positions (" + std::to_string(config.longestSequence) +
                         "): rotary_scaling_factor would change the rotary base of longer ones, which is not computed");
  return llvm::Error::success();
}

/// Reads an object of rope parameters that holds for all layers. Errors: as checkAngles, checkShare and readBase; an object
/// inside, which would be of some layers only.
llvm::Error readRope(const JsonObject &rope, Base &base) {
  if (llvm::Error error = checkAngles(rope))
    return error;
  if (llvm::Error error = checkShare(rope, "partial_rotary_factor", 1))
    return error;
  for (const auto &entry : rope.raw())
    if (entry.second.kind() == llvm::json::Value::Object)
      return makeError(rope.where(entry.first) + " is an object: one base for all layers is read here, numbers wanted");
  return readBase(rope, "rope_theta", base);
}

/// Reads such an object below a key, if it is there.
llvm::Error readRopeAt(const JsonObject &object, llvm::StringRef key, Base &base) {
  llvm::Expected<std::optional<JsonObject>> rope = object.child(key);
  if (!rope)
    return rope.takeError();
  return *rope ? readRope(**rope, base) : llvm::Error::success();
}

/// A base or the family's default, which is listed under the key.
double orDefault(ModelConfig &config, const Base &base, llvm::StringRef key, double fallback) {
  if (!base.theta)
    config.defaults.push_back(key.str());
  return base.theta.value_or(fallback);
}

/// The factor of ntk scaling; nothing where the config asks for none or the family has none. Errors: no factor, or one below
/// 1; mixed_b, which scales each pair of columns another way.
llvm::Expected<std::optional<double>> readNtkFactor(const JsonObject &object, const ModelConfig &config) {
  llvm::Expected<std::optional<JsonObject>> scaling = object.child("rope_scaling");
  if (!scaling)
    return scaling.takeError();
  if (!config.family->ntkScaling || !*scaling)
    return std::nullopt;
  llvm::Expected<std::optional<std::string>> type = (*scaling)->string("type");
  if (!type)
    return type.takeError();
  if (type->value_or("") != "ntk")
    return std::nullopt;
  if ((*scaling)->has("mixed_b"))
    return makeError((*scaling)->where("mixed_b") +
                     " is set: angles scaled pair by pair are not computed, null wanted");
  llvm::Expected<std::optional<double>> factor = (*scaling)->number("factor");
  if (!factor)
    return factor.takeError();
  if (!(factor->value_or(0) >= 1 && std::isfinite(static_cast<float>(**factor))))
    return makeError((*scaling)->where("factor") +
                     (*factor ? ": " + describeJson(*(*scaling)->raw().get("factor")) + " found" : " is missing") +
                     ", a number of at least 1 wanted");
  return *factor;
}

llvm::Error readOneTheta(const JsonObject &object, ModelConfig &config) {
  Base base;
  llvm::Expected<std::optional<double>> factor = readNtkFactor(object, config);
  if (!factor)
    return factor.takeError();
  for (llvm::StringRef key : {"rope_parameters", "rope_scaling"})
    if (key != "rope_scaling" || !*factor)
      if (llvm::Error error = readRopeAt(object, key, base))
        return error;
  for (llvm::StringRef key : {"rope_theta", "rotary_emb_base"})
    if (llvm::Error error = readBase(object, key, base))
      return error;
  double theta = orDefault(config, base, "rope_theta", config.family->theta);
  LayerAttention attention{theta, -1};
  if (*factor && **factor > 1) { // the code leaves a factor of 1 alone
    attention.ropeTheta = theta * **factor;
    attention.ropeDivisor = std::pow(**factor, 2.0 / static_cast<double>(config.headWidth));
  }
  config.attention.assign(config.layers, attention);
  return llvm::Error::success();
}

/// True for each layer with a window. Errors: layer_types of another length than the layers, or with another kind.
llvm::Expected<std::vector<bool>> readLayerTypes(const JsonObject &object, ModelConfig &config) {
  std::vector<bool> sliding(config.layers);
  llvm::Expected<std::optional<std::vector<std::string>>> types = object.strings("layer_types");
  if (!types)
    return types.takeError();
  llvm::Expected<std::optional<int64_t>> every = object.integer("global_attn_every_n_layers", 1, kMostDimension);
  if (!every)
    return every.takeError();
  int64_t period = every->value_or(3);
  for (int64_t i = 0; i < config.layers; ++i)
    sliding[i] = i % period != 0;
  if (!*types) {
    if (!*every)
      config.defaults.push_back("global_attn_every_n_layers");
    return sliding;
  }
  if (static_cast<int64_t>((*types)->size()) != config.layers)
    return makeError(object.where("layer_types") + " has " + llvm::Twine((*types)->size()) +
                     " entries, num_hidden_layers is " + llvm::Twine(config.layers));
  std::vector<bool> stated(config.layers);
  for (int64_t i = 0; i < config.layers; ++i) {
    llvm::StringRef type = (**types)[i];
    if (type != kFull && type != kSliding)
      return makeError(object.where("layer_types") + "[" + llvm::Twine(i) + "]: " + quoted(type) + " found, \"" +
                       kFull + "\" or \"" + kSliding + "\" wanted");
    stated[i] = type == kSliding;
  }
  if (*every && stated != sliding)
    config.notes.push_back("global_attn_every_n_layers is not read: layer_types says otherwise");
  return stated;
}

llvm::Error readByLayerType(const JsonObject &object, ModelConfig &config) {
  Base full, sliding;
  llvm::Expected<std::optional<JsonObject>> rope = object.child("rope_parameters");
  if (!rope)
    return rope.takeError();
  if (*rope) {
    for (const auto &entry : (*rope)->raw())
      if (llvm::StringRef(entry.first) != kFull && llvm::StringRef(entry.first) != kSliding)
        return makeError((*rope)->where(entry.first) + " is not known: an object for each of \"" + kFull + "\" and \"" +
                         kSliding + "\" wanted");
    for (auto [type, base] : {std::pair(kFull, &full), std::pair(kSliding, &sliding)})
      if (llvm::Error error = readRopeAt(**rope, type, *base))
        return error;
  }
  // Of old, for layers of both kinds.
  for (Base *base : {&full, &sliding})
    if (llvm::Error error = readRopeAt(object, "rope_scaling", *base))
      return error;
  if (llvm::Error error = readBase(object, "global_rope_theta", full))
    return error;
  if (llvm::Error error = readBase(object, "local_rope_theta", sliding))
    return error;
  double globalTheta = orDefault(config, full, "global_rope_theta", config.family->theta);
  // Of old, null says that local layers have the base of the others.
  const llvm::json::Value *local = object.raw().get("local_rope_theta");
  if (!sliding.theta && local && local->kind() == llvm::json::Value::Null)
    sliding.theta = globalTheta;
  double localTheta = orDefault(config, sliding, "local_rope_theta", config.family->localTheta);

  llvm::Expected<std::vector<bool>> types = readLayerTypes(object, config);
  if (!types)
    return types.takeError();
  int64_t window = 0;
  if (llvm::Error error = readDefaulted(object, config, "local_attention", 128, 1, window))
    return error;
  for (bool isSliding : *types)
    config.attention.push_back(isSliding ? LayerAttention{localTheta, window / 2} : LayerAttention{globalTheta, -1});
  return llvm::Error::success();
}

} // namespace

llvm::Error readLayerAttention(const JsonObject &object, ModelConfig &config) {
  RopeLayout layout = config.family->rope;
  if (layout == RopeLayout::None) {
    config.attention.assign(config.layers, {});
    return llvm::Error::success();
  }
  if (llvm::Error error = checkRopeKeys(object, config))
    return error;
  if (config.headWidth % 2)
    return makeError(object.file() + ": heads are " + llvm::Twine(config.headWidth) +
                     " wide: rotary positions turn pairs of a head's columns, an even width wanted");
  return layout == RopeLayout::OneTheta ? readOneTheta(object, config) : readByLayerType(object, config);
}

} // namespace batten
