// Golden models with other tensors and another config, and outputs of heads worked out in double precision from the hidden
// states of a golden.
#ifndef BATTEN_TESTS_GOLDEN_EDITEDMODEL_H
#define BATTEN_TESTS_GOLDEN_EDITEDMODEL_H

#include "tests/TempDir.h"
#include "tests/golden/Running.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace batten::test {

/// A golden model with other tensors and another config, in a directory of its own.
class EditedModel {
public:
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };

  /// Reads a golden whose tensors are all F32.
  explicit EditedModel(const std::string &golden);
  /// Adds a tensor of random values, or replaces one.
  const Tensor &random(const std::string &name, std::vector<int64_t> shape);
  /// Replaces text of the config, which must be there.
  void edit(const std::string &from, const std::string &to);
  /// Writes the model; gives the directory's path.
  std::string write();

  std::map<std::string, Tensor> tensors;
  TempDir dir;

private:
  std::string config;
  std::mt19937 engine{20261}; // the seed of all that is random here
};

/// A case by its name; fails the test where there is none.
const GoldenCase &caseOf(const Golden &golden, const std::string &name);
/// w x + b for each row, in double precision.
Rows linear(const Rows &x, const EditedModel::Tensor &w, const EditedModel::Tensor &b);
/// The mean of each sequence's rows.
Rows mean(const Rows &x, const std::vector<int32_t> &cu);
/// Infinite where shapes differ, nothing is there, or anything is NaN.
double largestDifference(const Rows &a, const Rows &b);
/// Compiles a directory, runs its first lane on every target and compares an output.
void expectOutput(const std::string &path, const PackedBatch &batch, const std::string &output, const Rows &want);
/// Status and message of a run of the first lane, which has so many outputs (at most 2).
std::pair<batten_status_t, std::string> statusOf(const TestExecutor &executor, const PackedBatch &batch,
                                                 uint32_t outputs);

} // namespace batten::test

#endif // BATTEN_TESTS_GOLDEN_EDITEDMODEL_H
