// Kernels of the rows domain against their references: embed, layer_norm, rms_norm, pool, l2_normalize, softmax,
// activation, gated, add, slice, concat_cols.
#include "tests/kernels/KernelHarness.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace batten;
using namespace batten::test;

namespace {

/// Widths around the virtual lanes, and the models'.
const std::vector<uint32_t> kWidths = {1, 2, 15, 16, 17, 31, 32, 50, 64, 65, 100, 384};
const std::vector<uint32_t> kOddWidths = {1, 2, 3, 15, 16, 17, 31, 33, 40, 64, 68, 257, 768, 1152};
const std::vector<uint32_t> kRowCounts = {1, 5, 16, 37};

Input rowsOf(uint32_t rows, uint32_t width, uint32_t seed, float scale = 1.0f) {
  return Input::ofRows(rows, width, randomFloats(rows * width, seed, scale));
}

reference::Matrix absolute(reference::Matrix m) {
  for (double &value : m.values)
    value = std::fabs(value);
  return m;
}

reference::Matrix ones(size_t rows, size_t cols) {
  reference::Matrix m(rows, cols);
  std::fill(m.values.begin(), m.values.end(), 1.0);
  return m;
}

std::vector<float> toFloats(const reference::Matrix &m) { return {m.values.begin(), m.values.end()}; }

/// 40 tokens in sequences of many lengths, with empty ones at both ends and in the middle.
BatchSpec raggedBatch() {
  BatchSpec batch{{0, 1, 7, 0, 0, 16, 2, 13, 1, 0}, {}, {}};
  for (uint32_t t = 0; t < batch.tokens(); ++t) {
    batch.ids.push_back(t * 17 % 23);
    batch.types.push_back(t % 2);
  }
  return batch;
}

} // namespace

TEST(RowsTest, LayerNormMatchesReference) {
  for (uint32_t width : kWidths)
    for (uint32_t rows : kRowCounts)
      for (int flags = 0; flags < 4; ++flags) {
        if (flags != 3 && rows != 5)
          continue;
        KernelKey key = KernelKey::layerNorm(width, 1e-5f, flags & 1, flags & 2);
        std::vector<Input> inputs;
        std::vector<double> weight, bias;
        if (flags & 1) {
          inputs.push_back(Input::vector(randomFloats(width, 1)));
          weight = inputs.back().doubles();
        }
        if (flags & 2) {
          inputs.push_back(Input::vector(randomFloats(width, 2)));
          bias = inputs.back().doubles();
        }
        inputs.push_back(rowsOf(rows, width, width + rows));
        for (float &value : inputs.back().values)
          value += 3.0f; // a mean that two passes subtract cleanly
        std::vector<float> got = runEveryWay(key, inputs, plainBatch(rows), rows, width);
        reference::Matrix x = inputs.back().matrix();
        reference::Matrix wanted = reference::layerNorm(x, weight, bias, 1e-5f);
        // A difference to the mean errs by what x errs, and is scaled by weight / deviation.
        reference::Matrix magnitude(rows, width);
        for (size_t r = 0; r < rows; ++r)
          for (size_t c = 0; c < width; ++c) {
            double largest = 0, variance = 0, mean = 0;
            for (size_t i = 0; i < width; ++i) {
              largest = std::max(largest, std::fabs(x(r, i)));
              mean += x(r, i) / width;
            }
            for (size_t i = 0; i < width; ++i)
              variance += (x(r, i) - mean) * (x(r, i) - mean) / width;
            magnitude(r, c) = largest / std::sqrt(variance + 1e-5) * (weight.empty() ? 1.0 : std::fabs(weight[c])) +
                              std::fabs(wanted(r, c));
          }
        expectClose(got, wanted, magnitude, 12, kernelSymbol(key));
      }
}

// [R24] The mean of equal values is that value, so nothing is left but the bias.
TEST(RowsTest, LayerNormOfConstantRowIsBias) {
  KernelKey key = KernelKey::layerNorm(256, 1e-12f);
  Input weight = Input::vector(randomFloats(256, 1)), bias = Input::vector(randomFloats(256, 2));
  Input x = Input::ofRows(3, 256, std::vector<float>(3 * 256, 1234.0f));
  std::vector<float> got = runEveryWay(key, {weight, bias, x}, plainBatch(3), 3, 256);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], bias.values[i % 256]);
}

