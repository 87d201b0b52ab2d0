// The batch check through the C API: every array, the first and last place, negative and too large, and the numbers that an
// error carries. The batch of each test is right but for one value.
#include "TestModel.h"

#include "BatchCheck.h"

#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <functional>

namespace batten::test {
namespace {

class BatchCheckTest : public ::testing::Test {
protected:
  BatchCheckTest() : blobs_(serialize(spec())) {
    bundle_ = openBlobs(blobs_, &error_);
    EXPECT_TRUE(bundle_) << error_.message;
    executor_ = makeExecutor(bundle_.get());
    good_ = makeBatch({3, 0, 5, 2}, 1);
    good_.markers = {0, 2, 4, 4, 0, 1}, good_.cuMarkers = {0, 2, 2, 4, 6};
    good_.seqTypes = {0, 1, 2, 0};
  }
  static BundleSpec spec() {
    BundleSpec spec = modelSpec();
    for (batten_lane_t &lane : spec.lanes) {
      lane.inputs |= BATTEN_INPUT_MARKERS | BATTEN_INPUT_SEQ_TYPES;
      lane.seqTypeCount = 3;
      lane.maxSeqTokens = 150;
    }
    return spec;
  }
  /// Both the run and the check without a run must refuse, with the same details; then a right batch still runs.
  void expectRefused(const Batch &batch, const char *array, uint64_t index, int64_t found, uint64_t limit,
                     uint64_t sequence) {
    expectRefused(batch.view(), array, index, found, limit, sequence);
  }
  void expectRefused(const batten_batch_t &view, const char *array, uint64_t index, int64_t found, uint64_t limit,
                     uint64_t sequence) {
    for (int i = 0; i < 2; ++i) {
      uint32_t bucket = 77;
      const batten_status_t status = i ? batten_check_batch(executor_.get(), 0, &view, &bucket, &error_)
                                       : batten_run(executor_.get(), &view, nullptr, 0, &bucket, &error_);
      EXPECT_EQ(status, BATTEN_BAD_BATCH) << error_.message;
      EXPECT_EQ(error_.status, BATTEN_BAD_BATCH);
      EXPECT_STREQ(error_.where, array) << error_.message;
      EXPECT_EQ(error_.index, index) << error_.message;
      EXPECT_EQ(static_cast<int64_t>(error_.found), found) << error_.message;
      EXPECT_EQ(error_.limit, limit) << error_.message;
      EXPECT_EQ(error_.sequence, sequence) << error_.message;
      EXPECT_EQ(bucket, 77u);
    }
    const batten_batch_t right = good_.view();
    EXPECT_EQ(batten_run(executor_.get(), &right, nullptr, 0, nullptr, &error_), BATTEN_OK) << error_.message;
  }

