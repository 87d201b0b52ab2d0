// Runs of real bundles with real machine code: right answers, bits, buckets, empties, outputs, self-test, memory.
#include "TestModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

namespace batten::test {
namespace {

class ExecutorTest : public ::testing::Test {
protected:
  ExecutorTest() : blobs_(serialize(modelSpec())) {
    bundle_ = openBlobs(blobs_, &error_);
    EXPECT_TRUE(bundle_) << error_.message;
    executor_ = makeExecutor(bundle_.get());
  }
  /// Runs lane "embed" with views.
  batten_status_t runEmbed(const batten_batch_t &batch, batten_output_view_t *view, uint32_t *bucket = nullptr) {
    return batten_run(executor_.get(), &batch, view, 1, bucket, &error_);
  }

  Blobs blobs_;
  batten_error_t error_ = {};
  BundlePtr bundle_;
  ExecutorPtr executor_;
};

TEST_F(ExecutorTest, MatchesPlainLoops) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const Batch batch = makeBatch({3, 0, 17, 1, seed, 70}, seed);
    const Outputs expected = reference(batch), found = runModel(executor_.get(), batch);
    EXPECT_TRUE(sameBits(found.hidden, expected.hidden)) << "seed " << seed;
    EXPECT_TRUE(sameBits(found.pooled, expected.pooled)) << "seed " << seed;
  }
}

TEST_F(ExecutorTest, SequenceHasTheSameBitsAloneInAnyBatchBucketAndThreadCount) {
  std::mt19937 random(11);
  std::vector<uint32_t> lengths;
  for (int i = 0; i < 12; ++i)
    lengths.push_back(i % 5 == 3 ? 0 : random() % 8);
  const Batch all = makeBatch(lengths, 11);
  std::vector<Outputs> alone;
  for (uint32_t s = 0; s < lengths.size(); ++s)
    alone.push_back(runModel(executor_.get(), sequenceOf(all, s)));
  for (uint32_t threads = 1; threads <= 3; ++threads) {
    const PoolPtr pool = makePool(threads);
    const ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
    for (int round = 0; round < 40; ++round) {
      // A batch of sequences in a random order.
      std::vector<uint32_t> order;
      Batch batch;
      batch.cuSeqlens = {0};
      for (int i = 0, count = 1 + static_cast<int>(random() % 8); i < count; ++i) {
        const uint32_t s = random() % lengths.size();
        const Batch part = sequenceOf(all, s);
        if (batch.ids.size() + part.ids.size() > 32)
          continue;
        order.push_back(s);
        batch.ids.insert(batch.ids.end(), part.ids.begin(), part.ids.end());
        batch.types.insert(batch.types.end(), part.types.begin(), part.types.end());
        batch.cuSeqlens.push_back(static_cast<int32_t>(batch.ids.size()));
      }
      for (uint32_t bucket : {1u, 2u}) {
        const Outputs found = runModel(executor.get(), batch, bucket);
        for (size_t i = 0; i < order.size(); ++i) {
          const Outputs &wanted = alone[order[i]];
          const auto first = found.hidden.begin() + batch.cuSeqlens[i] * kWidth,
                     last = found.hidden.begin() + batch.cuSeqlens[i + 1] * kWidth;
          EXPECT_TRUE(sameBits(std::vector<float>(first, last), wanted.hidden))
              << "threads " << threads << " bucket " << bucket << " sequence " << order[i];
          const auto row = found.pooled.begin() + static_cast<long>(i) * kWidth;
          EXPECT_TRUE(sameBits(std::vector<float>(row, row + kWidth), wanted.pooled))
              << "threads " << threads << " bucket " << bucket << " sequence " << order[i];
        }
      }
    }
  }
}