TEST(RowsTest, LayerNormStaysFiniteForLargeRows) {
  KernelKey key = KernelKey::layerNorm(384, 1e-12f, false, false);
  Input x = rowsOf(4, 384, 9, 1e15f);
  std::vector<float> got = runEveryWay(key, {x}, plainBatch(4), 4, 384);
  expectClose(got, reference::layerNorm(x.matrix(), {}, {}, 1e-12f), ones(4, 384), 64, "large rows");
}

TEST(RowsTest, RmsNormMatchesReference) {
  for (uint32_t width : kOddWidths)
    for (uint32_t rows : {0u, 3u, 4u, 5u, 13u})
      for (bool weighted : {true, false}) {
        if (!weighted && rows != 5)
          continue;
        KernelKey key = KernelKey::rmsNorm(width, 1e-5f, weighted);
        std::vector<Input> inputs;
        if (weighted)
          inputs.push_back(Input::vector(randomFloats(width, 1)));
        std::vector<double> weight = weighted ? inputs[0].doubles() : std::vector<double>();
        inputs.push_back(rowsOf(rows, width, width + rows));
        std::vector<float> got = runEveryWay(key, inputs, plainBatch(rows), rows, width);
        reference::Matrix wanted = reference::rmsNorm(inputs.back().matrix(), weight, 1e-5f);
        expectClose(got, wanted, absolute(wanted), 8, kernelSymbol(key));
      }
}

TEST(RowsTest, RmsNormOfZeroRowIsZeroAndOfNanIsNan) {
  Input x = Input::ofRows(6, 20, std::vector<float>(120, 0.0f));
  x.values[25] = NAN;
  std::vector<float> got = runEveryWay(KernelKey::rmsNorm(20, 1e-6f, false), {x}, plainBatch(6), 6, 20);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(i / 20 == 1 ? std::isnan(got[i]) : got[i] == 0.0f) << i;
}

TEST(RowsTest, SoftmaxMatchesReference) {
  for (uint32_t width : kOddWidths)
    for (uint32_t rows : {0u, 1u, 5u})
      for (float scale : {1.0f, 20.0f}) {
        KernelKey key = KernelKey::softmax(width);
        Input x = rowsOf(rows, width, width + rows, scale);
        std::vector<float> got = runEveryWay(key, {x}, plainBatch(rows), rows, width);
        reference::Matrix wanted = reference::softmax(x.matrix()), magnitude(rows, width);
        // x - max is rounded once, which weighs by its size; e^x flushes below 2^-126.
        for (size_t r = 0; r < rows; ++r) {
          double most = *std::max_element(&x.values[r * width], &x.values[r * width] + width);
          for (size_t c = 0; c < width; ++c)
            magnitude(r, c) = wanted(r, c) * (8 + most - x.values[r * width + c]);
        }
        expectClose(got, wanted, magnitude, 1, kernelSymbol(key), 0x1p-126);
      }
}

// As in PyTorch: what is -inf has no share; a NaN, +inf or nothing but -inf makes the row NaN, and no other.
TEST(RowsTest, SoftmaxOfInfinitiesAndNan) {
  constexpr uint32_t kWidth = 37;
  Input x = rowsOf(7, kWidth, 3);
  auto row = [&](size_t r) { return x.values.begin() + static_cast<ptrdiff_t>(r * kWidth); };
  row(1)[0] = NAN;
  row(2)[36] = NAN;
  row(3)[20] = INFINITY;
  std::fill(row(4), row(5), -INFINITY);
  std::fill(row(5), row(6), -INFINITY);
  row(5)[33] = 2.0f;
  std::vector<float> got = runEveryWay(KernelKey::softmax(kWidth), {x}, plainBatch(7), 7, kWidth);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(std::isnan(got[i]), i / kWidth >= 1 && i / kWidth <= 4)
        << "row " << i / kWidth << " column " << i % kWidth;
  for (size_t c = 0; c < kWidth; ++c)
    EXPECT_EQ(got[5 * kWidth + c], c == 33 ? 1.0f : 0.0f);
}

TEST(RowsTest, GatedMatchesReference) {
  for (ActivationKind act : {ActivationKind::GeluErf, ActivationKind::Silu, ActivationKind::GeluTanh,
                             ActivationKind::Relu, ActivationKind::Sigmoid})
    for (uint32_t width : kOddWidths)
      for (bool second : {false, true})
        for (uint32_t rows : {0u, 1u, 6u}) {
          if (act != ActivationKind::GeluErf && width != 40)
            continue;
          KernelKey key = KernelKey::gated(width, act, second);
          Input x = rowsOf(rows, 2 * width, width, 2.0f);
          std::vector<float> got = runEveryWay(key, {x}, plainBatch(rows), rows, width);
          reference::Matrix wanted = reference::gated(x.matrix(), act, second), magnitude(rows, width);
          for (size_t r = 0; r < rows; ++r)
            for (size_t c = 0; c < width; ++c)
              magnitude(r, c) =
                  (1 + std::fabs(x.values[r * 2 * width + c])) * (1 + std::fabs(x.values[r * 2 * width + width + c]));
          expectClose(got, wanted, magnitude, 4, kernelSymbol(key));
        }
}

