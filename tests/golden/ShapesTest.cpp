// Shapes at their limits, on a decision model: windows, rotary positions, markers, types (R20, R31 to R33).
#include "tests/golden/RandomModel.h"
#include "tests/golden/Running.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace batten;
using namespace batten::test;

namespace {

constexpr int64_t kVocab = 61;

/// A batch of sequences of these lengths, with random tokens and types and no markers.
PackedBatch batchOf(const std::vector<int> &lengths, uint64_t seed = 7) {
  std::mt19937_64 random(seed);
  PackedBatch out;
  for (int length : lengths) {
    for (int i = 0; i < length; ++i)
      out.ids.push_back(static_cast<int32_t>(random() % kVocab));
    out.cu.push_back(out.cu.back() + length);
    out.cuMarkers.push_back(0);
    out.seqTypes.push_back(static_cast<int32_t>(random() % 3));
  }
  return out;
}

/// Gives sequence `seq`, the last one so far to get any, its markers.
void addMarkers(PackedBatch &batch, uint32_t seq, const std::vector<int32_t> &markers) {
  batch.markers.insert(batch.markers.end(), markers.begin(), markers.end());
  for (uint32_t s = seq + 1; s < batch.cuMarkers.size(); ++s)
    batch.cuMarkers[s] = static_cast<int32_t>(batch.markers.size());
}

std::vector<float> rowsOf(const Rows &rows, const PackedBatch &batch, uint32_t seq) {
  auto [begin, end] = batch.rowsOf(rows.kind, seq);
  return {rows.values.begin() + begin * rows.width, rows.values.begin() + end * rows.width};
}

class ShapesTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    TempDir dir;
    dir.write("buckets.txt", "text 64 16 64\ntext 9000 600 64\n");
    RandomDecision model;
    model.vocab = kVocab;
    blobs = TestBundle::compile(model.write(dir, "model"), dir.path("buckets.txt"));
  }
  static void TearDownTestSuite() { blobs.reset(); }

  void SetUp() override {
    ASSERT_TRUE(blobs);
    bundle = TestBundle::open(blobs, runnableTargets().back());
    ASSERT_TRUE(bundle);
    executor.emplace(*bundle, 2);
  }

  /// Each sequence of the batch gives the bits that it gives alone, in every lane.
  void expectAsAlone(const PackedBatch &batch, const std::vector<uint32_t> &seqs) {
    for (uint32_t lane = 0; lane < bundle->laneNames().size(); ++lane) {
      Outputs together = executor->run(lane, batch);
      for (uint32_t seq : seqs) {
        PackedBatch own;
        own.append(batch, seq);
        for (const auto &[name, rows] : executor->run(lane, own))
          EXPECT_EQ(rowsOf(rows, own, 0), rowsOf(together[name], batch, seq)) << name << " of sequence " << seq;
      }
    }
  }

  batten_status_t check(const PackedBatch &batch, batten_error_t &error) {
    batten_batch_t view = viewOf(batch);
    return batten_run(executor->get(), &view, nullptr, 0, nullptr, &error);
  }

  inline static std::shared_ptr<const std::vector<CompiledBlob>> blobs; // compiled once for all tests
  std::unique_ptr<TestBundle> bundle;
  std::optional<TestExecutor> executor;
};

} // namespace

TEST_F(ShapesTest, R20_MarkersCountFromTheirOwnSequence) {
  PackedBatch batch = batchOf({5, 12, 4});
  addMarkers(batch, 1, {3, 9, 9, 0});
  addMarkers(batch, 2, {3});
  expectAsAlone(batch, {0, 1, 2});
  Outputs got = executor->run(bundle->lane("decide"), batch);
  EXPECT_EQ(got["logits"].rows, 5);
  EXPECT_EQ(got["logits"].values[1], got["logits"].values[2]) << "one marker twice";

  batch.markers.back() = 4; // the sequence's length
  batten_error_t error;
  EXPECT_EQ(check(batch, error), BATTEN_BAD_BATCH);
  EXPECT_STREQ(error.where, "markers");
  EXPECT_EQ(error.index, 4u);
  EXPECT_EQ(error.sequence, 2u);
  EXPECT_EQ(error.found, 4u);
  EXPECT_EQ(error.limit, 4u);
}

TEST_F(ShapesTest, R31_EmptyBatchesAndSequencesGiveTheirRows) {
  for (const std::string &lane : bundle->laneNames())
    for (const auto &[name, rows] : executor->run(bundle->lane(lane), PackedBatch()))
      EXPECT_EQ(rows.rows, 0) << name;
  PackedBatch batch = batchOf({0, 0, 3, 0, 1, 0});
  addMarkers(batch, 2, {2});
  Outputs decided = executor->run(bundle->lane("decide"), batch);
  EXPECT_EQ(decided["act"].rows, 6);
  EXPECT_EQ(decided["logits"].rows, 1);
  Outputs embedded = executor->run(bundle->lane("embed"), batch);
  for (uint32_t seq : {0u, 1u, 3u, 5u})
    for (float value : rowsOf(embedded["pooled"], batch, seq))
      EXPECT_EQ(value, 0.0f) << "sequence " << seq;
  expectAsAlone(batch, {0, 1, 2, 3, 4, 5});
}

TEST_F(ShapesTest, R32_ALongSequenceAmidSinglesAndFarTooMany) {
  std::vector<int> lengths(501, 1);
  lengths[250] = 8192;
  PackedBatch batch = batchOf(lengths);
  addMarkers(batch, 250, {0, 31, 32, 33, 511, 512, 8191});
  expectAsAlone(batch, {0, 249, 250, 251, 500});

  batten_error_t error;
  EXPECT_EQ(check(batchOf(std::vector<int>(80000, 16)), error), BATTEN_NO_BUCKET);
  EXPECT_NE(std::string(error.message).find("1280000"), std::string::npos) << error.message;
  EXPECT_NE(std::string(error.message).find("80000"), std::string::npos) << error.message;
}

TEST_F(ShapesTest, R33_TooLargeIsAStatusAndTheNextRunIsFine) {
  PackedBatch fits = batchOf({20, 7});
  addMarkers(fits, 0, {19, 0});
  Outputs before = executor->run(bundle->lane("decide"), fits);
  batten_error_t error;
  for (const std::vector<int> &lengths : {std::vector<int>{9001}, std::vector<int>(601, 1)})
    EXPECT_EQ(check(batchOf(lengths), error), BATTEN_NO_BUCKET) << lengths.size();
  PackedBatch marked = batchOf({2});
  addMarkers(marked, 0, std::vector<int32_t>(65, 1));
  EXPECT_EQ(check(marked, error), BATTEN_NO_BUCKET);
  PackedBatch full = batchOf({9000}); // no position table: a sequence may fill the bucket
  EXPECT_EQ(check(full, error), BATTEN_OK) << error.message;
  Outputs after = executor->run(bundle->lane("decide"), fits);
  for (const auto &[name, rows] : before)
    EXPECT_EQ(rows.values, after[name].values) << name;
}
