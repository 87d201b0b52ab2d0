// config.json of a Hugging Face model directory, read and judged: what the graph needs, and a refusal with the reason for
// whatever would make a graph of ours compute something else. ConfigFamily.h has the families that are read and their own
// keys and defaults; others are refused by name.
#ifndef BATTEN_COMPILER_SPEC_MODELCONFIG_H
#define BATTEN_COMPILER_SPEC_MODELCONFIG_H

#include "compiler/spec/ConfigFamily.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace batten {

/// Largest dimension that any config may state; products of two fit 63 bits with room.
inline constexpr int64_t kMostDimension = int64_t(1) << 24;
/// Most heads of a layer, and most columns of a head.
inline constexpr int64_t kMostHeads = 65536;
/// Most layers of a model.
inline constexpr int64_t kMostLayers = 4096;
/// Width of a decision checkpoint's heads, the encoder's and its own.
inline constexpr int64_t kDecisionHeadWidth = 64;

/// The dialect's name of an activation for the name that transformers (ACT2FN) gives it; nothing where it is unknown.
///
/// Source: transformers.activations. gelu and gelu_python are the erf form; gelu_new, gelu_fast, gelu_accurate,
///         gelu_pytorch_tanh and gelu_python_tanh are one tanh form, apart in rounding only. quick_gelu is another
///         function and unknown here.
std::optional<std::string> activationFor(llvm::StringRef transformersName);

/// The names that activationFor knows, for error texts.
std::string knownActivations();

/// What a checkpoint is for, by its `architectures`.
enum class ModelHead { None, SequenceClassification, TokenClassification };

/// How a layer's attention tells positions, and how far it looks.
struct LayerAttention {
  double ropeTheta = 0;   ///< base of the rotary angles; 0: none
  int64_t window = -1;    ///< keys on either side beside the token itself; -1: all of the sequence
  double ropeDivisor = 1; ///< of the rotary angles
  bool operator==(const LayerAttention &other) const = default;
};

/// What a config says of classifiers; empty where it says nothing.
struct ClassifierConfig {
  std::string pooling; ///< cls, mean, or late: the mean of all tokens' logits
  std::string poolingKey;
  std::string activationName, activation; ///< as the config and as the dialect spell it
  bool denseBias = false;
};

/// A checked config of a known family. Keys are those by which the config spells what they name, for error texts.
struct ModelConfig {
  std::string path;
  std::string modelType;
  const ConfigFamily *family = nullptr;
  std::vector<std::string> architectures;
  int64_t vocabSize = 0, maxPositions = 0;
  int64_t typeVocabSize = 0; ///< 0: no token types
  int64_t hiddenSize = 0, layers = 0, heads = 0, intermediateSize = 0;
  int64_t kvHeads = 0;       ///< divides heads
  int64_t headWidth = 0;     ///< heads * headWidth need not be hiddenSize
  int64_t embeddingSize = 0; ///< hiddenSize where the family has no width of its own for embeddings
  std::string hiddenSizeKey, intermediateSizeKey, embeddingSizeKey, activationKey, normEpsKey, headsKey, kvHeadsKey;
  int64_t layerGroups = 0;     ///< sets of weights that the layers share; 0: each layer has its own
  int64_t longestSequence = 0; ///< the graph is another one for longer sequences; 0: no such bound
  int64_t firstPosition = 0;   ///< position of a sequence's first token: pad_token_id + 1 in the RoBERTa family
  std::string activationName;  ///< as the config spells it
  std::string activation;      ///< as the dialect spells it
  bool gated = false;          ///< the activation of one linear layer times another one
  double normEps = 0;
  bool attentionBias = true, upBias = true, downBias = true, normBias = true;
  std::vector<LayerAttention> attention; ///< of each layer
  ClassifierConfig classifier;
  std::optional<int64_t> decisionLayers; ///< layers of a decision checkpoint's head; nothing: it is none
  std::vector<std::string> defaults;     ///< keys that were absent and took the family's default: "layer_norm_eps"
  std::optional<int64_t> labelCount;
  std::vector<std::string> labels; ///< id2label in order; empty where absent or not 0..n-1
  ModelHead head = ModelHead::None;
  std::string headSource; ///< the architecture that said so
  std::vector<std::string> notes;

  /// Tokens of the longest sequence that has a row of the position table for each token; at least 1. Where there is no
  /// table (rotary positions) longestSequence, or what the config states, which bounds nothing.
  int64_t maxSeqTokens() const { return longestSequence ? longestSequence : maxPositions - firstPosition; }
  /// The set of weights that a layer reads.
  int64_t groupOf(int64_t layer) const { return layerGroups ? layer / (layers / layerGroups) : layer; }
  /// Width of all queries of a token, and of all its keys.
  int64_t queryWidth() const { return heads * headWidth; }
  int64_t keyWidth() const { return kvHeads * headWidth; }
};

/// Parses and checks the text of a config. Errors: everything parseJson refuses; another or no model_type; a missing size, a
/// wrong type or range, with the key; a hidden size that is no multiple of the heads, heads that are no multiple of
/// num_key_value_heads, an odd head width with rotary positions, a decision checkpoint whose heads are not 64 wide;
/// num_hidden_layers that is no multiple of num_hidden_groups; inner_group_num beyond 1; a position table that padding uses
/// up, and a pad_token_id of null where positions count from it; two spellings of a key that differ; an activation or
/// pooling that is not known; layer_types of another length or kind; rotary angles other than p * theta^(-2j / width); and
/// is_decoder, add_cross_attention, position_embedding_type, quantization_config, adapters, lora_adaptations, pruned_heads,
/// mixtures of experts and what a family's row refuses, set to what is not computed.
llvm::Expected<ModelConfig> parseModelConfig(llvm::StringRef text, llvm::StringRef path);

/// The same from a file. Errors: also that it can't be read.
llvm::Expected<ModelConfig> readModelConfig(llvm::StringRef path);

/// The config of a model directory without modules.json: config.json, or encoder/config.json with rl_agent_config.json, which
/// has the head_layers of a decision checkpoint. Errors: as readModelConfig; neither is there, with all paths tried;
/// head_layers is missing, or differs between two files.
llvm::Expected<ModelConfig> readModelDirConfig(llvm::StringRef modelDir);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_MODELCONFIG_H
