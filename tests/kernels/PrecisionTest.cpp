// Weights of f16, bf16 and i8, and linears that multiply in bf16 and i8. Storage alone changes no bit beside the same
// numbers in f32; sums of i8 are held to the bit against plain integers, bf16 against double precision.
#include "compiler/layout/WeightStorage.h"
#include "tests/kernels/KernelHarness.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace batten;
using namespace batten::test;
using layout::Elem;

namespace {

std::vector<float> rounded(std::vector<float> values, Elem elem) {
  for (float &value : values)
    value = layout::roundTo(elem, value);
  return values;
}

/// Inputs of a linear whose weight is stored as the key says, or as the same numbers in f32.
std::vector<Input> linearInputs(const KernelKey &key, uint32_t rows, bool asF32 = false) {
  auto seed = static_cast<uint32_t>(key.k * 31 + key.n * 7 + rows);
  std::vector<Input> inputs{Input::ofRows(rows, key.k, randomFloats(rows * key.k, seed))};
  std::vector<float> w = randomFloats(key.n * key.k, seed + 1, 0.5f);
  if (asF32)
    inputs.push_back(Input::panels(key.n, key.k, rounded(std::move(w), key.storage)));
  else if (key.math == Elem::F32)
    inputs.push_back(Input::panels(key.n, key.k, std::move(w), key.storage));
  else
    inputs.push_back(Input::dotPanels(key.n, key.k, std::move(w), key.storage));
  if (key.bias)
    inputs.push_back(Input::vector(randomFloats(key.n, seed + 2)));
  if (key.residual)
    inputs.push_back(Input::ofRows(rows, key.n, randomFloats(rows * key.n, seed + 3)));
  return inputs;
}

/// Where groups of at most 96 dots of four elements begin, by the words of format.h; the last entry is k.
std::vector<size_t> groupsOf(size_t k) {
  size_t dots = (k + 3) / 4, count = (dots + 95) / 96;
  std::vector<size_t> begins{0};
  for (size_t i = 0; i < count; ++i)
    begins.push_back(std::min(k, begins.back() + 4 * (dots / count + (i < dots % count))));
  return begins;
}

/// y = x w^T by the words of kernel.h and format.h.
std::vector<float> linearI8(const Input &x, const Input &w) {
  std::vector<float> result(x.rows * w.rows, 0.0f);
  std::vector<size_t> begins = groupsOf(x.cols);
  for (size_t group = 0; group + 1 < begins.size(); ++group)
    for (size_t n = 0; n < w.rows; ++n) {
      auto column = [&](size_t k) { return w.values[n * w.cols + k]; };
      float most = 0;
      for (size_t k = begins[group]; k < begins[group + 1]; ++k)
        most = std::max(most, std::fabs(column(k)));
      float factor = most >= layout::kSmallestI8Row ? 127.0f / most : 0.0f, scale = factor > 0 ? most / 127.0f : 0.0f;
      for (size_t row = 0; row < x.rows; ++row) {
        const float *values = &x.values[row * x.cols];
        float low = 0, high = 0;
        for (size_t k = begins[group]; k < begins[group + 1]; ++k) {
          low = std::min(low, values[k]);
          high = std::max(high, values[k]);
        }
        float range = high - low, f = range >= layout::kSmallestI8Range ? 255.0f / range : 0.0f;
        float s = f > 0 ? range * (1.0f / 255.0f) : 0.0f, zero = std::nearbyintf(-low * f);
        int64_t sum = 0;
        for (size_t k = begins[group]; k < begins[group + 1]; ++k) {
          float q = std::nearbyintf(std::clamp(std::fmaf(values[k], f, zero), 0.0f, 255.0f));
          sum += (int64_t(q) - int64_t(zero)) * int64_t(std::nearbyintf(column(k) * factor));
        }
        float &out = result[row * w.rows + n];
        out = std::fmaf(static_cast<float>(sum), s * scale, out);
      }
    }
  return result;
}

void checkI8(int64_t k, int64_t n, uint32_t rows) {
  KernelKey key = KernelKey::linear(k, n, false).with(Elem::I8, Elem::I8);
  std::vector<Input> inputs = linearInputs(key, rows);
  std::vector<float> got = runEveryWay(key, inputs, plainBatch(rows), rows, static_cast<uint32_t>(n));
  expectSameBits(got, linearI8(inputs[0], inputs[1]), static_cast<size_t>(n), kernelSymbol(key));
}

reference::Matrix absolute(reference::Matrix m) {
  for (double &value : m.values)
    value = std::fabs(value);
  return m;
}

void checkBF16(int64_t k, int64_t n, uint32_t rows) {
  KernelKey key = KernelKey::linear(k, n, false).with(Elem::BF16, Elem::BF16);
  std::vector<Input> inputs = linearInputs(key, rows);
  std::vector<float> got = runEveryWay(key, inputs, plainBatch(rows), rows, static_cast<uint32_t>(n));
  for (Input &input : inputs)
    input.values = rounded(input.values, Elem::BF16);
  reference::Matrix x = inputs[0].matrix(), w = inputs[1].matrix();
  expectClose(got, reference::linear(x, w, {}), reference::linear(absolute(x), absolute(w), {}),
              2.0 + std::sqrt(static_cast<double>(k)), kernelSymbol(key));
}

const std::vector<KernelKey> kDotKeys = {
    KernelKey::linear(50, 129, true, ActivationKind::GeluErf, true).with(Elem::BF16, Elem::BF16),
    KernelKey::linear(50, 129, true, ActivationKind::GeluErf, true).with(Elem::I8, Elem::I8)};

} // namespace

