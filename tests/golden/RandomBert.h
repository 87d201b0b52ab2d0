// Writes a BERT directory with random weights of any size, for tests that need longer sequences than the goldens take.
#ifndef BATTEN_TESTS_GOLDEN_RANDOMBERT_H
#define BATTEN_TESTS_GOLDEN_RANDOMBERT_H

#include "tests/TempDir.h"

#include <cstdint>
#include <string>

namespace batten::test {

struct RandomBert {
  int64_t hidden = 96, heads = 3, layers = 2, inner = 100, positions = 1100, vocab = 61;
  bool pooler = true;
  uint64_t seed = 1;
  std::string act = "gelu";

  /// Writes config.json and model.safetensors below dir/name; gives the directory's path.
  std::string write(const TempDir &dir, const std::string &name) const;
};

} // namespace batten::test

#endif // BATTEN_TESTS_GOLDEN_RANDOMBERT_H
