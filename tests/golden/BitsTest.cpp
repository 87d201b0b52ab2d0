// The bits contract: a sequence gives the same bits alone, in any batch, at any place, in any bucket, on any number of
// threads and on every CPU target (R22). Where it doesn't, the first step that differs is named.
#include "tests/golden/RandomModel.h"
#include "tests/golden/Running.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace batten;
using namespace batten::test;

namespace {

constexpr uint64_t kSeed = 20260;
constexpr int kSequences = 40, kBatches = 100;

/// Rows of one sequence of an output.
std::vector<float> rowsOf(const Rows &rows, const PackedBatch &batch, uint32_t seq) {
  auto [begin, end] = batch.rowsOf(rows.kind, seq);
  return {rows.values.begin() + begin * rows.width, rows.values.begin() + end * rows.width};
}

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Mixed lengths: empty ones, tiles, windows and blocks and one more or less, primes, two past a key block. Markers: none, a
/// few, repeated ones and more than tokens; types of all kinds.
PackedBatch makeSequences(int64_t vocab, uint64_t seed) {
  const int lengths[kSequences] = {0,   1,   2,   3,   5,   7,   11,  13,  14,  15,  16, 17,  0,  28,
                                   29,  31,  32,  33,  47,  53,  63,  64,  65,  79,  97, 0,   96, 1,
                                   127, 128, 129, 191, 255, 256, 257, 511, 512, 513, 0,  1030};
  std::mt19937_64 random(seed);
  PackedBatch out;
  for (int length : lengths) {
    for (int i = 0; i < length; ++i) {
      out.ids.push_back(static_cast<int32_t>(random() % vocab));
      out.types.push_back(static_cast<int32_t>(random() % 2));
    }
    int markers = length ? static_cast<int>(random() % 7) : 0;
    for (int i = 0; i < markers * (markers == 6 ? 8 : 1); ++i)
      out.markers.push_back(static_cast<int32_t>(random() % length));
    out.cu.push_back(out.cu.back() + length);
    out.cuMarkers.push_back(static_cast<int32_t>(out.markers.size()));
    out.seqTypes.push_back(static_cast<int32_t>(random() % 3));
  }
  return out;
}

struct Trace {
  std::vector<std::vector<float>> steps; ///< rows of the sequence after each step
  const PackedBatch *batch;
  uint32_t seq;
};

void recordStep(void *user, uint32_t, uint32_t rowKind, const batten_output_view_t *view) {
  Trace &trace = *static_cast<Trace *>(user);
  auto [begin, end] = trace.batch->rowsOf(rowKind, trace.seq);
  std::vector<float> values;
  for (int64_t r = begin; r < end; ++r) {
    const float *row =
        reinterpret_cast<const float *>(static_cast<const uint8_t *>(view->data) + r * view->strideBytes);
    values.insert(values.end(), row, row + view->width);
  }
  trace.steps.push_back(std::move(values));
}

std::vector<std::vector<float>> trace(TestExecutor &executor, uint32_t lane, const PackedBatch &batch, uint32_t seq,
                                      int bucket) {
  Trace record{{}, &batch, seq};
  EXPECT_EQ(batten_executor_set_trace(executor.get(), recordStep, &record), BATTEN_OK);
  executor.run(lane, batch, bucket);
  EXPECT_EQ(batten_executor_set_trace(executor.get(), nullptr, nullptr), BATTEN_OK);
  return record.steps;
}

/// Label of the first step whose rows of the sequence differ between two runs.
std::string firstDifference(const TestBundle &bundle, uint32_t lane, const std::vector<std::vector<float>> &a,
                            const std::vector<std::vector<float>> &b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (!sameBits(a[i], b[i])) {
      batten_step_info_t step;
      if (batten_bundle_get_step(bundle.get(), lane, 0, static_cast<uint32_t>(i), &step) != BATTEN_OK)
        return "step " + std::to_string(i);
      return "step " + std::to_string(i) + " \"" + std::string(step.label.data, step.label.bytes) + "\"";
    }
  return "no step (the outputs' copies differ)";
}

/// Writes a model and gives its path.
using WriteModel = std::string (*)(const TempDir &);
constexpr int64_t kVocab = 61;

std::string writeBert(const TempDir &dir) {
  RandomBert model;
  model.seed = kSeed;
  model.vocab = kVocab;
  return model.write(dir, "model");
}

/// Windows of 32 keys on either side, rotary positions, markers, types; lanes decide, embed and encode.
std::string writeDecision(const TempDir &dir) {
  RandomDecision model;
  model.seed = kSeed;
  model.vocab = kVocab;
  return model.write(dir, "model");
}

struct BitsCase {
  WriteModel write;
  const char *weights, *math;
};

void PrintTo(const BitsCase &test, std::ostream *os) { *os << test.weights << "/" << test.math; }

/// Bf16 math has one target, which few machines run.
std::vector<BitsCase> dotCases() {
  std::vector<BitsCase> cases{{writeBert, "i8", "i8"}, {writeDecision, "i8", "i8"}};
  if (!runnableTargets("bf16").empty())
    cases.push_back({writeDecision, "bf16", "bf16"});
  return cases;
}

class BitsTest : public testing::TestWithParam<BitsCase> {
protected:
  void SetUp() override {
    std::printf("seed %lu\n", kSeed);
    std::string path = GetParam().write(dir);
    dir.write("buckets.txt",
              "stage tokens seqs markers\ntext 64 8 400\ntext 300 16 800\ntext 1200 48 2400\ntext 6000 64 3200\n");
    blobs = TestBundle::compile(path, dir.path("buckets.txt"), GetParam().weights, GetParam().math);
    ASSERT_TRUE(blobs);
    all = makeSequences(kVocab, kSeed);
    targets = runnableTargets(GetParam().math);
    ASSERT_FALSE(targets.empty());
  }