TEST(PrecisionTest, StorageChangesNoBit) {
  for (Elem elem : {Elem::F16, Elem::BF16})
    for (auto [k, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {17, 16}, {33, 50}, {50, 129}, {384, 96}})
      for (uint32_t rows : {1u, 2u, 3u, 5u, 6u, 13u, 14u, 15u, 29u}) {
        KernelKey plain = KernelKey::linear(k, n, true, ActivationKind::Relu, true), key = plain.with(elem);
        uint32_t cols = static_cast<uint32_t>(n);
        std::vector<float> got = runEveryWay(key, linearInputs(key, rows), plainBatch(rows), rows, cols);
        expectSameBits(got, runEveryWay(plain, linearInputs(key, rows, true), plainBatch(rows), rows, cols), cols,
                       kernelSymbol(key));
      }
}

TEST(PrecisionTest, TablesOfNarrowNumbersChangeNoBit) {
  BatchSpec batch{{5, 0, 3}, {0, 7, 3, 3, 1, 6, 2, 5}, {1, 0, 1, 1, 0, 0, 1, 0}};
  for (Elem elem : {Elem::F16, Elem::BF16})
    for (int64_t width : {1, 15, 16, 33, 384}) {
      auto inputs = [&](Elem stored) {
        std::vector<Input> tables;
        for (auto [rows, seed] : {std::pair(8u, 1u), {2u, 2u}, {7u, 3u}}) {
          std::vector<float> values = rounded(randomFloats(rows * width, seed), elem);
          tables.push_back(Input::table(rows, width, std::move(values), stored));
        }
        return tables;
      };
      KernelKey plain = KernelKey::embed(width, true, true, true, 2);
      std::vector<float> got = runEveryWay(plain.with(elem), inputs(elem), batch, 8, width);
      expectSameBits(got, runEveryWay(plain, inputs(Elem::F32), batch, 8, width), width, "embed");
    }
}

TEST(PrecisionTest, I8MatchesIntegersToTheBit) {
  for (uint32_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 9u, 10u, 11u, 13u, 14u, 15u, 29u, 37u, 400u})
    checkI8(50, 96, rows);
  for (auto [k, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1},
                                                              {2, 33},
                                                              {3, 2},
                                                              {4, 16},
                                                              {5, 17},
                                                              {7, 48},
                                                              {31, 80},
                                                              {33, 129},
                                                              {384, 160},
                                                              {385, 40},
                                                              {388, 33},
                                                              {770, 35},
                                                              {1534, 20},
                                                              {3072, 70}})
    for (uint32_t rows : {1u, 3u, 15u})
      checkI8(k, n, rows);
}

