// The families whose config.json is read: the keys that they spell their own way, and the defaults of keys that a config
// may lack. One row a model_type. Tensor names are not here: they are in compiler/graph, one file a family.
#ifndef BATTEN_COMPILER_SPEC_CONFIGFAMILY_H
#define BATTEN_COMPILER_SPEC_CONFIGFAMILY_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace batten {

/// How a family spells a key. `other` is a second spelling that transformers takes for the same (its attribute_map); empty
/// where there is none.
struct ConfigKey {
  llvm::StringLiteral name;
  llvm::StringLiteral other = "";
};

/// Keys of what every family has.
struct ConfigKeys {
  ConfigKey hiddenSize, layers, heads, intermediateSize, activation;
};

/// What a family's config has, and its defaults.
///
/// Source: the families' configuration classes in transformers, which also tell what is missing on purpose.
struct ConfigFamily {
  llvm::StringLiteral modelType;
  llvm::StringLiteral className; ///< of architectures: "Roberta" of RobertaModel and RobertaForMaskedLM
  const ConfigKeys *keys;
  llvm::StringLiteral activation; ///< default
  double eps;                     ///< default of layer_norm_eps
  bool epsIsFixed = false;        ///< the family's code has the eps, no key changes it
  bool tokenTypes = true;         ///< default of type_vocab_size is 2; false: the family has none
  /// Positions count from pad_token_id + 1; this is its default. -1: positions count from 0 and padding plays no part.
  int64_t positionPad = -1;
  int64_t embeddingSize = 0; ///< default of embedding_size; 0: embeddings are as wide as hidden states
  bool layerGroups = false;  ///< num_hidden_groups (default 1) sets of weights for all layers
};

/// Nothing where the model_type is not read.
const ConfigFamily *findConfigFamily(llvm::StringRef modelType);
/// The family whose classes an architecture names; nothing where there is none.
const ConfigFamily *configFamilyOfArchitecture(llvm::StringRef architecture);
/// "bert, roberta, ..": for error texts.
std::string knownConfigFamilies();
/// Why a model_type that is not read is refused.
llvm::StringRef refusalReason(llvm::StringRef modelType);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_CONFIGFAMILY_H
