// Golden cases: packed inputs and expected outputs from a directory's cases.safetensors and cases.json.
#ifndef BATTEN_TESTS_GOLDEN_CASES_H
#define BATTEN_TESTS_GOLDEN_CASES_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace batten::test {

/// Rows of f32, dense.
struct Rows {
  int64_t rows = 0, width = 0;
  uint32_t kind = 0; ///< batten_row_kind, where a run gave them
  std::vector<float> values;
};

/// Inputs of one run.
///
/// Shapes: ids, types [cu.back()], types empty where not given; cu [sequences + 1]; markers [any]; cuMarkers as cu, or shorter
///         where the rest has no markers; seqTypes [sequences], empty where not given.
struct PackedBatch {
  std::vector<int32_t> ids, types, cu{0}, markers, cuMarkers{0}, seqTypes;

  uint32_t seqs() const { return static_cast<uint32_t>(cu.size() - 1); }
  uint32_t tokens() const { return static_cast<uint32_t>(cu.back()); }
  /// Rows of that kind (batten_row_kind) that belong to a sequence: [first, last).
  std::pair<int64_t, int64_t> rowsOf(uint32_t rowKind, uint32_t seq) const;
  /// Adds sequence `seq` of another batch with its markers. Types are kept where either has them.
  void append(const PackedBatch &other, uint32_t seq);
};

struct GoldenCase {
  std::string name;
  PackedBatch batch;
  std::map<std::string, Rows> outputs;
};

struct Golden {
  std::string directory;
  std::vector<GoldenCase> cases;
  std::map<std::string, double> noise; ///< PyTorch's own f32 noise of an output, absolute; empty where not stated
};

/// Path of a golden directory in the repository.
std::string goldenPath(const std::string &directory);

/// Reads a directory's cases. Errors: a file that is missing or of another form.
llvm::Expected<Golden> loadGolden(const std::string &directory);

} // namespace batten::test

#endif // BATTEN_TESTS_GOLDEN_CASES_H