TEST(RowsTest, GatedKeepsNanInItsColumn) {
  for (bool second : {false, true}) {
    Input x = rowsOf(3, 46, 5);
    x.values[46 + 3] = NAN;          // first half
    x.values[46 + 23 + 20] = NAN;    // second half
    x.values[2 * 46 + 7] = INFINITY; // times a number
    std::vector<float> got = runEveryWay(KernelKey::gated(23, ActivationKind::Silu, second), {x}, plainBatch(3), 3, 23);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(std::isnan(got[i]), i == 23 + 3 || i == 23 + 20) << i;
    EXPECT_TRUE(std::isinf(got[2 * 23 + 7]));
  }
}

TEST(RowsTest, L2NormalizeMatchesReference) {
  for (uint32_t width : kWidths)
    for (uint32_t rows : kRowCounts) {
      KernelKey key = KernelKey::l2Normalize(width, 1e-12f);
      Input x = rowsOf(rows, width, width + rows);
      std::vector<float> got = runEveryWay(key, {x}, plainBatch(rows), rows, width);
      expectClose(got, reference::l2Normalize(x.matrix(), 1e-12f), ones(rows, width), 8, kernelSymbol(key));
    }
}

TEST(RowsTest, L2NormalizeOfZeroRowIsZeroAndOfNanIsNan) {
  KernelKey key = KernelKey::l2Normalize(20, 1e-12f);
  Input x = Input::ofRows(2, 20, std::vector<float>(40, 0.0f));
  x.values[25] = NAN;
  std::vector<float> got = runEveryWay(key, {x}, plainBatch(2), 2, 20);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(got[i], 0.0f);
    EXPECT_TRUE(std::isnan(got[20 + i]));
  }
}

TEST(RowsTest, ActivationMatchesReference) {
  for (ActivationKind act : {ActivationKind::GeluErf, ActivationKind::GeluTanh, ActivationKind::Relu,
                             ActivationKind::Silu, ActivationKind::Tanh, ActivationKind::Sigmoid})
    for (uint32_t width : {2u, 17u, 384u}) {
      KernelKey key = KernelKey::activation(width, act);
      Input x = rowsOf(5, width, width, 2.0f);
      std::vector<float> got = runEveryWay(key, {x}, plainBatch(5), 5, width);
      reference::Matrix magnitude = act == ActivationKind::Sigmoid ? ones(5, width) : absolute(x.matrix());
      expectClose(got, reference::activation(x.matrix(), act), magnitude, 4, kernelSymbol(key));
    }
}

TEST(RowsTest, AddMatchesReference) {
  for (uint32_t width : kWidths)
    for (uint32_t rows : kRowCounts) {
      Input a = rowsOf(rows, width, 1), b = rowsOf(rows, width, 2);
      std::vector<float> got = runEveryWay(KernelKey::add(width), {a, b}, plainBatch(rows), rows, width);
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], a.values[i] + b.values[i]);
    }
}

TEST(RowsTest, SliceCopiesColumns) {
  struct Case {
    uint32_t widthIn, begin, width;
  };
  for (Case c : {Case{48, 40, 8}, Case{50, 0, 50}, Case{50, 49, 1}, Case{64, 1, 63}, Case{100, 33, 32}, Case{16, 15, 1},
                 Case{384, 128, 128}, Case{31, 7, 17}})
    for (uint32_t rows : {1u, 9u}) {
      Input x = rowsOf(rows, c.widthIn, c.begin);
      KernelKey key = KernelKey::slice(c.widthIn, c.begin, c.width);
      std::vector<float> got = runEveryWay(key, {x}, plainBatch(rows), rows, c.width);
      expectSameBits(got, toFloats(reference::slice(x.matrix(), c.begin, c.width)), c.width, kernelSymbol(key));
    }
}

