// Runs of real bundles with real machine code: right answers, bits, buckets, empties, outputs, errors, memory.
#include "TestModel.h"

#include <gtest/gtest.h>

#include <cstring>
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

} // namespace
} // namespace batten::test
