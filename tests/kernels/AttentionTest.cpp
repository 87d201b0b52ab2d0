// attention against its reference, and its bits: alone or in any batch, any partition, either target.
#include "tests/kernels/AttentionHarness.h"

#include <cmath>

using namespace batten;
using namespace batten::test;

TEST(AttentionTest, MatchesReferenceAtEveryLength) {
  KernelKey key = attentionKey(2, 32);
  for (uint32_t length : {1u,  2u,  3u,  13u,  14u,  15u,  16u,  17u,  31u,  32u,  33u,
                          63u, 64u, 65u, 127u, 128u, 129u, 256u, 257u, 511u, 512u, 513u})
    checkAttention(key, batchOf({length}), length);
}

TEST(AttentionTest, MatchesReferenceOverManyKeyBlocks) { checkAttention(attentionKey(1, 32), batchOf({1030}), 5); }

TEST(AttentionTest, MatchesReferenceAtEveryHeadWidth) {
  for (int64_t width : {1, 2, 8, 16, 24, 26, 32, 50, 64, 100, 128})
    checkAttention(attentionKey(3, width), batchOf({37, 0, 66, 1}), static_cast<uint32_t>(width));
}

TEST(AttentionTest, MatchesReferenceAtEveryHeadWidthOverKeyBlocks) {
  for (int64_t width : {8, 26, 50, 64})
    checkAttention(attentionKey(2, width), batchOf({5, 520}), static_cast<uint32_t>(width));
}

TEST(AttentionTest, MatchesReferenceInMixedBatches) {
  KernelKey key = attentionKey(12, 32);
  checkAttention(key, batchOf({0, 0, 9, 1, 0, 130, 64, 2, 0}), 1);
  checkAttention(key, batchOf({1}), 2);
  checkAttention(key, batchOf({1, 1, 1, 1, 1, 1, 1}), 3);
}

TEST(AttentionTest, MatchesReferenceWithFewerHeadsOfKeysAndValues) {
  for (int64_t kvHeads : {1, 2, 3})
    for (int64_t width : {8, 26, 64})
      checkAttention(attentionKey(6, width, kvHeads), batchOf({37, 0, 70, 1}),
                     static_cast<uint32_t>(10 * width + kvHeads));
  checkAttention(attentionKey(4, 48, 2), batchOf({3, 600}), 7);
}

// Rows that repeat their keys and values once a query head: all heads then read the same numbers.
TEST(AttentionTest, SharedHeadsHaveTheBitsOfRepeatedOnes) {
  KernelKey shared = attentionKey(6, 24, 2), repeated = attentionKey(6, 24);
  BatchSpec batch = batchOf({70, 9, 520});
  uint32_t tokens = batch.tokens();
  Input few = qkvOf(shared, tokens, 4);
  std::vector<float> values;
  for (uint32_t t = 0; t < tokens; ++t) {
    const float *row = &few.values[t * few.cols];
    values.insert(values.end(), row, row + 6 * 24);
    for (int part : {6, 8}) // k, then v
      for (int head = 0; head < 6; ++head)
        values.insert(values.end(), row + (part + head / 3) * 24, row + (part + head / 3 + 1) * 24);
  }
  Input all = Input::ofRows(tokens, 3 * 6 * 24, values);
  for (const std::string &target : targetsOf(shared))
    expectSameBits(runKernel(target, shared, {few}, batch, tokens, 6 * 24),
                   runKernel(target, repeated, {all}, batch, tokens, 6 * 24), 6 * 24, target);
}

TEST(AttentionTest, SequenceAloneHasTheBitsItHasInABatch) {
  KernelKey key = attentionKey(3, 26);
  BatchSpec batch = batchOf({5, 0, 70, 1, 600, 33});
  uint32_t tokens = batch.tokens(), inner = 78;
  Input qkv = qkvOf(key, tokens, 3);
  for (const std::string &target : targetsOf(key)) {
    std::vector<float> all = runKernel(target, key, {qkv}, batch, tokens, inner);
    std::vector<uint32_t> offsets = batch.cuSeqlens();
    for (size_t s = 0; s < batch.lengths.size(); ++s) {
      uint32_t begin = offsets[s], length = batch.lengths[s];
      if (length == 0)
        continue;
      Input own = Input::ofRows(
          length, qkv.cols, {qkv.values.begin() + begin * qkv.cols, qkv.values.begin() + (begin + length) * qkv.cols});
      std::vector<float> alone = runKernel(target, key, {own}, batchOf({length}), length, inner);
      expectSameBits(alone, {all.begin() + begin * inner, all.begin() + (begin + length) * inner}, inner,
                     target + ", sequence " + std::to_string(s));
    }
  }
}

TEST(AttentionTest, NanStaysInItsSequence) {
  KernelKey key = attentionKey(2, 32);
  BatchSpec batch = batchOf({20, 35, 7});
  uint32_t tokens = batch.tokens(), inner = 64;
  Input clean = qkvOf(key, tokens, 3), dirty = clean;
  for (uint32_t column : {3u, 67u, 131u}) // q, k and v of head 0, in the middle sequence's last row
    dirty.values[54 * clean.cols + column] = NAN;
  for (const std::string &target : targetsOf(key)) {
    std::vector<float> wanted = runKernel(target, key, {clean}, batch, tokens, inner);
    std::vector<float> got = runKernel(target, key, {dirty}, batch, tokens, inner);
    for (size_t i = 0; i < got.size(); ++i) {
      bool touched = i / inner >= 20 && i / inner < 55 && i % inner < 32;
      if (touched)
        EXPECT_TRUE(std::isnan(got[i])) << i;
      else
        EXPECT_EQ(got[i], wanted[i]) << i;
    }
  }
}

// Scores hundreds apart: all weight on one key, exp2 of the others is 0 and never a denormal.
TEST(AttentionTest, LargeScoresPickOneKey) {
  KernelKey key = KernelKey::attention(1, 16, 1.0f);
  BatchSpec batch = batchOf({600});
  Input qkv = qkvOf(key, 600, 3, 40.0f);
  std::vector<float> got = runEveryWay(key, {qkv}, batch, 600, 16);
  reference::Matrix wanted = reference::attention(qkv.matrix(), batch.cuSeqlens(), 1, 16, 1.0);
  reference::Matrix magnitude(600, 16);
  for (double &value : magnitude.values)
    value = 40.0 * 25600; // scores of that size, held to 2^-24 of it
  expectClose(got, wanted, magnitude, 4, "large scores");
}
