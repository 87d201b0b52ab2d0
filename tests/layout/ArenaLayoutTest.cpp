// ArenaLayout: placements that can be reasoned out, and properties that hold for any blocks.
#include "compiler/layout/ArenaLayout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

using batten::layout::ArenaBlock;
using batten::layout::ArenaLayout;
using batten::layout::layoutArena;

namespace {

int64_t roundUp64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Largest sum of live bytes at any step, looked up step by step.
int64_t mostLive(const std::vector<ArenaBlock> &blocks) {
  int64_t most = 0;
  for (const ArenaBlock &at : blocks) {
    int64_t sum = 0;
    for (const ArenaBlock &block : blocks)
      if (block.first <= at.first && at.first <= block.last)
        sum += roundUp64(block.bytes);
    most = std::max(most, sum);
  }
  return most;
}

void expectSound(const std::vector<ArenaBlock> &blocks, const ArenaLayout &layout) {
  ASSERT_EQ(layout.offsets.size(), blocks.size());
  int64_t sum = 0, end = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_GE(layout.offsets[i], 0);
    EXPECT_EQ(layout.offsets[i] % 64, 0);
    sum += roundUp64(blocks[i].bytes);
    end = std::max(end, layout.offsets[i] + roundUp64(blocks[i].bytes));
    for (size_t j = 0; j < i; ++j) {
      bool bothLive = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
      bool disjoint = layout.offsets[i] + blocks[i].bytes <= layout.offsets[j] ||
                      layout.offsets[j] + blocks[j].bytes <= layout.offsets[i];
      EXPECT_TRUE(!bothLive || disjoint) << "blocks " << j << " and " << i;
    }
  }
  EXPECT_EQ(layout.arenaBytes, end);
  EXPECT_EQ(layout.lowerBoundBytes, mostLive(blocks));
  EXPECT_LE(layout.lowerBoundBytes, layout.arenaBytes);
  EXPECT_LE(layout.arenaBytes, sum);
}

TEST(ArenaLayoutTest, PlacesNothing) {
  std::optional<ArenaLayout> layout = layoutArena({});
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->arenaBytes, 0);
  EXPECT_EQ(layout->lowerBoundBytes, 0);
}

TEST(ArenaLayoutTest, SharesBytesOverTime) {
  // A chain: each block dies as the next but one is born.
  std::vector<ArenaBlock> blocks = {{0, 1, 100}, {1, 2, 100}, {2, 3, 100}, {3, 4, 100}};
  std::optional<ArenaLayout> layout = layoutArena(blocks);
  ASSERT_TRUE(layout);
  expectSound(blocks, *layout);
  EXPECT_EQ(layout->arenaBytes, 256); // two of 128
}

TEST(ArenaLayoutTest, RoundsSizesUp) {
  std::vector<ArenaBlock> blocks = {{0, 0, 1}, {0, 0, 65}};
  std::optional<ArenaLayout> layout = layoutArena(blocks);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->arenaBytes, 64 + 128);
}

TEST(ArenaLayoutTest, MeetsTheBoundOnTransformerLayers) {
  // Twelve layers of h (residual stream), qkv, attention output, inner rows; h lives throughout.
  std::vector<ArenaBlock> blocks = {{0, 12 * 4, 1536}};
  for (int64_t layer = 0; layer < 12; ++layer) {
    int64_t at = layer * 4;
    blocks.push_back({at, at + 1, 4608});
    blocks.push_back({at + 1, at + 2, 1536});
    blocks.push_back({at + 3, at + 4, 6144});
  }
  std::optional<ArenaLayout> layout = layoutArena(blocks);
  ASSERT_TRUE(layout);
  expectSound(blocks, *layout);
  EXPECT_EQ(layout->arenaBytes, layout->lowerBoundBytes);
}

TEST(ArenaLayoutTest, EmptyBlocksTakeNothing) {
  std::vector<ArenaBlock> blocks = {{0, 3, 0}, {0, 3, 64}, {1, 2, 0}};
  std::optional<ArenaLayout> layout = layoutArena(blocks);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->arenaBytes, 64);
}

TEST(ArenaLayoutTest, RefusesWhatDoesNotFit) {
  constexpr int64_t kHuge = int64_t(1) << 61;
  EXPECT_FALSE(layoutArena({{0, 0, -1}}));
  EXPECT_FALSE(layoutArena({{1, 0, 64}}));
  EXPECT_FALSE(layoutArena({{0, 0, std::numeric_limits<int64_t>::max()}}));
  EXPECT_FALSE(layoutArena({{0, 0, kHuge}, {0, 0, kHuge}, {0, 0, kHuge}}));
  EXPECT_TRUE(layoutArena({{0, 0, kHuge}}));
}

TEST(ArenaLayoutTest, HoldsItsPromisesOnRandomBlocks) {
  constexpr unsigned kSeed = 20240607;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  auto upTo = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  int64_t tight = 0, rounds = 400;
  for (int64_t round = 0; round < rounds; ++round) {
    std::vector<ArenaBlock> blocks(static_cast<size_t>(upTo(60)));
    int64_t steps = 1 + upTo(40), sizes = 1 + upTo(5000);
    for (ArenaBlock &block : blocks) {
      block.first = upTo(steps);
      block.last = block.first + upTo(round % 2 ? 4 : steps);
      block.bytes = upTo(sizes);
    }
    std::optional<ArenaLayout> layout = layoutArena(blocks);
    ASSERT_TRUE(layout);
    expectSound(blocks, *layout);
    tight += layout->arenaBytes == layout->lowerBoundBytes;
    std::optional<ArenaLayout> again = layoutArena(blocks);
    EXPECT_EQ(layout->offsets, again->offsets);
    if (HasFatalFailure() || HasNonfatalFailure())
      FAIL() << "in round " << round;
  }
  RecordProperty("roundsAtTheBound", static_cast<int>(tight));
}

} // namespace
