// The families whose config.json is read: the keys that they spell their own way, and the defaults of keys that a config
// may lack. One row a model_type and way of spelling. Tensor names are not here: they are in compiler/graph, one file a
// family.
#ifndef BATTEN_COMPILER_SPEC_CONFIGFAMILY_H
#define BATTEN_COMPILER_SPEC_CONFIGFAMILY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <string>

namespace batten {

/// How a family spells a key. `other` is a second spelling that means the same (transformers' attribute_map, or code of the
/// checkpoint's own); empty where there is none. Both at once must agree, unless mayDiffer: then `name` counts.
struct ConfigKey {
  llvm::StringLiteral name;
  llvm::StringLiteral other = "";
  bool mayDiffer = false;
};

/// Keys of what every family has.
struct ConfigKeys {
  ConfigKey hiddenSize, layers, heads, intermediateSize, activation, eps, positions;
};

/// True or false: by a key with a default, or fixed by the family's code where the key is empty.
struct ConfigSwitch {
  llvm::StringLiteral key;
  bool value;
};

/// A switch that must be off, and what it would compute.
struct RefusedSwitch {
  llvm::StringLiteral key;
  llvm::StringLiteral reason;
};

/// Where angles of a rotary embedding come from: nowhere, one base for all layers, or one for each kind of layer
/// (full_attention and sliding_attention, which has a window).
enum class RopeLayout { None, OneTheta, ByLayerType };

/// Whether act(up(x)) is multiplied by a second linear layer of x. ByActivation: swiglu and geglu are names of activations.
enum class Gating { Never, Always, ByActivation };

/// How classifiers of a family pool: the key, what it may say (transformers' name and ours), the default first.
struct PoolingName {
  llvm::StringLiteral transformers, name;
};

/// What a family's config has, and its defaults.
///
/// Source: the families' configuration classes in transformers, which also tell what is missing on purpose; for spellings of
///         nomic_bert, new and rotary xlm-roberta the code that their checkpoints' pages publish.
struct ConfigFamily {
  llvm::StringLiteral modelType;
  llvm::StringLiteral className; ///< of architectures: "Roberta" of RobertaModel and RobertaForMaskedLM
  llvm::StringLiteral names;     ///< of the table of tensor names in compiler/graph
  /// The row is for configs that have this key, and with this text where it is not empty. Rows with a condition come before
  /// the one without.
  llvm::StringLiteral whenKey = "", whenText = "";
  const ConfigKeys *keys;
  llvm::StringLiteral activation; ///< default
  double eps;                     ///< default
  bool epsIsFixed = false;        ///< the family's code has the eps, no key changes it
  int64_t tokenTypes = 2;         ///< default of type_vocab_size; 0: the family has none
  bool tokenTypesMayBeNone = false;
  /// Positions count from pad_token_id + 1; this is its default. -1: positions count from 0 and padding plays no part.
  int64_t positionPad = -1;
  int64_t embeddingSize = 0; ///< default of embedding_size; 0: embeddings are as wide as hidden states
  bool layerGroups = false;  ///< num_hidden_groups (default 1) sets of weights for all layers
  bool headDim = false;      ///< head_dim, by default hidden size / heads
  bool kvHeads = false;      ///< num_key_value_heads, by default as many as heads
  RopeLayout rope = RopeLayout::None;
  double theta = 0, localTheta = 0;      ///< defaults
  llvm::StringLiteral ropeFraction = ""; ///< key of the share of a head that is rotated; absent means 0
  /// rope_scaling of type ntk, with a factor f: the base is multiplied by f and the angles divided by f^(2 / head width), for
  /// sequences of any length. Source: the code that "new" checkpoints bring along.
  bool ntkScaling = false;
  /// The base changes with the sequence's length where rotary_scaling_factor is set, but only beyond max_trained_positions.
  bool lengthScaling = false;
  Gating gating = Gating::Never;             ///< of the layers' inner linear layer
  ConfigSwitch attentionBias = {"", true};   ///< of q, k, v and the projection after attention
  ConfigSwitch upBias = {"", true};          ///< of the inner linear layers
  ConfigSwitch downBias = {"", true};        ///< of the linear layer back
  ConfigSwitch normBias = {"", true};        ///< of all norms
  ConfigKey poolingKey = {""};               ///< how classifiers pool; empty where the family's code fixes it
  llvm::ArrayRef<PoolingName> poolings = {}; ///< the default first
  bool classifierKeys = false;               ///< classifier_activation (default gelu), classifier_bias (default false)
  llvm::ArrayRef<llvm::StringLiteral> positionTypes; ///< what position_embedding_type may say
  llvm::ArrayRef<RefusedSwitch> refused = {};
  bool decision = false; ///< head_layers makes it a decision checkpoint
};

/// The row for a config; nothing where the model_type is not read.
const ConfigFamily *findConfigFamily(llvm::StringRef modelType, const llvm::json::Object &config);
/// The family whose classes an architecture names; nothing where there is none.
const ConfigFamily *configFamilyOfArchitecture(llvm::StringRef architecture, const llvm::json::Object &config);
/// "bert, roberta, ..": for error texts.
std::string knownConfigFamilies();
/// Why a model_type that is not read is refused.
llvm::StringRef refusalReason(llvm::StringRef modelType);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_CONFIGFAMILY_H
