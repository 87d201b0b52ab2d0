// linear against its reference, and its bits: any row count, partition, place and target.
#include "tests/kernels/KernelHarness.h"

#include <cmath>

using namespace batten;
using namespace batten::test;

namespace {

struct LinearCase {
  KernelKey key;
  std::vector<Input> inputs;
  uint32_t rows;
};

LinearCase makeCase(const KernelKey &key, uint32_t rows, float xScale = 1.0f) {
  uint32_t seed = static_cast<uint32_t>(key.k * 31 + key.n * 7 + rows);
  LinearCase c{key, {}, rows};
  c.inputs.push_back(Input::ofRows(rows, key.k, randomFloats(rows * key.k, seed, xScale)));
  c.inputs.push_back(Input::panels(key.n, key.k, randomFloats(key.n * key.k, seed + 1, 0.5f)));
  if (key.bias)
    c.inputs.push_back(Input::vector(randomFloats(key.n, seed + 2)));
  if (key.residual)
    c.inputs.push_back(Input::ofRows(rows, key.n, randomFloats(rows * key.n, seed + 3)));
  return c;
}

reference::Matrix absolute(reference::Matrix m) {
  for (double &value : m.values)
    value = std::fabs(value);
  return m;
}

/// Runs a case every way and compares it with the reference. The tolerance is relative to the sum of the magnitudes that
/// an output adds up: a chain of k roundings stays below k/2 units of 2^-24 of it, and far below on random data.
void check(const LinearCase &c) {
  const KernelKey &key = c.key;
  std::vector<float> got = runEveryWay(key, c.inputs, plainBatch(c.rows), c.rows, static_cast<uint32_t>(key.n));
  reference::Matrix x = c.inputs[0].matrix(), w = c.inputs[1].matrix();
  std::vector<double> bias = key.bias ? c.inputs[2].doubles() : std::vector<double>();
  reference::Matrix wanted = reference::activation(reference::linear(x, w, bias), key.act);
  std::vector<double> absoluteBias = bias;
  for (double &value : absoluteBias)
    value = std::fabs(value);
  reference::Matrix magnitude = reference::linear(absolute(x), absolute(w), absoluteBias);
  if (key.residual) {
    reference::Matrix residual = c.inputs.back().matrix();
    wanted = reference::add(wanted, residual);
    magnitude = reference::add(magnitude, absolute(residual));
  }
  expectClose(got, wanted, magnitude, 2.0 + std::sqrt(static_cast<double>(key.k)), kernelSymbol(key));
}

} // namespace

TEST(LinearTest, MatchesReferenceAtEveryRowCount) {
  KernelKey key = KernelKey::linear(50, 96, true);
  for (uint32_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 11u, 12u, 13u, 14u, 15u, 27u, 28u, 29u, 37u, 500u})
    check(makeCase(key, rows));
}

TEST(LinearTest, MatchesReferenceAtOddWidths) {
  for (auto [k, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1},
                                                              {1, 33},
                                                              {2, 2},
                                                              {32, 2},
                                                              {17, 16},
                                                              {33, 17},
                                                              {50, 50},
                                                              {50, 32},
                                                              {7, 48},
                                                              {100, 129},
                                                              {3, 80},
                                                              {64, 160}})
    for (uint32_t rows : {1u, 2u, 3u, 6u, 14u, 15u, 31u})
      check(makeCase(KernelKey::linear(k, n, true), rows));
}

TEST(LinearTest, MatchesReferenceWithEveryEpilogue) {
  for (bool bias : {false, true})
    for (bool residual : {false, true})
      for (ActivationKind act : {ActivationKind::None, ActivationKind::GeluErf, ActivationKind::GeluTanh,
                                 ActivationKind::Relu, ActivationKind::Silu, ActivationKind::Tanh})
        for (uint32_t rows : {2u, 15u})
          check(makeCase(KernelKey::linear(40, 72, bias, act, residual), rows));
}

TEST(LinearTest, MatchesReferenceOnTheModelsShapes) {
  check(makeCase(KernelKey::linear(384, 1152, true), 17));
  check(makeCase(KernelKey::linear(384, 384, true, ActivationKind::None, true), 64));
  check(makeCase(KernelKey::linear(384, 1536, true, ActivationKind::GeluErf), 13));
  check(makeCase(KernelKey::linear(1536, 384, true, ActivationKind::None, true), 29));
  check(makeCase(KernelKey::linear(1024, 64, true), 30)); // the stride that would alias
}

// 8192 rows of a 2-wide head are many slabs of one panel.
TEST(LinearTest, MatchesReferenceOverManySlabs) {
  check(makeCase(KernelKey::linear(32, 2, true), 2000));
  check(makeCase(KernelKey::linear(768, 40, true), 1009));
}

TEST(LinearTest, RowAloneHasTheBitsItHasInABatch) {
  KernelKey key = KernelKey::linear(50, 129, true, ActivationKind::GeluErf, true);
  LinearCase batch = makeCase(key, 97);
  for (const std::string &target : runnableTargets()) {
    std::vector<float> all = runKernel(target, key, batch.inputs, plainBatch(97), 97, 129);
    for (uint32_t count : {1u, 2u, 3u, 4u, 7u, 14u})
      for (uint32_t row = 0; row + count <= 97; row += 5) {
        std::vector<Input> some = someRows(batch.inputs, row, count);
        std::vector<float> alone = runKernel(target, key, some, plainBatch(count), count, 129);
        expectSameBits(alone, {all.begin() + row * 129, all.begin() + (row + count) * 129}, 129,
                       target + ": rows from " + std::to_string(row));
      }
  }
}

TEST(LinearTest, NanStaysInItsRow) {
  KernelKey key = KernelKey::linear(50, 40, true, ActivationKind::GeluErf, true);
  LinearCase c = makeCase(key, 29);
  LinearCase dirty = c;
  dirty.inputs[0].values[11 * 50 + 3] = NAN;
  for (const std::string &target : runnableTargets()) {
    std::vector<float> clean = runKernel(target, key, c.inputs, plainBatch(29), 29, 40);
    std::vector<float> got = runKernel(target, key, dirty.inputs, plainBatch(29), 29, 40);
    for (size_t i = 0; i < got.size(); ++i)
      if (i / 40 == 11)
        EXPECT_TRUE(std::isnan(got[i]));
      else
        EXPECT_EQ(got[i], clean[i]);
  }
}

TEST(LinearTest, DenormalsAreTakenAsZero) {
  KernelKey key = KernelKey::linear(64, 32, false);
  LinearCase c = makeCase(key, 15, 1e-41f);
  for (const std::string &target : runnableTargets())
    for (float value : runKernel(target, key, c.inputs, plainBatch(15), 15, 32))
      ASSERT_EQ(value, 0.0f);
}
