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
/// Most layers of a model.
inline constexpr int64_t kMostLayers = 4096;

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

/// A checked config of a known family. Keys are those by which the config spells what they name, for error texts.
struct ModelConfig {
  std::string path;
  std::string modelType;
  const ConfigFamily *family = nullptr;
  std::vector<std::string> architectures;
  int64_t vocabSize = 0, maxPositions = 0;
  int64_t typeVocabSize = 0; ///< 0: the family has no token types
  int64_t hiddenSize = 0, layers = 0, heads = 0, intermediateSize = 0;
  int64_t embeddingSize = 0; ///< hiddenSize where the family has no width of its own for embeddings
  std::string hiddenSizeKey, intermediateSizeKey, embeddingSizeKey, activationKey;
  int64_t layerGroups = 0;    ///< sets of weights that the layers share; 0: each layer has its own
  int64_t firstPosition = 0;  ///< position of a sequence's first token: pad_token_id + 1 in the RoBERTa family
  std::string activationName; ///< as the config spells it
  std::string activation;     ///< as the dialect spells it
  double layerNormEps = 0;
  std::vector<std::string> defaults; ///< keys that were absent and took the family's default: "layer_norm_eps"
  std::optional<int64_t> labelCount;
  std::vector<std::string> labels; ///< id2label in order; empty where absent or not 0..n-1
  ModelHead head = ModelHead::None;
  std::string headSource; ///< the architecture that said so
  std::vector<std::string> notes;

  /// Tokens of the longest sequence that has a row of the position table for each token; at least 1.
  int64_t maxSeqTokens() const { return maxPositions - firstPosition; }
  /// The set of weights that a layer reads.
  int64_t groupOf(int64_t layer) const { return layerGroups ? layer / (layers / layerGroups) : layer; }
};

/// Parses and checks the text of a config. Errors: everything parseJson refuses; another or no model_type; a missing size, a
/// wrong type or range, with the key; hidden_size that is no multiple of num_attention_heads; num_hidden_layers that is no
/// multiple of num_hidden_groups; inner_group_num beyond 1; a position table that padding uses up, and a pad_token_id of
/// null where positions count from it; two spellings of a key that differ; an activation that is not known; and is_decoder, add_cross_attention, position_embedding_type, quantization_config, adapters, pruned_heads that are set to
/// what is not computed.
llvm::Expected<ModelConfig> parseModelConfig(llvm::StringRef text, llvm::StringRef path);

/// The same from a file. Errors: also that it can't be read.
llvm::Expected<ModelConfig> readModelConfig(llvm::StringRef path);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_MODELCONFIG_H