TEST_F(ExecutorTest, LongSequencesSplitOverThreadsGiveTheSameBits) {
  const Batch batch = makeBatch({130, 1, 0, 60}, 5);
  const Outputs one = runModel(executor_.get(), batch);
  for (uint32_t threads : {2u, 3u, 7u}) {
    const PoolPtr pool = makePool(threads);
    const ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
    for (int round = 0; round < 20; ++round) {
      const Outputs many = runModel(executor.get(), batch);
      ASSERT_TRUE(sameBits(many.hidden, one.hidden)) << threads;
      ASSERT_TRUE(sameBits(many.pooled, one.pooled)) << threads;
    }
  }
}

TEST_F(ExecutorTest, TakesTheSmallestBucketThatHoldsTheBatch) {
  // Buckets 8x4, 32x8, 200x64: b - 1, b, b + 1 tokens and sequences.
  struct Case {
    std::vector<uint32_t> lengths;
    uint32_t bucket;
  };
  const Case cases[] = {{{7}, 0},
                        {{8}, 0},
                        {{9}, 1},
                        {{31}, 1},
                        {{32}, 1},
                        {{33}, 2},
                        {{199}, 2},
                        {{200}, 2},
                        {{1, 1, 1}, 0},
                        {{1, 1, 1, 1}, 0},
                        {{1, 1, 1, 1, 1}, 1},
                        {std::vector<uint32_t>(8, 1), 1},
                        {std::vector<uint32_t>(9, 0), 2},
                        {std::vector<uint32_t>(64, 1), 2}};
  for (const Case &c : cases) {
    const Batch batch = makeBatch(c.lengths, 3);
    const batten_batch_t view = batch.view();
    uint32_t bucket = 99, checked = 99;
    EXPECT_EQ(batten_check_batch(executor_.get(), 0, &view, &checked, &error_), BATTEN_OK) << error_.message;
    EXPECT_EQ(batten_run(executor_.get(), &view, nullptr, 0, &bucket, &error_), BATTEN_OK) << error_.message;
    EXPECT_EQ(bucket, c.bucket);
    EXPECT_EQ(checked, c.bucket);
  }
}

TEST_F(ExecutorTest, RefusesWhatNoBucketHoldsWithNumbersAndStaysUsable) {
  const Batch tokens = makeBatch({150, 51}, 3), seqs = makeBatch(std::vector<uint32_t>(65, 1), 3);
  batten_output_view_t view = {};
  EXPECT_EQ(runEmbed(tokens.view(), &view), BATTEN_NO_BUCKET);
  EXPECT_STREQ(error_.where, "tokens");
  EXPECT_STREQ(error_.section, "text");
  EXPECT_EQ(error_.found, 201u);
  EXPECT_EQ(error_.limit, 200u);
  EXPECT_EQ(runEmbed(seqs.view(), &view), BATTEN_NO_BUCKET);
  EXPECT_STREQ(error_.where, "seqs");
  EXPECT_EQ(error_.found, 65u);
  EXPECT_EQ(error_.limit, 64u);
  Batch markers = makeBatch({20}, 3);
  markers.markers.assign(17, 0), markers.cuMarkers = {0, 17};
  EXPECT_EQ(runEmbed(markers.view(), &view), BATTEN_NO_BUCKET);
  EXPECT_STREQ(error_.where, "markers");
  EXPECT_EQ(error_.found, 17u);
  EXPECT_EQ(error_.limit, 16u);
  EXPECT_EQ(runEmbed(makeBatch({200}, 3).view(), &view), BATTEN_OK);

  const Batch small = makeBatch({9}, 3);
  const batten_batch_t batch = small.view();
  EXPECT_EQ(batten_run_in_bucket(executor_.get(), 0, 0, &batch, nullptr, 0, &error_), BATTEN_NO_BUCKET);
  EXPECT_EQ(error_.limit, 8u);
  EXPECT_EQ(batten_run_in_bucket(executor_.get(), 0, 2, &batch, nullptr, 0, &error_), BATTEN_OK);
  EXPECT_EQ(batten_run_in_bucket(executor_.get(), 0, 3, &batch, nullptr, 0, &error_), BATTEN_BAD_ARGUMENT);
}

