// rope against its definition, over head widths whose halves are no whole vectors, in place and not.
#include "tests/kernels/KernelHarness.h"

#include <cmath>

using namespace batten;
using namespace batten::test;

namespace {

/// 40 tokens, the longest sequence 19 of them, with empty ones.
const BatchSpec kBatch{{0, 1, 7, 0, 13, 19, 0}, {}, {}};
constexpr uint32_t kPositions = 19;

Input tableOf(uint32_t headWidth, double theta = 10000.0) {
  reference::Matrix table = reference::ropeTable(kPositions, headWidth, theta);
  return Input::table(kPositions, headWidth, {table.values.begin(), table.values.end()});
}

} // namespace

TEST(RopeTest, MatchesReference) {
  for (uint32_t headWidth : {2u, 8u, 20u, 24u, 26u, 32u, 34u, 48u, 64u, 80u, 100u, 128u})
    for (auto [heads, kvHeads] : {std::pair{1u, 1u}, {3u, 3u}, {4u, 2u}, {6u, 1u}}) {
      KernelKey key = KernelKey::rope(heads, headWidth, kvHeads);
      uint32_t width = static_cast<uint32_t>(key.qkvWidth()), tokens = kBatch.tokens();
      Input table = tableOf(headWidth), x = Input::ofRows(tokens, width, randomFloats(tokens * width, headWidth));
      std::vector<float> got = runEveryWay(key, {table, x}, kBatch, tokens, width);
      reference::Matrix wanted =
          reference::rope(x.matrix(), kBatch.cuSeqlens(), table.matrix(), heads, kvHeads, headWidth);
      // Both products count, also where they cancel; values are copied.
      reference::Matrix magnitude(tokens, width);
      uint32_t half = headWidth / 2;
      for (uint32_t t = 0; t < tokens; ++t)
        for (uint32_t c = 0; c < (heads + kvHeads) * headWidth; ++c) {
          uint32_t other = c % headWidth < half ? c + half : c - half;
          magnitude(t, c) = std::fabs(x.values[t * width + c]) + std::fabs(x.values[t * width + other]);
        }
      expectClose(got, wanted, magnitude, 2, kernelSymbol(key));
    }
}

// The rule of kernel.h, to the bit: the second product is rounded, the first is fused.
TEST(RopeTest, RoundsAsDocumented) {
  KernelKey key = KernelKey::rope(2, 26);
  uint32_t width = static_cast<uint32_t>(key.qkvWidth()), tokens = kBatch.tokens();
  Input table = tableOf(26), x = Input::ofRows(tokens, width, randomFloats(tokens * width, 3));
  std::vector<float> got = runEveryWay(key, {table, x}, kBatch, tokens, width), wanted = x.values;
  std::vector<uint32_t> offsets = kBatch.cuSeqlens();
  for (size_t s = 0; s + 1 < offsets.size(); ++s)
    for (uint32_t t = offsets[s]; t < offsets[s + 1]; ++t)
      for (uint32_t h = 0; h < 4; ++h)
        for (uint32_t j = 0; j < 13; ++j) {
          const float *angles = &table.values[(t - offsets[s]) * 26];
          size_t low = t * width + h * 26 + j, high = low + 13;
          wanted[low] = std::fma(x.values[low], angles[j], -(x.values[high] * angles[13 + j]));
          wanted[high] = std::fma(x.values[high], angles[j], x.values[low] * angles[13 + j]);
        }
  expectSameBits(got, wanted, width, kernelSymbol(key));
}

TEST(RopeTest, FirstPositionOfEachSequenceStaysAsItIs) {
  KernelKey key = KernelKey::rope(2, 20, 1);
  BatchSpec batch{std::vector<uint32_t>(9, 1), {}, {}};
  uint32_t width = static_cast<uint32_t>(key.qkvWidth());
  Input x = Input::ofRows(9, width, randomFloats(9 * width, 5));
  expectSameBits(runEveryWay(key, {tableOf(20), x}, batch, 9, width), x.values, width, kernelSymbol(key));
}

TEST(RopeTest, KeepsNanInItsElementsAndItsRow) {
  KernelKey key = KernelKey::rope(2, 20);
  uint32_t width = static_cast<uint32_t>(key.qkvWidth()), tokens = kBatch.tokens();
  Input x = Input::ofRows(tokens, width, randomFloats(tokens * width, 6));
  x.values[5 * width + 23] = NAN; // of head 1: its element 3, turned with element 13
  std::vector<float> got = runEveryWay(key, {tableOf(20), x}, kBatch, tokens, width);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(std::isnan(got[i]), i == 5 * width + 23 || i == 5 * width + 33) << i;
}
