// Compiles a model in memory and runs batches on it, for tests: RAII over the C API, outputs as dense rows.
#ifndef BATTEN_TESTS_GOLDEN_RUNNING_H
#define BATTEN_TESTS_GOLDEN_RUNNING_H

#include "batten/batten.h"
#include "compiler/Compile.h"
#include "tests/golden/Cases.h"

#include <memory>
#include <string>
#include <vector>

namespace batten::test {

/// Outputs of a run by name.
using Outputs = std::map<std::string, Rows>;

/// A bundle in memory, opened for one target.
class TestBundle {
public:
  /// Compiles a model directory or spec for all targets that gain in the math. Fails the test and gives nothing on an error.
  static std::shared_ptr<const std::vector<CompiledBlob>> compile(const std::string &input,
                                                                  const std::string &bucketsFile = "",
                                                                  const std::string &weights = "",
                                                                  const std::string &math = "");
  /// Opens blobs for one target; fails the test and gives nothing on an error.
  static std::unique_ptr<TestBundle> open(std::shared_ptr<const std::vector<CompiledBlob>> blobs,
                                          const std::string &target);
  ~TestBundle();

  batten_bundle_t *get() const { return bundle; }
  /// Index of a lane; fails the test where there is none.
  uint32_t lane(const std::string &name) const;
  std::vector<std::string> laneNames() const;
  std::vector<batten_bucket_info_t> buckets(uint32_t lane) const;

private:
  std::shared_ptr<const std::vector<CompiledBlob>> blobs;
  batten_bundle_t *bundle = nullptr;
};

/// An executor on a pool of its own.
class TestExecutor {
public:
  TestExecutor(const TestBundle &bundle, uint32_t threads);
  ~TestExecutor();
  TestExecutor(const TestExecutor &) = delete;
  TestExecutor &operator=(const TestExecutor &) = delete;

  /// Runs a lane in the smallest bucket, or in the given one. Fails the test on an error.
  Outputs run(uint32_t lane, const PackedBatch &batch, int bucket = -1);
  batten_executor_t *get() const { return executor; }

private:
  batten_bundle_t *bundle;
  batten_pool_t *pool = nullptr;
  batten_executor_t *executor = nullptr;
};

/// The C API's view of a batch; valid while the batch is.
batten_batch_t viewOf(const PackedBatch &batch);

/// Targets that a bundle of that math has unasked and that this machine can run.
std::vector<std::string> runnableTargets(const std::string &math = "f32");

} // namespace batten::test

#endif // BATTEN_TESTS_GOLDEN_RUNNING_H