TEST_F(ExecutorTest, EmptyBatchYieldsNothing) {
  batten_batch_t nothing = BATTEN_BATCH_INIT;
  const int32_t zero = 0;
  for (const int32_t *cu : {static_cast<const int32_t *>(nullptr), &zero}) {
    nothing.cuSeqlens = cu;
    batten_output_view_t views[2] = {};
    uint32_t bucket = 9;
    EXPECT_EQ(batten_run_lane(executor_.get(), 1, &nothing, views, 2, &bucket, &error_), BATTEN_OK) << error_.message;
    EXPECT_EQ(bucket, 0u);
    EXPECT_EQ(views[0].rows, 0u);
    EXPECT_EQ(views[1].rows, 0u);
    EXPECT_EQ(views[1].width, kWidth);
  }
}

TEST_F(ExecutorTest, EmptySequencesHaveARowEach) {
  for (const std::vector<uint32_t> &lengths : {std::vector<uint32_t>{0}, {0, 0, 0}, {4, 0}, {0, 4}, {0, 1, 0, 1}}) {
    const Batch batch = makeBatch(lengths, 9);
    const Outputs found = runModel(executor_.get(), batch), expected = reference(batch);
    EXPECT_TRUE(sameBits(found.pooled, expected.pooled));
    EXPECT_EQ(found.pooled.size(), lengths.size() * kWidth);
  }
}

TEST_F(ExecutorTest, TypesThatAreNotGivenAreZero) {
  Batch batch = makeBatch({5, 3}, 9);
  batch.types.assign(8, 0);
  const Outputs zeros = runModel(executor_.get(), batch);
  batch.types.clear();
  EXPECT_TRUE(sameBits(runModel(executor_.get(), batch).hidden, zeros.hidden));
}

TEST_F(ExecutorTest, OutputsAreViewsOrCopies) {
  const Batch batch = makeBatch({5, 3}, 9);
  const Outputs expected = reference(batch);
  const batten_batch_t view = batch.view();
  batten_output_view_t outputs[2] = {};
  std::vector<float> copy(2 * kWidth + 1, -7);
  outputs[1].copyTo = copy.data(), outputs[1].copyBytes = 2 * kWidth * 4;
  ASSERT_EQ(batten_run_lane(executor_.get(), 1, &view, outputs, 2, nullptr, &error_), BATTEN_OK);
  EXPECT_EQ(outputs[0].strideBytes, 128u);
  for (uint32_t r = 0; r < 8; ++r)
    EXPECT_EQ(std::memcmp(static_cast<const char *>(outputs[0].data) + r * outputs[0].strideBytes,
                          &expected.hidden[r * kWidth], kWidth * 4),
              0);
  EXPECT_EQ(outputs[1].data, copy.data());
  EXPECT_EQ(outputs[1].strideBytes, kWidth * 4u);
  EXPECT_EQ(copy.back(), -7); // nothing past the rows
  copy.pop_back();
  EXPECT_TRUE(sameBits(copy, expected.pooled));

  outputs[1].copyBytes = 2 * kWidth * 4 - 1;
  EXPECT_EQ(batten_run_lane(executor_.get(), 1, &view, outputs, 2, nullptr, &error_), BATTEN_BAD_ARGUMENT);
  EXPECT_EQ(error_.index, 1u);
  EXPECT_EQ(error_.found, 159u);
  EXPECT_EQ(error_.limit, 160u);
  EXPECT_EQ(batten_run_lane(executor_.get(), 1, &view, outputs, 1, nullptr, &error_), BATTEN_BAD_ARGUMENT);
  EXPECT_EQ(batten_run_lane(executor_.get(), 1, &view, nullptr, 2, nullptr, &error_), BATTEN_BAD_ARGUMENT);
  EXPECT_EQ(batten_run_lane(executor_.get(), 2, &view, nullptr, 0, nullptr, &error_), BATTEN_BAD_ARGUMENT);
}

