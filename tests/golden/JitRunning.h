// Jit executors and bundles made ahead of time, asked the same: answers as bits, for the tests of compiler/Jit.
#ifndef BATTEN_TESTS_GOLDEN_JITRUNNING_H
#define BATTEN_TESTS_GOLDEN_JITRUNNING_H

#include "compiler/Jit.h"
#include "tests/golden/Running.h"

#include <gtest/gtest.h>
#include <optional>
#include <random>

namespace batten::test {

/// Rows of an output, dense, as bytes.
inline std::string bitsOf(const Output &output) {
  std::string bits;
  for (uint32_t r = 0; r < output.rows; ++r) {
    std::span<const float> row = output.row(r);
    bits.append(reinterpret_cast<const char *>(row.data()), row.size_bytes());
  }
  return bits;
}

inline Batch viewOfBatch(const PackedBatch &batch) {
  Batch view{.tokenIds = batch.ids, .cuSeqlens = batch.cu, .tokenTypes = batch.types};
  if (!batch.markers.empty())
    view.markers = batch.markers, view.cuMarkers = batch.cuMarkers;
  view.seqTypes = batch.seqTypes;
  return view;
}

struct Answer {
  uint32_t bucket = UINT32_MAX;
  std::vector<std::string> outputs;
  bool operator==(const Answer &) const = default;
};

/// Code for batten.hpp's Executor, which must serve both.
template <typename AnyExecutor>
Answer ask(AnyExecutor &executor, uint32_t lane, uint32_t outputCount, const PackedBatch &batch) {
  std::vector<Output> outputs(outputCount);
  Result<uint32_t> bucket = executor.run(viewOfBatch(batch), outputs, lane);
  if (!bucket) {
    ADD_FAILURE() << bucket.error().message;
    return {};
  }
  Answer answer{*bucket, {}};
  for (const Output &output : outputs)
    answer.outputs.push_back(bitsOf(output));
  return answer;
}

/// A batch that a bucket holds, with all that the lane reads.
inline PackedBatch randomBatch(std::mt19937_64 &random, const batten_lane_info_t &lane,
                               const batten_bucket_info_t &bucket) {
  PackedBatch batch;
  auto below = [&](uint32_t bound) { return static_cast<int32_t>(random() % bound); };
  for (uint32_t count = 1 + below(bucket.seqs); batch.seqs() < count;) {
    uint32_t most = bucket.tokens - batch.tokens();
    most = lane.maxSeqTokens ? std::min(most, lane.maxSeqTokens) : most;
    int32_t length = below(most + 1);
    for (int32_t i = 0; i < length; ++i) {
      batch.ids.push_back(below(lane.idCount));
      if (lane.typeCount)
        batch.types.push_back(below(lane.typeCount));
    }
    for (int32_t i = below(5); lane.readsMarkers && length && i > 0 && batch.markers.size() < bucket.markers; --i)
      batch.markers.push_back(below(static_cast<uint32_t>(length)));
    batch.cu.push_back(static_cast<int32_t>(batch.ids.size()));
    batch.cuMarkers.push_back(static_cast<int32_t>(batch.markers.size()));
    if (lane.seqTypeCount)
      batch.seqTypes.push_back(below(lane.seqTypeCount));
  }
  return batch;
}

/// A batch of one sequence of that many tokens.
inline PackedBatch oneSequence(uint32_t tokens) {
  PackedBatch batch;
  for (uint32_t i = 0; i < tokens; ++i)
    batch.ids.push_back(static_cast<int32_t>(3 + i % 5));
  batch.cu.push_back(static_cast<int32_t>(tokens));
  return batch;
}

/// Lanes and buckets that have a plan.
using Warm = std::vector<std::pair<uint32_t, uint32_t>>;
inline Warm warmOf(const jit::Executor &executor) {
  Warm warm;
  for (const jit::WarmPlan &plan : executor.warm())
    warm.emplace_back(plan.lane, plan.bucket);
  return warm;
}

/// A model compiled ahead of time for the best target that runs here. Without executor, and the test failed, on an error.
struct AheadOfTime {
  AheadOfTime(const std::string &input, const std::string &bucketsFile) {
    CompileRequest request;
    request.input = input;
    request.bucketsFile = bucketsFile;
    request.targets = {runnableTargets().back()};
    auto made = compileToMemory(request);
    if (made)
      open(std::move(*made));
    else
      ADD_FAILURE() << llvm::toString(made.takeError());
  }

  std::vector<CompiledBlob> blobs;
  std::optional<Bundle> bundle;
  std::optional<Executor> executor;

private:
  void open(std::vector<CompiledBlob> made) {
    blobs = std::move(made);
    std::vector<batten_blob_t> views;
    for (const CompiledBlob &blob : blobs)
      views.push_back({blob.path().c_str(), blob.data(), blob.size()});
    auto opened = Bundle::open(views);
    ASSERT_TRUE(bool(opened)) << opened.error().message;
    auto created = Executor::create(*opened);
    ASSERT_TRUE(bool(created)) << created.error().message;
    bundle.emplace(std::move(*opened));
    executor.emplace(std::move(*created));
  }
};

/// Fails the test and gives nothing on an error.
inline std::optional<jit::Executor> makeJit(const std::string &input, const std::string &bucketsFile = "") {
  jit::Options options;
  options.input = input;
  options.bucketsFile = bucketsFile;
  auto executor = jit::Executor::create(options);
  if (executor)
    return std::move(*executor);
  ADD_FAILURE() << llvm::toString(executor.takeError());
  return std::nullopt;
}

} // namespace batten::test

#endif // BATTEN_TESTS_GOLDEN_JITRUNNING_H
