// Places blocks that live over intervals of steps into one arena. Pure integers: it knows no buffer, row or bucket.
// It is a heuristic; the lower bound says how far from the best the result can be at most.
#ifndef BATTEN_COMPILER_LAYOUT_ARENALAYOUT_H
#define BATTEN_COMPILER_LAYOUT_ARENALAYOUT_H

#include <cstdint>
#include <optional>
#include <vector>

namespace batten::layout {

/// A block that is live from step `first` to step `last`, both included.
struct ArenaBlock {
  int64_t first = 0;
  int64_t last = 0;
  int64_t bytes = 0;
};

/// Offsets for blocks, in their order.
struct ArenaLayout {
  std::vector<int64_t> offsets;
  int64_t arenaBytes = 0;
  int64_t lowerBoundBytes = 0; ///< largest sum of live bytes at any step: no layout takes less
};

/// Lays out the blocks so that no two that are live at one step share a byte. Sizes are rounded up to the alignment and
/// offsets are multiples of it. lowerBoundBytes <= arenaBytes <= the sum of all sizes.
///
/// The same blocks give the same layout. Takes time in the square of the number of blocks.
///
/// Errors: nothing where the sum of sizes doesn't fit 62 bits, a size is negative or last is before first.
std::optional<ArenaLayout> layoutArena(const std::vector<ArenaBlock> &blocks, int64_t alignment = 64);

} // namespace batten::layout

#endif // BATTEN_COMPILER_LAYOUT_ARENALAYOUT_H