TEST_F(ExecutorTest, RefusesStructsWithoutTheirSizeAndNulls) {
  batten_batch_t batch = makeBatch({1}, 1).view();
  batch.structBytes = 0;
  EXPECT_EQ(batten_run(executor_.get(), &batch, nullptr, 0, nullptr, &error_), BATTEN_BAD_ARGUMENT);
  EXPECT_EQ(batten_run(nullptr, &batch, nullptr, 0, nullptr, nullptr), BATTEN_BAD_ARGUMENT);
  EXPECT_EQ(batten_run(executor_.get(), nullptr, nullptr, 0, nullptr, nullptr), BATTEN_BAD_ARGUMENT);
  batten_executor_t *executor = nullptr;
  EXPECT_EQ(batten_executor_create(nullptr, nullptr, &executor, nullptr), BATTEN_BAD_ARGUMENT);
}

TEST_F(ExecutorTest, SecondRunAtTheSameTimeIsBusyOrRight) {
  const Batch batch = makeBatch({100, 60, 40}, 2);
  const Outputs expected = reference(batch);
  std::atomic<int> busy{0}, done{0}, wrong{0};
  auto body = [&] {
    const batten_batch_t view = batch.view();
    std::vector<float> copy(3 * kWidth);
    for (int i = 0; i < 200; ++i) {
      batten_output_view_t output = {};
      output.copyTo = copy.data(), output.copyBytes = copy.size() * 4;
      batten_error_t error;
      const batten_status_t status = batten_run(executor_.get(), &view, &output, 1, nullptr, &error);
      if (status == BATTEN_OK) {
        ++done;
        wrong += !sameBits(copy, expected.pooled);
      } else {
        ++busy;
        wrong += status != BATTEN_BUSY || error.status != BATTEN_BUSY;
      }
    }
  };
  std::thread one(body), two(body), three(body);
  one.join(), two.join(), three.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(done, 0);
  EXPECT_GT(busy, 0); // three threads, 600 runs of some 100 microseconds each
}

TEST_F(ExecutorTest, SelfTestComparesDigests) {
  batten_self_test_result_t result;
  EXPECT_EQ(batten_executor_self_test(executor_.get(), 0, &result, &error_), BATTEN_OK) << error_.message;
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(std::memcmp(result.expected, result.found, 32), 0);
  EXPECT_EQ(batten_executor_self_test(executor_.get(), 1, &result, &error_), BATTEN_BAD_ARGUMENT);

  BundleSpec spec = modelSpec();
  spec.selfTests[0].digest[3] ^= 1;
  const Blobs blobs(serialize(spec));
  const BundlePtr bundle = openBlobs(blobs);
  const ExecutorPtr executor = makeExecutor(bundle.get());
  EXPECT_EQ(batten_executor_self_test(executor.get(), 0, &result, &error_), BATTEN_CORRUPT);
  EXPECT_FALSE(result.passed);
}

