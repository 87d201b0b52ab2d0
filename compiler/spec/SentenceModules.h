// modules.json of a sentence-transformers directory and the configs of its modules: what turns hidden states into one
// embedding a sequence. Modules that are not computed are refused by name; tokenizing and cutting are the caller's.
#ifndef BATTEN_COMPILER_SPEC_SENTENCEMODULES_H
#define BATTEN_COMPILER_SPEC_SENTENCEMODULES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace batten {

/// One module after the encoder.
struct SentenceModule {
  enum class Kind { Pooling, Dense, Normalize };

  Kind kind = Kind::Pooling;
  std::string dir; ///< its directory, "" where it has none

  /// Pooling: dialect names (cls, max, mean, mean_sqrt_len, last), joined in this order.
  std::vector<std::string> modes;
  bool modesAreDefault = false;
  std::optional<int64_t> width; ///< of the hidden states, where the config states it

  /// Dense: act(x w^T + b), plus x (or x r^T where the widths differ) with `residual`.
  int64_t inFeatures = 0, outFeatures = 0;
  bool bias = true, residual = false;
  std::string activation; ///< as the dialect spells it
};

struct SentenceModules {
  std::string path;       ///< of modules.json
  std::string encoderDir; ///< "" or a plain sub-directory
  std::vector<SentenceModule> modules;
  std::vector<std::string> notes;
};

/// Reads modules.json and what it names in a model directory; nothing where the directory has no modules.json, or where
/// it lists an encoder only (a cross-encoder's directory).
///
/// Several pooling modes are joined in the order that the library joins them: the flags of older files (pooling_mode_*)
/// always as cls, max, mean, mean over sqrt(length), last token; a newer list in its stated order.
///
/// Errors: everything parseJson refuses; no or another encoder first; a module type that is not known, by name; paths that
/// are not plain names; a pooling mode or an activation that is not computed; include_prompt false; modules that read or
/// write something else than sentence_embedding; an order of modules that makes no embedding.
/// Source: sentence-transformers 6.2 and 2.x: Pooling, Dense, Normalize, and how their configs are loaded.
llvm::Expected<std::optional<SentenceModules>> readSentenceModules(llvm::StringRef modelDir);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_SENTENCEMODULES_H
