// Counts of `batten inspect` and `batten bench`: the pairs of attention, with and without a window.
#include "tools/batten/Batches.h"

#include <gtest/gtest.h>

#include <cstdint>

using namespace batten::tools;

TEST(BatchesTest, PairsOfASequenceAreTheKeysThatEachQuerySees) {
  for (uint64_t length = 0; length < 12; ++length)
    for (uint32_t pairWindow = 0; pairWindow < 16; ++pairWindow) {
      uint64_t pairs = 0;
      for (uint64_t query = 0; query < length; ++query)
        for (uint64_t key = 0; key < length; ++key)
          pairs += pairWindow == 0 || (query < key ? key - query : query - key) < pairWindow;
      EXPECT_EQ(pairsOf(length, pairWindow), pairs) << length << " tokens, window " << pairWindow;
    }
}

TEST(BatchesTest, PairsOfABatchAreThoseOfItsSequences) {
  Batch batch;
  batch.cuSeqlens = {0, 5, 5, 13};
  EXPECT_EQ(batch.pairCount(0), 25u + 64u);
  EXPECT_EQ(batch.pairCount(1), 13u);
  EXPECT_EQ(batch.pairCount(3), pairsOf(5, 3) + pairsOf(8, 3));
}
