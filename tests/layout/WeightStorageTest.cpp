// Rounding to f16 and bf16, and the bytes of narrow panels, against their definitions in format.h.
#include "compiler/layout/PackLayout.h"
#include "compiler/layout/WeightStorage.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

using namespace batten::layout;

namespace {

float fromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

/// The nearest of all numbers of the type by search, even ones first where two are as near.
uint16_t nearest(float value, float (*widen)(uint16_t), uint16_t infinity) {
  uint16_t low = 0, high = infinity; // sizes are in order of their bits
  float size = std::fabs(value);
  while (high - low > 1) {
    auto middle = static_cast<uint16_t>((low + high) / 2);
    (widen(middle) <= size ? low : high) = middle;
  }
  // An infinity stands where the next number would be.
  double below = widen(low), next = high == infinity ? 2 * below - widen(static_cast<uint16_t>(low - 1)) : widen(high);
  double toLow = size - below, toHigh = next - size;
  uint16_t chosen = toLow < toHigh || (toLow == toHigh && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(chosen | (std::signbit(value) ? 0x8000 : 0));
}

std::vector<float> randoms(size_t count) {
  std::mt19937 random(7);
  std::vector<float> out(count);
  for (float &v : out)
    v = static_cast<float>(random()) / 2e9f - 1.0f;
  return out;
}

template <typename T> T at(const std::vector<uint8_t> &bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

} // namespace

TEST(WeightStorageTest, NarrowingRoundsToNearestEven) {
  std::mt19937 random(3);
  for (int i = 0; i < 300000; ++i) {
    float value = fromBits(random());
    if (i < 70000) // halves between neighbours, and every size of f16
      value = widenF16(static_cast<uint16_t>(i)) +
              (i % 2 ? 0.5f * (widenF16(static_cast<uint16_t>(i + 1)) - widenF16(static_cast<uint16_t>(i))) : 0.0f);
    if (!std::isfinite(value))
      continue;
    ASSERT_EQ(narrowF16(value), nearest(value, widenF16, 0x7C00)) << value;
    ASSERT_EQ(narrowBF16(value), nearest(value, widenBF16, 0x7F80)) << value;
  }
  EXPECT_EQ(narrowF16(65504.0f), 0x7BFF);
  EXPECT_EQ(narrowF16(65519.996f), 0x7BFF);
  EXPECT_EQ(narrowF16(65520.0f), 0x7C00);
  EXPECT_EQ(narrowF16(-0.0f), 0x8000);
}

TEST(WeightStorageTest, WideningThenNarrowingIsTheSame) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    if ((half & 0x7C00) != 0x7C00) {
      ASSERT_EQ(narrowF16(widenF16(half)), half);
    }
    if ((half & 0x7F80) != 0x7F80) {
      ASSERT_EQ(narrowBF16(widenBF16(half)), half);
    }
  }
}

TEST(WeightStorageTest, PanelsOfNarrowNumbersMatchTheDefinition) {
  constexpr int64_t n = 37, k = 5;
  std::vector<float> w = randoms(n * k);
  std::vector<uint8_t> panels, dots;
  appendStored(Layout::Panels, Elem::F16, w.data(), n, k, panels);
  appendStored(Layout::DotPanels, Elem::BF16, w.data(), n, k, dots);
  ASSERT_EQ(static_cast<int64_t>(panels.size()), entryBytes(Layout::Panels, Elem::F16, n, k));
  ASSERT_EQ(static_cast<int64_t>(dots.size()), entryBytes(Layout::DotPanels, Elem::BF16, n, k));
  for (int64_t row = 0; row < 64; ++row)
    for (int64_t col = 0; col < 6; ++col) {
      float value = row < n && col < k ? w[row * k + col] : 0.0f;
      if (col < k) {
        EXPECT_EQ(at<uint16_t>(panels, 2 * ((row / 32 * k + col) * 32 + row % 32)), narrowF16(value));
      }
      EXPECT_EQ(at<uint16_t>(dots, 2 * (((row / 32 * 3 + col / 2) * 32 + row % 32) * 2 + col % 2)), narrowBF16(value));
    }
}

TEST(WeightStorageTest, I8PanelsHoldScalesAndSums) {
  // 98 dots in two groups of 49; the last one ends within a dot.
  constexpr int64_t n = 35, k = 390, dots = 98, groups = 2, panel = (dots + 2 * groups) * 128;
  std::vector<float> w = randoms(n * k);
  for (int64_t col = 0; col < k; ++col) {
    w[3 * k + col] = 0;      // a row of zeros
    w[4 * k + col] = 1e-37f; // one that counts as zeros
  }
  std::vector<uint8_t> bytes;
  appendStored(Layout::DotPanels, Elem::I8, w.data(), n, k, bytes);
  ASSERT_EQ(bytes.size(), 2u * panel);
  for (int64_t row = 0; row < 64; ++row)
    for (int64_t group = 0; group < groups; ++group) {
      int64_t begin = group * 49 * 4, end = begin + 49 * 4;
      float most = 0;
      for (int64_t col = begin; row < n && col < std::min(k, end); ++col)
        most = std::max(most, std::fabs(w[row * k + col]));
      most = most < kSmallestI8Row ? 0 : most;
      int64_t base = row / 32 * panel, sum = 0;
      for (int64_t col = begin; col < end; ++col) {
        bool inside = row < n && col < k && most > 0;
        double wanted = inside ? std::nearbyint(double(w[row * k + col]) / most * 127.0) : 0.0;
        auto got = at<int8_t>(bytes, base + (col / 4 * 32 + row % 32) * 4 + col % 4);
        ASSERT_NEAR(got, wanted, inside ? 1 : 0) << row << ", " << col;
        sum += got;
      }
      int64_t behind = base + (dots + 2 * group) * 128 + row % 32 * 4;
      EXPECT_EQ(at<float>(bytes, behind), most / 127.0f);
      EXPECT_EQ(at<float>(bytes, behind + 128), static_cast<float>(sum));
    }
}
