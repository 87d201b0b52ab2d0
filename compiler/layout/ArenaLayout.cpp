// Greedy best fit, in several orders; the smallest result wins, the earlier order on a tie. A block goes into the smallest
// gap that holds it between the blocks placed before it that are live when it is; where none does, above all of them.
// An order by size alone does well on straight lines of layers, but not always (a small block with a long life can split a
// gap), which is why there are several; an exact search was not needed to reach the lower bound on BERT.
#include "compiler/layout/ArenaLayout.h"
#include "compiler/layout/RowStride.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace batten::layout {

namespace {

bool overlap(const ArenaBlock &a, const ArenaBlock &b) { return a.first <= b.last && b.first <= a.last; }

/// Places the blocks in the given order; sizes are rounded already.
ArenaLayout place(const std::vector<ArenaBlock> &blocks, const std::vector<size_t> &order) {
  ArenaLayout layout;
  layout.offsets.assign(blocks.size(), 0);
  std::vector<size_t> placed; // ascending by offset
  for (size_t index : order) {
    const ArenaBlock &block = blocks[index];
    int64_t end = 0, best = -1, bestGap = 0;
    for (size_t other : placed) {
      if (!overlap(block, blocks[other]))
        continue;
      int64_t gap = layout.offsets[other] - end;
      if (gap >= block.bytes && (best < 0 || gap < bestGap)) {
        best = end;
        bestGap = gap;
      }
      end = std::max(end, layout.offsets[other] + blocks[other].bytes);
    }
    layout.offsets[index] = best >= 0 ? best : end;
    layout.arenaBytes = std::max(layout.arenaBytes, layout.offsets[index] + block.bytes);
    auto at = std::upper_bound(placed.begin(), placed.end(), index, [&](size_t a, size_t b) {
      return std::pair(layout.offsets[a], a) < std::pair(layout.offsets[b], b);
    });
    placed.insert(at, index);
  }
  return layout;
}

int64_t lowerBound(const std::vector<ArenaBlock> &blocks) {
  // Bytes come at first and go after last; at one step all that go are gone before any comes.
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const ArenaBlock &block : blocks) {
    changes.emplace_back(block.first, block.bytes);
    changes.emplace_back(block.last + 1, -block.bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t live = 0, most = 0;
  for (auto [step, bytes] : changes)
    most = std::max(most, live += bytes);
  return most;
}

} // namespace

std::optional<ArenaLayout> layoutArena(const std::vector<ArenaBlock> &blocks, int64_t alignment) {
  constexpr int64_t kMost = int64_t(1) << 62;
  std::vector<ArenaBlock> rounded = blocks;
  int64_t sum = 0;
  for (ArenaBlock &block : rounded) {
    if (block.bytes < 0 || block.last < block.first || block.bytes > kMost - alignment)
      return std::nullopt;
    block.bytes = roundUp(block.bytes, alignment);
    if (sum > kMost - block.bytes)
      return std::nullopt;
    sum += block.bytes;
  }

  // What to place first: higher keys, then the earlier block.
  using Key = std::tuple<int64_t, int64_t>;
  auto life = [](const ArenaBlock &b) { return b.last - b.first + 1; };
  auto bySize = [&](const ArenaBlock &b) { return Key(b.bytes, life(b)); };
  auto byLife = [&](const ArenaBlock &b) { return Key(life(b), b.bytes); };
  auto byStart = [&](const ArenaBlock &b) { return Key(-b.first, b.bytes); };
  auto byEnd = [&](const ArenaBlock &b) { return Key(b.last, b.bytes); };

  ArenaLayout best;
  auto attempt = [&](auto key) {
    std::vector<size_t> order(rounded.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return std::pair(key(rounded[a]), b) > std::pair(key(rounded[b]), a); });
    ArenaLayout layout = place(rounded, order);
    if (best.offsets.empty() || layout.arenaBytes < best.arenaBytes)
      best = std::move(layout);
  };
  attempt(bySize);
  attempt(byLife);
  attempt(byStart);
  attempt(byEnd);
  best.lowerBoundBytes = lowerBound(rounded);
  return best;
}

} // namespace batten::layout