  Blobs blobs_;
  batten_error_t error_ = {};
  BundlePtr bundle_;
  ExecutorPtr executor_;
  Batch good_;
};

TEST_F(BatchCheckTest, AcceptsTheRightBatch) {
  const batten_batch_t view = good_.view();
  EXPECT_EQ(batten_run(executor_.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK) << error_.message;
  EXPECT_EQ(error_.status, BATTEN_OK);
  EXPECT_STREQ(error_.message, "");
}

TEST_F(BatchCheckTest, RefusesTokenIds) {
  struct Case {
    size_t at;
    int32_t value;
    uint64_t sequence;
  };
  for (const Case &c : {Case{0, 50, 0}, {2, -1, 0}, {3, INT32_MAX, 2}, {7, INT32_MIN, 2}, {8, 50, 3}, {9, 51, 3}}) {
    Batch batch = good_;
    batch.ids[c.at] = c.value;
    expectRefused(batch, "token_ids", c.at, c.value, 50, c.sequence);
  }
  Batch last = good_;
  last.ids[4] = 49; // the last row of the table
  const batten_batch_t view = last.view();
  EXPECT_EQ(batten_run(executor_.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK);
}

TEST_F(BatchCheckTest, NamesTheFirstOfSeveralWrongIds) {
  Batch batch = good_;
  batch.ids[9] = -5, batch.ids[4] = 60, batch.ids[6] = 70;
  expectRefused(batch, "token_ids", 4, 60, 50, 2);
  EXPECT_EQ(batten_run(executor_.get(), nullptr, nullptr, 0, nullptr, &error_), BATTEN_BAD_ARGUMENT);
}

TEST_F(BatchCheckTest, RefusesTokenTypes) {
  for (int32_t value : {2, -1}) {
    Batch batch = good_;
    batch.types[5] = value;
    expectRefused(batch, "token_types", 5, value, 2, 2);
  }
}

TEST_F(BatchCheckTest, RefusesSequenceTypes) {
  for (int32_t value : {3, -1}) {
    Batch batch = good_;
    batch.seqTypes[3] = value;
    expectRefused(batch, "seq_types", 3, value, 3, 3);
  }
}

TEST_F(BatchCheckTest, RefusesPrefixesThatDoNotStartAtZeroFallOrMissTheTotal) {
  Batch batch = good_; // cu_seqlens 0 3 3 8 10
  batch.cuSeqlens[0] = 1;
  expectRefused(batch, "cu_seqlens", 0, 1, 0, 0);
  batch = good_, batch.cuSeqlens[0] = -1;
  expectRefused(batch, "cu_seqlens", 0, -1, 0, 0);
  batch = good_, batch.cuSeqlens[2] = 2;
  expectRefused(batch, "cu_seqlens", 2, 2, 3, 1);
  batch = good_, batch.cuSeqlens[3] = -8;
  expectRefused(batch, "cu_seqlens", 3, -8, 3, 2);
  batch = good_, batch.cuSeqlens[3] = 11; // falls afterwards, but is past the total before that
  expectRefused(batch, "cu_seqlens", 3, 11, 10, 2);
  batch = good_, batch.cuSeqlens[4] = 9;
  expectRefused(batch, "cu_seqlens", 4, 9, 10, 3);
  batch = good_, batch.cuSeqlens[4] = INT32_MAX;
  expectRefused(batch, "cu_seqlens", 4, INT32_MAX, 10, 3);
  batch = good_, batch.cuMarkers[2] = 1;
  expectRefused(batch, "cu_markers", 2, 1, 2, 1);
  batch = good_, batch.cuMarkers[4] = 5;
  expectRefused(batch, "cu_markers", 4, 5, 6, 3);
  batch = good_, batch.cuMarkers[0] = 1;
  expectRefused(batch, "cu_markers", 0, 1, 0, 0);
  batch = good_, batch.cuMarkers[4] = -6;
  expectRefused(batch, "cu_markers", 4, -6, 4, 3);
  batch = good_, batch.markers = {0}, batch.cuMarkers = {0, 2, 2, 2, 1}; // past the total before it falls
  expectRefused(batch, "cu_markers", 1, 2, 1, 0);
}

TEST_F(BatchCheckTest, RefusesSequencesLongerThanTheModel) {
  expectRefused(makeBatch({2, 151}, 1), "cu_seqlens", 2, 151, 150, 1);
  const Batch longest = makeBatch({150, 50}, 1);
  const batten_batch_t view = longest.view();
  EXPECT_EQ(batten_run(executor_.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK);
}

TEST_F(BatchCheckTest, RefusesMarkersOutsideTheirOwnSequence) {
  Batch batch = good_;
  batch.markers[1] = 3; // sequence 0 has 3 tokens
  expectRefused(batch, "markers", 1, 3, 3, 0);
  batch = good_, batch.markers[4] = -1;
  expectRefused(batch, "markers", 4, -1, 2, 3);
  batch = good_, batch.markers[5] = 2;
  expectRefused(batch, "markers", 5, 2, 2, 3);
  batch = good_, batch.cuMarkers = {0, 2, 3, 4, 6}; // the empty sequence gets one
  expectRefused(batch, "markers", 2, 4, 0, 1);
}

TEST_F(BatchCheckTest, RefusesArraysThatAreMissing) {
  batten_batch_t view = good_.view();
  view.tokenIds = nullptr;
  expectRefused(view, "token_ids", 0, 0, 10, 0);
  view = good_.view(), view.cuSeqlens = nullptr;
  expectRefused(view, "cu_seqlens", 0, 0, 5, 0);
  view = good_.view(), view.markers = nullptr;
  expectRefused(view, "markers", 0, 0, 6, 0);
  view = good_.view(), view.cuMarkers = nullptr;
  expectRefused(view, "cu_markers", 0, 0, 5, 0);
}

TEST_F(BatchCheckTest, RefusesTokensWithoutSequences) {
  batten_batch_t view = good_.view();
  view.seqCount = 0, view.markerCount = 0, view.cuMarkers = nullptr;
  expectRefused(view, "cu_seqlens", 0, 0, 10, 0);
}

TEST_F(BatchCheckTest, IgnoresWhatTheLaneDoesNotRead) {
  BundleSpec spec = modelSpec();
  for (batten_lane_t &lane : spec.lanes)
    lane.inputs = 0, lane.typeCount = 0;
  const Blobs blobs(serialize(spec));
  const BundlePtr bundle = openBlobs(blobs, &error_);
  ASSERT_TRUE(bundle) << error_.message;
  const ExecutorPtr executor = makeExecutor(bundle.get());
  Batch batch = makeBatch({4}, 1);
  batch.types.assign(4, 99), batch.seqTypes = {-4};
  const batten_batch_t view = batch.view();
  EXPECT_EQ(batten_run(executor.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK) << error_.message;
}

TEST_F(BatchCheckTest, DerivesPositionsSequencesTasksAndCost) {
  using namespace rt;
  const Batch batch = makeBatch({3, 0, 64, 65}, 1);
  const uint64_t bytes = batchTableBytes(132, 4, 6);
  std::vector<uint8_t> memory(bytes + 64);
  uint8_t *aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  const BatchTables tables = placeBatchTables(aligned, 132, 4, 6);
  EXPECT_LE(reinterpret_cast<uint8_t *>(tables.cost + 5), aligned + bytes);
  batten_lane_t lane = {};
  lane.idCount = kIds, lane.typeCount = kTypes;
  batten_kernel_batch_t out = {};
  Batch marked = batch;
  marked.markers = {2, 2, 0, 63, 0, 64}, marked.cuMarkers = {0, 2, 2, 4, 6};
  ASSERT_EQ(checkAndFillBatch(marked.view(), lane, tables, out, error_), BATTEN_OK) << error_.message;
  const uint32_t tasks[] = {0, 1, 1, 2, 4}, rows[] = {2, 2, 3, 66, 67, 131};
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(out.taskStart[i], tasks[i]);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(out.markerRow[i], rows[i]);
  EXPECT_EQ(tables.cost[4], 9u + 64 * 64 + 65 * 65);
  for (uint32_t s = 0; s < 4; ++s)
    for (int t = batch.cuSeqlens[s]; t < batch.cuSeqlens[s + 1]; ++t) {
      EXPECT_EQ(out.seqOf[t], s);
      EXPECT_EQ(out.position[t], static_cast<uint32_t>(t - batch.cuSeqlens[s]));
    }
  EXPECT_EQ(out.rows[BATTEN_ROWS_MARKERS], 6u);
  EXPECT_EQ(out.rows[BATTEN_ROWS_ONE], 1u);
  EXPECT_EQ(out.seqTypes, nullptr);
}

TEST_F(BatchCheckTest, ManyShortSequences) {
  // 80,000 sequences of 16 tokens, then one token more than the bucket.
  BundleSpec spec = modelSpec({{1280000, 80000, 0}});
  const Blobs blobs(serialize(spec));
  const BundlePtr bundle = openBlobs(blobs, &error_);
  ASSERT_TRUE(bundle) << error_.message;
  const ExecutorPtr executor = makeExecutor(bundle.get());
  const Batch batch = makeBatch(std::vector<uint32_t>(80000, 16), 1);
  const batten_batch_t view = batch.view();
  batten_output_view_t output = {};
  ASSERT_EQ(batten_run(executor.get(), &view, &output, 1, nullptr, &error_), BATTEN_OK) << error_.message;
  const Outputs last = reference(sequenceOf(batch, 79999));
  EXPECT_EQ(
      std::memcmp(static_cast<const char *>(output.data) + 79999 * output.strideBytes, last.pooled.data(), kWidth * 4),
      0);
  const Batch more = makeBatch(std::vector<uint32_t>(80001, 15), 1);
  const batten_batch_t moreView = more.view();
  EXPECT_EQ(batten_run(executor.get(), &moreView, nullptr, 0, nullptr, &error_), BATTEN_NO_BUCKET);
  EXPECT_EQ(error_.found, 80001u);
}

} // namespace
} // namespace batten::test
