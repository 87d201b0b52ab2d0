// What the files that read config.json share: keys with two spellings, defaults that are listed, the steps of reading. Only
// for compiler/spec.
#ifndef BATTEN_COMPILER_SPEC_CONFIGREADING_H
#define BATTEN_COMPILER_SPEC_CONFIGREADING_H

#include "compiler/spec/Json.h"
#include "compiler/spec/ModelConfig.h"

#include "llvm/Support/Error.h"

namespace batten {

/// The spelling of a key that the config has: the family's own, unless only the other one is there. Errors: both are there
/// and differ, where they may not.
llvm::Expected<std::string> spellingOf(const JsonObject &object, const ConfigKey &key);

/// A size with a default, which is listed. Errors: as integer.
llvm::Error readDefaulted(const JsonObject &object, ModelConfig &config, llvm::StringRef key, int64_t fallback,
                          int64_t least, int64_t &out);

/// A switch of the family; a default is listed. Errors: as boolean.
llvm::Error readSwitch(const JsonObject &object, ModelConfig &config, const ConfigSwitch &rule, bool &out);

/// The dialect's name of the activation that a key has, or of the fallback. Errors: no string; unknown.
llvm::Expected<std::string> readActivation(const JsonObject &object, llvm::StringRef key, llvm::StringRef fallback);

/// The attention of each layer: rotary bases and windows; see ConfigRope.cpp. After the sizes.
llvm::Error readLayerAttention(const JsonObject &object, ModelConfig &config);

/// head_layers, which makes a decision checkpoint; see DecisionConfig.cpp. After the sizes.
llvm::Error readDecision(const JsonObject &object, ModelConfig &config);

/// Refuses what would silently compute another function; see ConfigRefusals.cpp.
llvm::Error checkUnsupported(const JsonObject &object, const ModelConfig &config);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_CONFIGREADING_H
