// See the header.
#include "compiler/layout/WeightStorage.h"
#include "compiler/layout/DotScratch.h"
#include "compiler/layout/PackLayout.h"
#include "compiler/layout/RowStride.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace batten::layout {

float widenBF16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float widenF16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t exponent = (bits >> 10) & 0x1Fu, mantissa = bits & 0x3FFu;
  if (exponent == 0x1F)
    return std::bit_cast<float>(sign | 0x7F800000u | mantissa << 13);
  if (exponent != 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  if (mantissa == 0)
    return std::bit_cast<float>(sign);
  // Subnormal: mantissa * 2^-24, normal in f32. Move its top bit to where the hidden one is.
  uint32_t shift = static_cast<uint32_t>(std::countl_zero(mantissa)) - 21;
  return std::bit_cast<float>(sign | (113 - shift) << 23 | (mantissa << shift & 0x3FFu) << 13);
}

uint16_t narrowBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}

uint16_t narrowF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7FFFFFFFu;
  if (size >= 0x47800000u) // 65536 and more
    return static_cast<uint16_t>(sign | 0x7C00u);
  // The number of f32 mantissa bits that have no place, more of them where the result is subnormal.
  uint32_t exponent = size >> 23, dropped = exponent >= 113 ? 13 : 126 - exponent;
  if (dropped > 24)
    return static_cast<uint16_t>(sign);
  uint32_t mantissa = exponent >= 113 ? size - (112u << 23) : (size & 0x7FFFFFu) | 0x800000u;
  uint32_t half = (1u << (dropped - 1)) - 1 + (mantissa >> dropped & 1);
  return static_cast<uint16_t>(sign | (mantissa + half) >> dropped);
}

float roundTo(Elem elem, float value) {
  return elem == Elem::F16 ? widenF16(narrowF16(value)) : elem == Elem::BF16 ? widenBF16(narrowBF16(value)) : value;
}

namespace {

/// Writes elements at places of a block of bytes.
class Block {
public:
  Block(std::vector<uint8_t> &out, int64_t bytes) : base(out.size()), out(out) {
    out.resize(base + static_cast<size_t>(bytes));
  }
  template <typename T> void put(int64_t byte, T value) {
    std::memcpy(out.data() + base + static_cast<size_t>(byte), &value, sizeof(value));
  }
  void put(Elem elem, int64_t index, float value) {
    if (elem == Elem::F32)
      put(index * 4, value);
    else
      put(index * 2, elem == Elem::F16 ? narrowF16(value) : narrowBF16(value));
  }

private:
  size_t base;
  std::vector<uint8_t> &out;
};

void putDotPanelI8(Block &block, int64_t at, const float *rows, int64_t count, int64_t cols) {
  int64_t dots = i8Dots(cols), groups = i8Groups(cols), behind = at + dots * kPanelCols * kDotBytes;
  for (int64_t group = 0, begin = 0; group < groups; ++group) {
    int64_t end = std::min(begin + 4 * (dots / groups + (group < dots % groups)), cols);
    for (int64_t row = 0; row < count; ++row) {
      const float *w = rows + row * cols;
      float most = 0;
      for (int64_t k = begin; k < end; ++k)
        most = std::max(most, std::fabs(w[k]));
      most = most < kSmallestI8Row ? 0 : most;
      float factor = most > 0 ? 127.0f / most : 0.0f;
      int32_t sum = 0;
      for (int64_t k = begin; k < end; ++k) {
        auto q = static_cast<int32_t>(std::nearbyint(std::clamp(w[k] * factor, -127.0f, 127.0f)));
        sum += q;
        block.put(at + (k / 4 * kPanelCols + row) * kDotBytes + k % 4, static_cast<int8_t>(q));
      }
      block.put(behind + (group * 2 * kPanelCols + row) * 4, most / 127.0f);
      block.put(behind + ((group * 2 + 1) * kPanelCols + row) * 4, static_cast<float>(sum));
    }
    begin = end;
  }
}

} // namespace

void appendStored(Layout layout, Elem elem, const float *rows, int64_t count, int64_t cols, std::vector<uint8_t> &out) {
  if (!isPanels(layout) && elem == Elem::F32) {
    auto bytes = reinterpret_cast<const uint8_t *>(rows);
    out.insert(out.end(), bytes, bytes + count * cols * 4);
    return;
  }
  if (!isPanels(layout)) {
    Block block(out, count * cols * elemBytes(elem));
    for (int64_t i = 0; i < count * cols; ++i)
      block.put(elem, i, rows[i]);
    return;
  }
  int64_t bytes = layout == Layout::Panels ? cols * kPanelCols * elemBytes(elem) : *dotPanelBytes(elem, cols);
  Block block(out, panelCount(count) * bytes);
  for (int64_t first = 0; first < count; first += kPanelCols) {
    int64_t here = std::min(kPanelCols, count - first), at = first / kPanelCols * bytes;
    const float *from = rows + first * cols;
    if (layout == Layout::DotPanels && elem == Elem::I8) {
      putDotPanelI8(block, at, from, here, cols);
      continue;
    }
    int64_t dot = layout == Layout::DotPanels ? kDotBytes / elemBytes(elem) : 1;
    for (int64_t k = 0; k < cols; ++k)
      for (int64_t row = 0; row < here; ++row)
        block.put(elem, at / elemBytes(elem) + (k / dot * kPanelCols + row) * dot + k % dot, from[row * cols + k]);
  }
}

} // namespace batten::layout
