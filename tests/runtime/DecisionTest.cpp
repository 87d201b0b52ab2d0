// A lane that reads markers and sequence types: right answers, bits, buckets, and what a batch may leave out.
#include "DecisionModel.h"

#include <gtest/gtest.h>

#include <cstring>

namespace batten::test {
namespace {

class DecisionTest : public ::testing::Test {
protected:
  DecisionTest() : blobs_(serialize(decisionSpec())) {
    bundle_ = openBlobs(blobs_, &error_);
    EXPECT_TRUE(bundle_) << error_.message;
    executor_ = makeExecutor(bundle_.get());
  }
  void expectRight(batten_executor_t *executor, const Batch &batch, const char *what, uint32_t bucket = UINT32_MAX) {
    const Decision expected = decide(batch), found = runDecide(executor, batch, bucket);
    EXPECT_TRUE(sameBits(found.gathered, expected.gathered)) << what;
    EXPECT_TRUE(sameBits(found.decision, expected.decision)) << what;
  }

  Blobs blobs_;
  batten_error_t error_ = {};
  BundlePtr bundle_;
  ExecutorPtr executor_;
};

TEST_F(DecisionTest, MatchesPlainLoops) {
  for (uint32_t seed = 1; seed <= 20; ++seed)
    expectRight(executor_.get(), makeMarkedBatch({3, 0, 17, 1, seed, 30}, seed), "random");
  Batch many = makeBatch({2, 1}, 4); // more markers than tokens, repeated, out of order
  many.markers = {1, 0, 1, 1, 0, 0, 0}, many.cuMarkers = {0, 5, 7}, many.seqTypes = {2, 1};
  expectRight(executor_.get(), many, "more markers than tokens");
}

TEST_F(DecisionTest, R20_MarkersAreRelativeToTheirOwnSequence) {
  Batch batch = makeBatch({5, 12, 4}, 7);
  batch.markers = {3, 9, 9, 11}, batch.cuMarkers = {0, 0, 4, 4}, batch.seqTypes = {0, 1, 2};
  expectRight(executor_.get(), batch, "markers of the second sequence");
  EXPECT_TRUE(
      sameBits(runDecide(executor_.get(), batch).gathered, runDecide(executor_.get(), sequenceOf(batch, 1)).gathered));
}

TEST_F(DecisionTest, R22_SequenceHasTheSameBitsAloneInABatchBucketAndThreadCount) {
  const Batch batch = makeMarkedBatch({9, 0, 4, 1, 13}, 3);
  for (uint32_t threads = 1; threads <= 3; ++threads) {
    const PoolPtr pool = makePool(threads);
    const ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
    for (uint32_t bucket : {1u, 2u}) {
      const Decision all = runDecide(executor.get(), batch, bucket);
      for (uint32_t s = 0; s < batch.seqs(); ++s) {
        const Decision alone = runDecide(executor.get(), sequenceOf(batch, s));
        const auto row = all.decision.begin() + s * kWidth, markers = all.gathered.begin();
        EXPECT_TRUE(sameBits(std::vector<float>(row, row + kWidth), alone.decision)) << threads << " " << s;
        EXPECT_TRUE(sameBits(std::vector<float>(markers + batch.cuMarkers[s] * static_cast<int>(kWidth),
                                                markers + batch.cuMarkers[s + 1] * static_cast<int>(kWidth)),
                             alone.gathered))
            << threads << " " << s;
      }
    }
  }
}

TEST_F(DecisionTest, MarkersAndTypesThatAreNotGivenAreNoneAndZero) {
  // After a run that left other values in the executor's tables.
  (void)runDecide(executor_.get(), makeMarkedBatch({9, 3, 4, 1}, 3));
  const Batch bare = makeBatch({6, 0, 2}, 5);
  expectRight(executor_.get(), bare, "nothing given");
  Batch zeros = bare;
  zeros.cuMarkers = {0, 0, 0, 0}, zeros.seqTypes = {0, 0, 0};
  EXPECT_TRUE(sameBits(runDecide(executor_.get(), zeros).decision, runDecide(executor_.get(), bare).decision));
}

TEST_F(DecisionTest, AnEmptyBatchAndEmptySequences) {
  batten_batch_t nothing = BATTEN_BATCH_INIT;
  batten_output_view_t views[3] = {};
  ASSERT_EQ(batten_run(executor_.get(), &nothing, views, 3, nullptr, &error_), BATTEN_OK) << error_.message;
  EXPECT_EQ(views[0].rows + views[1].rows, 0u);
  Batch empty = makeBatch({0, 0}, 1); // a decision row each, of the type alone
  empty.seqTypes = {2, 1}, empty.cuMarkers = {0, 0, 0};
  expectRight(executor_.get(), empty, "empty sequences");
}

TEST_F(DecisionTest, R34_TakesTheSmallestBucketThatHoldsTheMarkers) {
  // Buckets have 4, 16 and 64 markers: one fewer, as many, one more.
  struct Case {
    uint32_t markers, bucket;
  };
  for (const Case &c : {Case{3, 0}, {4, 0}, {5, 1}, {15, 1}, {16, 1}, {17, 2}, {63, 2}, {64, 2}}) {
    Batch batch = makeBatch({7}, 3);
    batch.markers.assign(c.markers, 6), batch.cuMarkers = {0, static_cast<int32_t>(c.markers)}, batch.seqTypes = {1};
    const batten_batch_t view = batch.view();
    uint32_t checked = 99, ran = 99;
    EXPECT_EQ(batten_check_batch(executor_.get(), 0, &view, &checked, &error_), BATTEN_OK) << error_.message;
    EXPECT_EQ(batten_run(executor_.get(), &view, nullptr, 0, &ran, &error_), BATTEN_OK) << error_.message;
    EXPECT_EQ(checked, c.bucket) << c.markers;
    EXPECT_EQ(ran, c.bucket) << c.markers;
  }
  Batch batch = makeBatch({7}, 3);
  batch.markers.assign(65, 6), batch.cuMarkers = {0, 65};
  const batten_batch_t view = batch.view();
  EXPECT_EQ(batten_check_batch(executor_.get(), 0, &view, nullptr, &error_), BATTEN_NO_BUCKET);
  EXPECT_STREQ(error_.where, "markers");
  EXPECT_EQ(error_.found, 65u);
  EXPECT_EQ(error_.limit, 64u);
}

TEST_F(DecisionTest, AfterAnErrorTheLastOutputsStay) {
  const Batch batch = makeMarkedBatch({5, 3}, 3);
  const Decision expected = decide(batch);
  const batten_batch_t view = batch.view();
  batten_output_view_t views[3] = {};
  ASSERT_EQ(batten_run(executor_.get(), &view, views, 3, nullptr, &error_), BATTEN_OK);
  Batch bad = batch;
  bad.markers = {0}, bad.cuMarkers = {0, 2, 1}; // the reference system panics here, and for the lane below
  const batten_batch_t badView = bad.view();
  EXPECT_EQ(batten_run(executor_.get(), &badView, nullptr, 0, nullptr, &error_), BATTEN_BAD_BATCH);
  EXPECT_STREQ(error_.where, "cu_markers");
  for (const bool runs : {false, true}) {
    EXPECT_EQ(runs ? batten_run_lane(executor_.get(), 2, &view, nullptr, 0, nullptr, &error_)
                   : batten_check_batch(executor_.get(), 2, &view, nullptr, &error_),
              BATTEN_BAD_ARGUMENT);
    EXPECT_EQ(error_.found, 2u);
    EXPECT_EQ(error_.limit, 2u);
    EXPECT_STREQ(error_.message, "no lane 2, the bundle has 2");
  }
  for (uint32_t s = 0; s < 2; ++s)
    EXPECT_EQ(std::memcmp(static_cast<const char *>(views[1].data) + s * views[1].strideBytes,
                          &expected.decision[s * kWidth], kWidth * 4),
              0);
}

TEST_F(DecisionTest, TraceShowsMarkerRows) {
  struct Seen {
    std::vector<uint32_t> rowKinds, rows;
  } seen;
  const auto trace = [](void *user, uint32_t, uint32_t rowKind, const batten_output_view_t *output) {
    static_cast<Seen *>(user)->rowKinds.push_back(rowKind), static_cast<Seen *>(user)->rows.push_back(output->rows);
  };
  ASSERT_EQ(batten_executor_set_trace(executor_.get(), trace, &seen), BATTEN_OK);
  Batch batch = makeBatch({4, 2}, 3);
  batch.markers = {3, 0, 1}, batch.cuMarkers = {0, 2, 3};
  (void)runDecide(executor_.get(), batch);
  EXPECT_EQ(seen.rowKinds, (std::vector<uint32_t>{0, 0, 0, 0, 0, 0, 0, 1, 2, 1}));
  EXPECT_EQ(seen.rows, (std::vector<uint32_t>{6, 6, 6, 6, 6, 6, 6, 2, 3, 2}));
  seen = {};
  (void)runDecide(executor_.get(), makeBatch({4, 2}, 3)); // no markers: the step that counts them is skipped
  EXPECT_EQ(seen.rowKinds, (std::vector<uint32_t>{0, 0, 0, 0, 0, 0, 0, 1, 1}));
}

TEST_F(DecisionTest, SelfTestGivesMarkersAndTypes) {
  batten_self_test_result_t result;
  EXPECT_EQ(batten_executor_self_test(executor_.get(), 0, &result, &error_), BATTEN_OK) << error_.message;
  EXPECT_TRUE(result.passed);
}

} // namespace
} // namespace batten::test
