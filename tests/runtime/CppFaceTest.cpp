// batten.hpp: each call gives what the C call gives, and what the header adds of its own: sizes of spans, slack.
#include "DecisionModel.h"

#include "batten/batten.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace batten::test {
namespace {

class CppFaceTest : public ::testing::Test {
protected:
  CppFaceTest()
      : blobs_(serialize(decisionSpec())), bundle_(Bundle::open(blobs_.list())), pool_(Pool::create(2)),
        executor_(Executor::create(*bundle_, &*pool_)), owned_(makeMarkedBatch({5, 0, 3}, 2)) {}
  static batten::Batch viewOf(const Batch &batch) {
    return {batch.ids, batch.cuSeqlens, batch.types, batch.markers, batch.cuMarkers, batch.seqTypes};
  }

  Blobs blobs_;
  Result<Bundle> bundle_;
  Result<Pool> pool_;
  Result<Executor> executor_;
  Batch owned_;
};

TEST_F(CppFaceTest, EveryLanesPlansStepsAndOperandsAreVisible) {
  const std::vector<size_t> steps = {10, 8};
  ASSERT_EQ(bundle_->info().laneCount, 2u);
  for (uint32_t lane = 0; lane < 2; ++lane) {
    const auto info = bundle_->lane(lane);
    ASSERT_TRUE(info);
    EXPECT_EQ(view(info->name), lane ? "encode" : "decide");
    EXPECT_EQ(bundle_->output(lane, 0)->rowKind, lane ? BATTEN_ROWS_TOKENS : BATTEN_ROWS_MARKERS);
    for (uint32_t bucket = 0; bucket < info->bucketCount; ++bucket) {
      const auto plan = bundle_->plan(lane, bucket);
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->stepCount, steps[lane]);
      EXPECT_GE(plan->arenaBytes, plan->lowerBoundBytes);
      for (uint32_t step = 0; step < plan->stepCount; ++step) {
        const auto told = bundle_->step(lane, bucket, step);
        ASSERT_TRUE(told);
        EXPECT_TRUE(bundle_->operand(lane, bucket, step, told->operandCount - 1));
        EXPECT_FALSE(bundle_->operand(lane, bucket, step, told->operandCount));
      }
      EXPECT_FALSE(bundle_->step(lane, bucket, plan->stepCount));
    }
    EXPECT_FALSE(bundle_->plan(lane, info->bucketCount));
    EXPECT_FALSE(bundle_->bucket(lane, info->bucketCount));
    EXPECT_FALSE(bundle_->output(lane, info->outputCount));
  }
  EXPECT_FALSE(bundle_->lane(2));
  EXPECT_EQ(view(bundle_->target(0)->name), "base");
  EXPECT_FALSE(bundle_->target(1));
  EXPECT_EQ(bundle_->verifyFull(), BATTEN_OK);
}

TEST_F(CppFaceTest, RunsAndTellsBucketAndSlack) {
  const Decision expected = decide(owned_);
  std::vector<Output> outputs(3);
  const auto bucket = executor_->run(viewOf(owned_), outputs);
  ASSERT_TRUE(bucket) << bucket.error().text();
  for (uint32_t s = 0; s < 3; ++s)
    EXPECT_TRUE(std::ranges::equal(outputs[1].row(s), std::span(expected.decision).subspan(s * kWidth, kWidth)));
  const auto fit = executor_->check(viewOf(owned_));
  ASSERT_TRUE(fit) << fit.error().text();
  EXPECT_EQ(fit->bucket, *bucket);
  const auto capacity = bundle_->bucket(0, *bucket);
  EXPECT_EQ(fit->capacity.tokens, capacity->tokens);
  EXPECT_EQ(fit->slack.tokens, capacity->tokens - 8);
  EXPECT_EQ(fit->slack.seqs, capacity->seqs - 3);
  EXPECT_EQ(fit->slack.markers, capacity->markers - owned_.markers.size());
  EXPECT_EQ(executor_->runInBucket(2, viewOf(owned_), outputs), BATTEN_OK);
  Error error;
  const Batch large = makeBatch({9}, 1);
  EXPECT_EQ(executor_->runInBucket(0, viewOf(large), {}, 0, &error), BATTEN_NO_BUCKET);
  EXPECT_EQ(error.limit, 8u);
  EXPECT_FALSE(executor_->check(viewOf(large), 2)); // no such lane
}

