// Writes model directories with random weights of any size, for tests that need longer sequences than the goldens take.
#ifndef BATTEN_TESTS_GOLDEN_RANDOMMODEL_H
#define BATTEN_TESTS_GOLDEN_RANDOMMODEL_H

#include "tests/TempDir.h"

#include <cstdint>
#include <string>

namespace batten::test {

struct RandomBert {
  int64_t hidden = 96, heads = 3, layers = 2, inner = 100, positions = 1100, vocab = 61;
  bool pooler = true;
  double words = 0.5; ///< scale of the word table
  uint64_t seed = 1;
  std::string act = "gelu";

  /// Writes config.json and model.safetensors below dir/name; gives the directory's path.
  std::string write(const TempDir &dir, const std::string &name) const;
};

/// A decision model: ModernBERT with windows and rotary positions, lanes decide, embed and encode.
struct RandomDecision {
  int64_t heads = 2, layers = 4, inner = 72, vocab = 61, window = 65, globalEvery = 3, headLayers = 1, types = 3;
  uint64_t seed = 1;

  /// As RandomBert::write.
  std::string write(const TempDir &dir, const std::string &name) const;
};

} // namespace batten::test

#endif // BATTEN_TESTS_GOLDEN_RANDOMMODEL_H