TEST(RowsTest, ConcatColsPutsRowsSideBySide) {
  for (const std::vector<int64_t> &widths : std::vector<std::vector<int64_t>>{
           {16}, {8, 24}, {50, 1, 13}, {384, 384}, {1, 1, 1, 1, 1, 1}, {17, 31, 64}, {15, 33}}) {
    std::vector<Input> inputs;
    std::vector<reference::Matrix> parts;
    for (int64_t width : widths) {
      inputs.push_back(rowsOf(7, static_cast<uint32_t>(width), static_cast<uint32_t>(width + inputs.size())));
      parts.push_back(inputs.back().matrix());
    }
    reference::Matrix wanted = reference::concatCols(parts);
    KernelKey key = KernelKey::concatCols(widths);
    std::vector<float> got = runEveryWay(key, inputs, plainBatch(7), 7, static_cast<uint32_t>(wanted.cols));
    expectSameBits(got, toFloats(wanted), wanted.cols, kernelSymbol(key));
  }
}

TEST(RowsTest, EmbedAddsTablesInOrder) {
  BatchSpec batch = raggedBatch();
  uint32_t tokens = batch.tokens();
  for (uint32_t width : {2u, 16u, 50u, 384u})
    for (int flags = 1; flags < 8; ++flags)
      for (bool withTypes : {true, false}) {
        bool words = flags & 1, types = flags & 2, positions = flags & 4;
        int64_t offset = positions && words ? 2 : 0;
        BatchSpec b = batch;
        if (!withTypes)
          b.types.clear();
        std::vector<Input> inputs;
        std::vector<float> wanted(tokens * width);
        bool first = true;
        auto addRow = [&](uint32_t token, const Input &table, size_t row) {
          for (size_t c = 0; c < width; ++c) {
            float value = table.values[row * width + c];
            wanted[token * width + c] = first ? value : wanted[token * width + c] + value;
          }
        };
        if (words) {
          inputs.push_back(Input::table(23, width, randomFloats(23 * width, 1)));
          for (uint32_t t = 0; t < tokens; ++t)
            addRow(t, inputs.back(), b.ids[t]);
          first = false;
        }
        if (types) {
          inputs.push_back(Input::table(2, width, randomFloats(2 * width, 2)));
          for (uint32_t t = 0; t < tokens; ++t)
            addRow(t, inputs.back(), withTypes ? b.types[t] : 0);
          first = false;
        }
        if (positions) {
          inputs.push_back(Input::table(18, width, randomFloats(18 * width, 3)));
          std::vector<uint32_t> offsets = b.cuSeqlens();
          for (size_t s = 0; s + 1 < offsets.size(); ++s)
            for (uint32_t t = offsets[s]; t < offsets[s + 1]; ++t)
              addRow(t, inputs.back(), offset + t - offsets[s]);
        }
        KernelKey key = KernelKey::embed(width, words, types, positions, offset);
        expectSameBits(runEveryWay(key, inputs, b, tokens, width), wanted, width, kernelSymbol(key));
      }
}

TEST(RowsTest, PoolMatchesReference) {
  BatchSpec batch = raggedBatch();
  uint32_t seqs = static_cast<uint32_t>(batch.lengths.size());
  for (uint32_t width : {2u, 16u, 50u, 64u, 65u, 100u, 384u})
    for (PoolKind kind : {PoolKind::Cls, PoolKind::Last, PoolKind::Mean, PoolKind::MeanSqrtLen, PoolKind::Max}) {
      KernelKey key = KernelKey::pooling(width, kind);
      Input x = rowsOf(batch.tokens(), width, width);
      std::vector<float> got = runEveryWay(key, {x}, batch, seqs, width);
      reference::Matrix magnitude = reference::pool(absolute(x.matrix()), batch.cuSeqlens(),
                                                    kind == PoolKind::Max ? PoolKind::MeanSqrtLen : kind);
      bool copies = kind == PoolKind::Cls || kind == PoolKind::Last || kind == PoolKind::Max;
      expectClose(got, reference::pool(x.matrix(), batch.cuSeqlens(), kind), magnitude, copies ? 0 : 16,
                  kernelSymbol(key));
    }
}

TEST(RowsTest, PoolKeepsNanInItsSequence) {
  BatchSpec batch = raggedBatch();
  uint32_t seqs = static_cast<uint32_t>(batch.lengths.size());
  for (PoolKind kind : {PoolKind::Mean, PoolKind::Max}) {
    Input x = rowsOf(batch.tokens(), 20, 4);
    x.values[3 * 20 + 5] = NAN; // in sequence 2, not its last row
    std::vector<float> got = runEveryWay(KernelKey::pooling(20, kind), {x}, batch, seqs, 20);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(std::isnan(got[i]), i == 2 * 20 + 5) << poolKindName(kind).str() << " element " << i;
  }
}