TEST_F(CppFaceTest, R34_SlackAtBucketLessOneBucketAndOneMore) {
  struct Case {
    uint32_t tokens, bucket, slack;
  };
  for (const Case &c : {Case{7, 0, 1}, {8, 0, 0}, {9, 1, 23}, {31, 1, 1}, {32, 1, 0}, {33, 2, 167}, {200, 2, 0}}) {
    const Batch batch = makeBatch({c.tokens}, 1);
    const auto fit = executor_->check(viewOf(batch));
    ASSERT_TRUE(fit) << fit.error().text();
    EXPECT_EQ(fit->bucket, c.bucket) << c.tokens;
    EXPECT_EQ(fit->slack.tokens, c.slack) << c.tokens;
  }
}

TEST_F(CppFaceTest, SpansThatDisagreeAreABadBatch) {
  struct Case {
    const char *array;
    uint64_t found, wanted;
    std::function<void(Batch &)> bend;
  };
  const Case cases[] = {{"token_types", 7, 8, [](Batch &b) { b.types.pop_back(); }},
                        {"cu_markers", 3, 4, [](Batch &b) { b.cuMarkers.pop_back(); }},
                        {"seq_types", 2, 3, [](Batch &b) { b.seqTypes.pop_back(); }}};
  for (const Case &c : cases) {
    Batch batch = owned_;
    c.bend(batch);
    const auto ran = executor_->run(viewOf(batch), {});
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().status, BATTEN_BAD_BATCH);
    EXPECT_STREQ(ran.error().where, c.array);
    EXPECT_EQ(ran.error().found, c.found);
    EXPECT_EQ(ran.error().limit, c.wanted);
    EXPECT_FALSE(executor_->check(viewOf(batch)));
    EXPECT_EQ(executor_->runInBucket(2, viewOf(batch), {}), BATTEN_BAD_BATCH);
  }
}

TEST_F(CppFaceTest, ProfileMemoryPrepareTraceAndSelfTest) {
  EXPECT_EQ(executor_->prepare(0, 2), BATTEN_OK);
  EXPECT_EQ(executor_->prepare(0, 3), BATTEN_BAD_ARGUMENT);
  const batten_memory_t memory = executor_->memory();
  for (uint64_t bytes :
       {memory.weightsMapped, memory.imageMapped, memory.planTables, memory.arena, memory.batchTables, memory.scratch})
    EXPECT_GT(bytes, 0u);
  EXPECT_GE(memory.scratch, 2 * bundle_->plan(1, 2)->scratchBytes); // a worker each

  std::vector<uint32_t> rows;
  auto trace = [&rows](uint32_t step, uint32_t rowKind, const Output &output) noexcept {
    if (rowKind == BATTEN_ROWS_MARKERS && step == 8)
      rows.push_back(output.rows);
  };
  ASSERT_EQ(executor_->setTrace(trace), BATTEN_OK);
  ASSERT_EQ(executor_->setProfile(true), BATTEN_OK);
  const auto bucket = executor_->run(viewOf(owned_), {});
  ASSERT_TRUE(bucket);
  EXPECT_EQ(rows, (std::vector<uint32_t>{static_cast<uint32_t>(owned_.markers.size())}));
  EXPECT_EQ(executor_->stepTime(0, *bucket, 9)->runs, 1u);
  EXPECT_GT(executor_->stepTime(0, *bucket, 9)->nanoseconds, 0u);
  EXPECT_FALSE(executor_->stepTime(0, *bucket, 10));
  ASSERT_EQ(executor_->stopTrace(), BATTEN_OK);
  ASSERT_EQ(executor_->setProfile(false), BATTEN_OK);
  ASSERT_TRUE(executor_->run(viewOf(owned_), {}));
  EXPECT_EQ(rows.size(), 1u);
  EXPECT_EQ(executor_->stepTime(0, *bucket, 9)->runs, 0u);

  const auto test = executor_->selfTest(0);
  ASSERT_TRUE(test) << test.error().text();
  EXPECT_TRUE(test->passed);
  EXPECT_FALSE(executor_->selfTest(1));
}

} // namespace
} // namespace batten::test