TEST(PrecisionTest, BF16MatchesReference) {
  for (uint32_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 13u, 14u, 15u, 29u, 400u})
    checkBF16(50, 96, rows);
  for (auto [k, n] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {2, 33}, {3, 2}, {5, 17}, {31, 80}, {33, 129}, {384, 160}, {3072, 70}})
    for (uint32_t rows : {1u, 3u, 15u})
      checkBF16(k, n, rows);
}

// 255 times 127 in every place of the largest group is the largest sum that there is.
TEST(PrecisionTest, I8SumsOfTheLargestGroupAreExact) {
  KernelKey key = KernelKey::linear(2 * 384, 2, false).with(Elem::I8, Elem::I8);
  for (float sign : {1.0f, -1.0f})
    for (float value : {1.0f, -1.0f}) {
      std::vector<Input> inputs{Input::ofRows(1, key.k, std::vector<float>(key.k, value)),
                                Input::dotPanels(2, key.k, std::vector<float>(2 * key.k, sign), Elem::I8)};
      expectSameBits(runEveryWay(key, inputs, plainBatch(1), 1, 2), linearI8(inputs[0], inputs[1]), 2, "largest");
    }
}

TEST(PrecisionTest, EpiloguesFollowTheSum) {
  for (Elem math : {Elem::BF16, Elem::I8})
    for (uint32_t rows : {2u, 15u}) {
      KernelKey bare = KernelKey::linear(40, 72, false).with(math, math), key = bare;
      key.bias = key.residual = true;
      key.act = ActivationKind::Relu;
      std::vector<Input> inputs = linearInputs(key, rows);
      std::vector<float> sums = runEveryWay(bare, {inputs[0], inputs[1]}, plainBatch(rows), rows, 72);
      for (size_t i = 0; i < sums.size(); ++i) {
        float value = sums[i] + inputs[2].values[i % 72];
        sums[i] = (value > 0 ? value : 0.0f) + inputs[3].values[i];
      }
      expectSameBits(runEveryWay(key, inputs, plainBatch(rows), rows, 72), sums, 72, kernelSymbol(key));
    }
}

TEST(PrecisionTest, RowAloneHasTheBitsItHasInABatch) {
  for (const KernelKey &key : kDotKeys) {
    std::vector<Input> inputs = linearInputs(key, 61);
    for (const std::string &target : runnableTargets(key.math)) {
      std::vector<float> all = runKernel(target, key, inputs, plainBatch(61), 61, 129);
      for (uint32_t count : {1u, 2u, 3u, 5u, 14u})
        for (uint32_t row = 0; row + count <= 61; row += 7) {
          std::vector<float> alone =
              runKernel(target, key, someRows(inputs, row, count), plainBatch(count), count, 129);
          expectSameBits(alone, {all.begin() + row * 129, all.begin() + (row + count) * 129}, 129, kernelSymbol(key));
        }
    }
  }
}

TEST(PrecisionTest, RowsThatAreNotFiniteStayBroken) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const KernelKey &key : kDotKeys)
    for (float value : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf}) {
      std::vector<Input> inputs = linearInputs(key, 29), dirty = inputs;
      dirty[0].values[11 * 50 + 47] = value;
      std::vector<float> clean = runEveryWay(key, inputs, plainBatch(29), 29, 129);
      std::vector<float> got = runEveryWay(key, dirty, plainBatch(29), 29, 129);
      for (size_t i = 0; i < got.size(); ++i) {
        if (i / 129 != 11)
          ASSERT_EQ(got[i], clean[i]);
        else if (key.math == Elem::I8 || std::isnan(value))
          ASSERT_TRUE(std::isnan(got[i]));
      }
    }
}

TEST(PrecisionTest, RowsOfNothingGiveNothing) {
  for (Elem math : {Elem::BF16, Elem::I8})
    for (float value : {0.0f, -0.0f, 1e-41f}) {
      KernelKey key = KernelKey::linear(64, 40, false).with(math, math);
      std::vector<Input> inputs = linearInputs(key, 9);
      std::fill(inputs[0].values.begin(), inputs[0].values.end(), value);
      for (float got : runEveryWay(key, inputs, plainBatch(9), 9, 40))
        ASSERT_EQ(got, 0.0f);
    }
}
