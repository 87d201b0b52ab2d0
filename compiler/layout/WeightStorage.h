// How rows of f32 become the bytes of a pack entry: rounding to narrower elements, panels, dot panels. Pure functions of
// finite numbers.
#ifndef BATTEN_COMPILER_LAYOUT_WEIGHTSTORAGE_H
#define BATTEN_COMPILER_LAYOUT_WEIGHTSTORAGE_H

#include "compiler/layout/WeightExpr.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace batten::layout {

/// The exact f32 value of an IEEE binary16 or bfloat16 bit pattern; a NaN keeps its payload bits.
float widenF16(uint16_t bits);
float widenBF16(uint16_t bits);

/// A finite f32 rounded to nearest even. What is too large becomes an infinity.
uint16_t narrowF16(float value);
uint16_t narrowBF16(float value);

/// The value that a weight has once it is stored as F16 or BF16; F32 and I8 leave it.
float roundTo(Elem elem, float value);

/// Groups of i8 whose largest number, of a weight, or whose range, of a row, is less count as zeros.
inline constexpr float kSmallestI8Row = 0x1p-120f;
inline constexpr float kSmallestI8Range = 0x1p-110f;

/// Appends `count` rows of `cols` elements in a layout, from a row on that is a multiple of 32 where it is one of panels; these
/// get rows of zeros up to a multiple of 32.
///
/// I8 (dot panels only): each row's group by its own scale, max|w| / 127, elements w * (127 / max|w|) to nearest even; see
/// kSmallestI8Row.
/// Source: batten_weight_layout in format.h.
void appendStored(Layout layout, Elem elem, const float *rows, int64_t count, int64_t cols, std::vector<uint8_t> &out);

} // namespace batten::layout

#endif // BATTEN_COMPILER_LAYOUT_WEIGHTSTORAGE_H
