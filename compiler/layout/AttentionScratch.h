// Where a worker's scratch block keeps what an attention task needs. Pure arithmetic, shared by the emitter, which
// compiles the offsets into the kernel, and by the planner, which reserves the bytes. The same on every target.
//
//   offset          bytes                           what
//   0               16 * 528 * 4                    scores [tile row][528]: a key block of 512, padded against aliasing
//   outputs         16 * roundUp(width, 32) * 4     unscaled output rows
//   lanes           16 * 64                         sums of p in 16 virtual lanes
//   maxima          64                              running maximum of each tile row
//   factors         64                              what a later key block multiplies a row's output with
//   keys            roundUp(L, 32) * width * 4      keys as panels [L/32][width][32]
//   keys + above    roundUp(L, 32) * roundUp(width, 32) * 4    values as rows, only for sequences above 256
//
// L is the sequence's length. With a window it is what 4 tasks of 64 rows see, from a multiple of 32 on, if that is less:
// 4 * 64 + 2 * window + 31.
#ifndef BATTEN_COMPILER_LAYOUT_ATTENTIONSCRATCH_H
#define BATTEN_COMPILER_LAYOUT_ATTENTIONSCRATCH_H

#include <cstdint>
#include <optional>

namespace batten::layout {

/// Most query rows of a tile on any target.
inline constexpr int64_t kAttentionTileRows = 16;
/// Keys of a block.
inline constexpr int64_t kKeyBlock = 512;
/// Sequences of more tokens have their values packed: rows of qkv lie a page apart, and each tile walks through them all.
/// Measured, 12 heads of 32 on 512-bit vectors: 512 tokens gain 5 %, 256 gain 2 %, 128 nothing.
inline constexpr int64_t kPackValuesAbove = 256;

/// Most rows of a task.
inline constexpr int64_t kTaskRows = 64;
/// Tasks of a head that share their transposed keys where there is a window.
inline constexpr int64_t kWindowTasks = 4;

/// Offsets and strides of the block for one head width.
///
/// Units: offsets in bytes from the block's start, strides in elements; all offsets are multiples of 64.
struct AttentionScratch {
  int64_t scoreStride;
  int64_t outputStride;
  int64_t valueStride;
  int64_t outputs;
  int64_t lanes;
  int64_t maxima;
  int64_t factors;
  int64_t keys;
};

AttentionScratch attentionScratch(int64_t headWidth);

/// Bytes of a worker's block for sequences of at most maxSeqLen tokens; a multiple of 64. Width and length are positive and
/// below 2^24, a window is at most 2^24.
int64_t attentionScratchBytes(int64_t headWidth, int64_t maxSeqLen, std::optional<int64_t> window = std::nullopt);

} // namespace batten::layout

#endif // BATTEN_COMPILER_LAYOUT_ATTENTIONSCRATCH_H