  PackedBatch alone(uint32_t seq) const {
    PackedBatch batch;
    batch.append(all, seq);
    return batch;
  }

  TempDir dir;
  std::shared_ptr<const std::vector<CompiledBlob>> blobs;
  PackedBatch all;
  std::vector<std::string> targets;
};

TEST_P(BitsTest, R22_AloneInAnyBatchBucketThreadCountAndTarget) {
  std::mt19937_64 random(kSeed + 1);
  auto reference = TestBundle::open(blobs, targets.front());
  ASSERT_TRUE(reference);
  std::vector<std::string> lanes = reference->laneNames();
  TestExecutor single(*reference, 1);
  // want[lane][sequence][output]: each alone, in the smallest bucket, one thread, first target.
  std::vector<std::vector<std::map<std::string, std::vector<float>>>> want(lanes.size());
  for (uint32_t lane = 0; lane < lanes.size(); ++lane)
    for (uint32_t seq = 0; seq < kSequences; ++seq) {
      PackedBatch batch = alone(seq);
      auto &entry = want[lane].emplace_back();
      for (const auto &[name, rows] : single.run(lane, batch))
        entry[name] = rowsOf(rows, batch, 0);
    }

  uint64_t compared = 0;
  int failures = 0;
  for (const std::string &target : targets) {
    auto bundle = TestBundle::open(blobs, target);
    ASSERT_TRUE(bundle);
    for (uint32_t threads : {1u, 2u, 3u}) {
      TestExecutor executor(*bundle, threads);
      for (int round = 0; round < kBatches && failures < 3; ++round) {
        uint32_t lane = static_cast<uint32_t>(random() % lanes.size());
        std::vector<batten_bucket_info_t> buckets = bundle->buckets(lane);
        int bucket = static_cast<int>(round % buckets.size());
        PackedBatch batch;
        std::vector<uint32_t> seqs;
        for (int tries = 0; tries < 60 && seqs.size() < buckets[bucket].seqs; ++tries) {
          uint32_t seq = static_cast<uint32_t>(random() % kSequences);
          if (batch.ids.size() + (all.cu[seq + 1] - all.cu[seq]) > buckets[bucket].tokens)
            continue;
          batch.append(all, seq);
          seqs.push_back(seq);
        }
        ASSERT_FALSE(seqs.empty());
        Outputs got = executor.run(lane, batch, bucket);
        for (const auto &[name, rows] : got)
          for (uint32_t i = 0; i < seqs.size() && failures < 3; ++i) {
            ++compared;
            if (sameBits(rowsOf(rows, batch, i), want[lane][seqs[i]][name]))
              continue;
            ++failures;
            std::string step = firstDifference(*bundle, lane, trace(executor, lane, batch, i, bucket),
                                               trace(single, lane, alone(seqs[i]), 0, -1));
            ADD_FAILURE() << target << ", " << threads << " threads, lane " << lanes[lane] << ", bucket "
                          << buckets[bucket].tokens << "x" << buckets[bucket].seqs << ", output " << name
                          << ", sequence " << seqs[i] << " at place " << i << " of " << seqs.size()
                          << ": first differing " << step;
          }
      }
    }
  }
  std::printf("%lu outputs of sequences compared bit by bit\n", compared);
}

/// A bucket far larger than the batch, and one that it fills to the last token and sequence.
TEST_P(BitsTest, R34_EveryBucketGivesTheSameBits) {
  for (const std::string &target : targets) {
    auto bundle = TestBundle::open(blobs, target);
    ASSERT_TRUE(bundle);
    TestExecutor executor(*bundle, 2);
    PackedBatch batch;
    for (uint32_t seq : {3u, 0u, 8u, 5u, 15u})
      batch.append(all, seq);
    ASSERT_LE(batch.tokens(), 64u);
    Outputs want = executor.run(0, batch, 0);
    for (int bucket = 1; bucket < 4; ++bucket)
      for (const auto &[name, rows] : executor.run(0, batch, bucket))
        EXPECT_TRUE(sameBits(rows.values, want[name].values)) << target << " bucket " << bucket << " " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Bert, BitsTest, testing::Values(BitsCase{writeBert, "f32", "f32"}));
INSTANTIATE_TEST_SUITE_P(Decision, BitsTest, testing::Values(BitsCase{writeDecision, "f32", "f32"}));
INSTANTIATE_TEST_SUITE_P(Dot, BitsTest, testing::ValuesIn(dotCases()));

} // namespace
