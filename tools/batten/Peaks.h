// This machine's peaks, measured: fused multiply-adds in registers, and reads from memory. What shares are shares of.
#ifndef BATTEN_TOOLS_BATTEN_PEAKS_H
#define BATTEN_TOOLS_BATTEN_PEAKS_H

#include <cstdint>

namespace batten::tools {

/// Vector instructions that a peak is measured with.
enum class Isa { kAvx2, kAvx512, kNeon };

const char *isaName(Isa isa);
/// FLOP a second (an FMA is two) of that many threads at once; the best of several rounds of some milliseconds. The
/// machine must support the instructions.
double measureFmaPeak(Isa isa, uint32_t threads);
/// Bytes a second that as many threads read from a block larger than the caches; the best of several rounds. 0 where
/// the memory can't be had.
double measureReadPeak(uint32_t threads);

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_PEAKS_H