TEST_F(ExecutorTest, ProfileCountsRunsAndTimes) {
  const Batch batch = makeBatch({100}, 2);
  const batten_batch_t view = batch.view();
  uint64_t time = 0, runs = 0;
  ASSERT_EQ(batten_run(executor_.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK);
  EXPECT_EQ(batten_executor_get_step_time(executor_.get(), 0, 2, 3, &time, &runs), BATTEN_OK);
  EXPECT_EQ(runs, 0u);
  for (const bool pooled : {false, true}) {
    const PoolPtr pool = makePool(pooled ? 2 : 1);
    const ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
    ASSERT_EQ(batten_executor_set_profile(executor.get(), true), BATTEN_OK);
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(batten_run(executor.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK);
    for (uint32_t step = 0; step < 8; ++step) {
      EXPECT_EQ(batten_executor_get_step_time(executor.get(), 0, 2, step, &time, &runs), BATTEN_OK);
      EXPECT_EQ(runs, 3u);
      EXPECT_GT(time, 0u) << step;
    }
    EXPECT_EQ(batten_executor_get_step_time(executor.get(), 0, 2, 8, &time, &runs), BATTEN_BAD_ARGUMENT);
    EXPECT_EQ(batten_executor_get_step_time(executor.get(), 0, 1, 0, &time, &runs), BATTEN_OK);
    EXPECT_EQ(time + runs, 0u); // the other buckets did nothing

    // Off: what was measured is gone, and nothing is added. On again: from 0.
    for (const bool on : {false, true}) {
      ASSERT_EQ(batten_executor_set_profile(executor.get(), on), BATTEN_OK);
      EXPECT_EQ(batten_executor_get_step_time(executor.get(), 0, 2, 3, &time, &runs), BATTEN_OK);
      EXPECT_EQ(time + runs, 0u);
      ASSERT_EQ(batten_run(executor.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK);
      EXPECT_EQ(batten_executor_get_step_time(executor.get(), 0, 2, 3, &time, &runs), BATTEN_OK);
      EXPECT_EQ(runs, on ? 1u : 0u);
      EXPECT_EQ(time > 0, on);
    }
  }
}

TEST_F(ExecutorTest, TraceShowsWhatEachStepWrote) {
  struct Seen {
    std::vector<uint32_t> steps, rowKinds;
    std::vector<float> norm;
  };
  const Batch batch = makeBatch({60, 0, 40}, 2);
  const batten_batch_t view = batch.view();
  std::vector<float> norms[2];
  for (const bool pooled : {false, true}) {
    const PoolPtr pool = makePool(pooled ? 3 : 1);
    const ExecutorPtr executor = makeExecutor(bundle_.get(), pool.get());
    Seen seen;
    const auto trace = [](void *user, uint32_t step, uint32_t rowKind, const batten_output_view_t *output) {
      Seen &into = *static_cast<Seen *>(user);
      into.steps.push_back(step), into.rowKinds.push_back(rowKind);
      if (step == 5) // overwritten in place by step 6
        for (uint32_t r = 0; r < output->rows; ++r)
          for (uint32_t c = 0; c < output->width; ++c)
            into.norm.push_back(
                reinterpret_cast<const float *>(static_cast<const char *>(output->data) + r * output->strideBytes)[c]);
    };
    ASSERT_EQ(batten_executor_set_trace(executor.get(), trace, &seen), BATTEN_OK);
    ASSERT_EQ(batten_run(executor.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK);
    EXPECT_EQ(seen.steps, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(seen.rowKinds, (std::vector<uint32_t>{0, 0, 0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(seen.norm.size(), 100u * kWidth);
    norms[pooled] = seen.norm;
    ASSERT_EQ(batten_executor_set_trace(executor.get(), nullptr, nullptr), BATTEN_OK);
    ASSERT_EQ(batten_run(executor.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK);
    EXPECT_EQ(seen.steps.size(), 8u);
  }
  EXPECT_TRUE(sameBits(norms[0], norms[1]));
}

TEST_F(ExecutorTest, RestoresTheFloatingPointState) {
#if defined(__x86_64__)
  const Batch batch = makeBatch({20}, 2);
  const batten_batch_t view = batch.view();
  const unsigned before = __builtin_ia32_stmxcsr();
  for (unsigned state : {0x1F80u, 0x5F80u, 0x7FBFu, 0x1FBFu}) { // default; rounding modes; sticky flags
    __builtin_ia32_ldmxcsr(state);
    const batten_status_t status = batten_run(executor_.get(), &view, nullptr, 0, nullptr, nullptr);
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    EXPECT_EQ(status, BATTEN_OK);
    EXPECT_EQ(after, state);
  }
#else
  GTEST_SKIP() << "MXCSR is x86's";
#endif
}

TEST_F(ExecutorTest, ResultsDoNotDependOnTheCallersRounding) {
#if defined(__x86_64__)
  const Batch batch = makeBatch({20, 5}, 2);
  const Outputs expected = reference(batch);
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(0x7F80u); // towards zero
  const Outputs found = runModel(executor_.get(), batch);
  __builtin_ia32_ldmxcsr(before);
  EXPECT_TRUE(sameBits(found.hidden, expected.hidden));
#else
  GTEST_SKIP() << "MXCSR is x86's";
#endif
}

TEST_F(ExecutorTest, PrepareFaultsAPlanIn) {
  TempDir directory;
  writeFiles(serialize(modelSpec()), directory / "m.batten");
  const BundlePtr bundle = openDirectory(directory / "m.batten");
  const ExecutorPtr executor = makeExecutor(bundle.get());
  EXPECT_EQ(batten_executor_prepare(executor.get(), 0, 2, &error_), BATTEN_OK) << error_.message;
  batten_memory_t memory;
  ASSERT_EQ(batten_executor_get_memory(executor.get(), &memory), BATTEN_OK);
  EXPECT_EQ(memory.imageResident, memory.imageMapped);
  EXPECT_GE(memory.weightsResident, memory.weightsMapped - 4096); // all but the last head page
  EXPECT_EQ(batten_executor_prepare(executor.get(), 0, 3, &error_), BATTEN_BAD_ARGUMENT);
}

// Rss of the process in bytes, from the sum of its mappings.
uint64_t residentBytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word)
    if (word == "Rss:") {
      uint64_t kilobytes = 0;
      file >> kilobytes;
      return kilobytes * 1024;
    }
  return 0;
}

TEST_F(ExecutorTest, MemoryAgreesWithTheProcess) {
  if (kSanitized)
    GTEST_SKIP() << "a sanitizer's own memory grows";
  // An arena of some 100 MB, so that the allocator's own pages are noise.
  TempDir directory;
  writeFiles(serialize(modelSpec({{8, 4, 0}, {160000, 64, 0}})), directory / "m.batten");
  const BundlePtr bundle = openDirectory(directory / "m.batten");
  ASSERT_TRUE(bundle);
  const uint64_t before = residentBytes();
  if (before == 0)
    GTEST_SKIP() << "no smaps_rollup here";
  const ExecutorPtr executor = makeExecutor(bundle.get());
  const uint64_t created = residentBytes() - before;
  batten_memory_t memory;
  ASSERT_EQ(batten_executor_get_memory(executor.get(), &memory), BATTEN_OK);
  const double told = static_cast<double>(memory.arena + memory.batchTables + memory.scratch);
  EXPECT_GE(memory.arena, 160000u * (2 * 128 + 2 * 192));
  EXPECT_NEAR(static_cast<double>(created), told, told * 0.03);

  batten_plan_info_t plan;
  ASSERT_EQ(batten_bundle_get_plan(bundle.get(), 0, 1, &plan), BATTEN_OK);
  EXPECT_LT(memory.arena - plan.arenaBytes, 4096u);
  EXPECT_LE(memory.weightsResident, memory.weightsMapped + 2 * 4096); // whole pages of two packs
}

TEST_F(ExecutorTest, ResidentMemoryStaysFlatOverRandomRuns) {
  if (kSanitized)
    GTEST_SKIP() << "a sanitizer's own memory grows";
  std::mt19937 random(3);
  auto once = [&] {
    std::vector<uint32_t> lengths;
    for (uint32_t left = random() % 200, count = random() % 32; count-- > 0;) {
      lengths.push_back(random() % (left + 1));
      left -= lengths.back();
    }
    const Batch batch = makeBatch(lengths, random());
    const batten_batch_t view = batch.view();
    ASSERT_EQ(batten_run(executor_.get(), &view, nullptr, 0, nullptr, &error_), BATTEN_OK) << error_.message;
  };
  for (int i = 0; i < 50; ++i)
    once();
  const uint64_t before = residentBytes();
  for (int i = 0; i < 2000; ++i)
    once();
  EXPECT_LE(residentBytes(), before + (1 << 20));
}

} // namespace
} // namespace batten::test
