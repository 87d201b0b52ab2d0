// The packer against plain loops over tensors in memory: layouts, streaming over block borders, exact widening of every
// 16-bit pattern, misaligned sources, values that are not finite.
#include "compiler/layout/PackLayout.h"
#include "compiler/layout/WeightPacker.h"
#include "compiler/layout/WeightStorage.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

using namespace batten::layout;

namespace {

/// Tensors whose bytes start one past an even address, so that a typed read of them is misaligned.
class MemorySource : public TensorSource {
public:
  struct Tensor {
    Elem elem;
    int64_t elements;
    std::vector<uint8_t> bytes;
  };
  std::map<std::string, Tensor> tensors;
  int64_t mostRead = 0;

  void add(const std::string &name, const std::vector<float> &values) {
    Tensor t{Elem::F32, static_cast<int64_t>(values.size()), std::vector<uint8_t>(1 + 4 * values.size())};
    std::memcpy(t.bytes.data() + 1, values.data(), 4 * values.size());
    tensors[name] = std::move(t);
  }
  void add16(const std::string &name, Elem elem, const std::vector<uint16_t> &values) {
    Tensor t{elem, static_cast<int64_t>(values.size()), std::vector<uint8_t>(1 + 2 * values.size())};
    std::memcpy(t.bytes.data() + 1, values.data(), 2 * values.size());
    tensors[name] = std::move(t);
  }
  bool find(const std::string &dir, const std::string &tensor, Info &info, std::string &error) override {
    auto it = tensors.find(tensor);
    if (it == tensors.end()) {
      error = tensor + ": missing";
      return false;
    }
    info = {it->second.elem, it->second.elements, "model.safetensors: " + tensor};
    return true;
  }
  bool read(const std::string &dir, const std::string &tensor, int64_t first, int64_t count, uint8_t *out,
            std::string &error) override {
    const Tensor &t = tensors.at(tensor);
    int64_t size = elemBytes(t.elem);
    EXPECT_LE((first + count) * size + 1, static_cast<int64_t>(t.bytes.size()));
    std::memcpy(out, t.bytes.data() + 1 + first * size, static_cast<size_t>(count * size));
    mostRead = std::max(mostRead, count);
    return true;
  }
};

class MemorySink : public ByteSink {
public:
  std::vector<uint8_t> bytes;
  size_t room = SIZE_MAX;
  bool write(const uint8_t *data, size_t count, std::string &error) override {
    if (count > room - bytes.size()) {
      error = "sink is full";
      return false;
    }
    bytes.insert(bytes.end(), data, data + count);
    return true;
  }
  std::vector<float> floats() const {
    std::vector<float> out(bytes.size() / 4);
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
};

WeightExpr tensor(std::string name, int64_t rows, int64_t cols) {
  WeightExpr e;
  e.tensor = std::move(name);
  e.rows = rows;
  e.cols = cols;
  return e;
}

WeightExpr node(WeightExpr::Kind kind, std::vector<WeightExpr> operands, int64_t rows, int64_t cols, float scale = 1) {
  WeightExpr e;
  e.kind = kind;
  e.operands = std::move(operands);
  e.rows = rows;
  e.cols = cols;
  e.scale = scale;
  return e;
}

PackEntry entry(Layout layout, WeightExpr expr) {
  PackEntry e;
  e.name = "w";
  e.layout = layout;
  e.rows = expr.rows;
  e.cols = expr.cols;
  e.expr = std::move(expr);
  return e;
}

std::vector<float> randoms(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float &v : out)
    v = static_cast<float>(random()) / 4e9f - 0.5f;
  return out;
}

WeightExpr rope(float theta, int64_t rows, int64_t cols, float divisor = 1.0f) {
  WeightExpr e = node(WeightExpr::Kind::Rope, {}, rows, cols);
  e.theta = theta;
  e.divisor = divisor;
  return e;
}

using Kind = WeightExpr::Kind;

} // namespace

TEST(WeightPackerTest, PanelsMatchTheDefinition) {
  for (auto [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {2, 50}, {31, 7}, {32, 16}, {33, 5}, {97, 384}, {2000, 300}}) {
    MemorySource source;
    std::vector<float> w = randoms(static_cast<size_t>(n * k), 11);
    source.add("w", w);
    MemorySink sink;
    std::string error;
    ASSERT_TRUE(packEntry(entry(Layout::Panels, tensor("w", n, k)), source, sink, error)) << error;
    std::vector<float> got = sink.floats();
    int64_t panels = (n + 31) / 32;
    ASSERT_EQ(static_cast<int64_t>(got.size()), (panels * k * 32 + 15) / 16 * 16);
    for (int64_t row = 0; row < panels * 32; ++row)
      for (int64_t col = 0; col < k; ++col)
        ASSERT_EQ(got[static_cast<size_t>(((row / 32) * k + col) * 32 + row % 32)],
                  row < n ? w[static_cast<size_t>(row * k + col)] : 0.0f)
            << n << "x" << k << " at " << row << ", " << col;
  }
}

TEST(WeightPackerTest, TablesAndVectorsAreDenseWithZerosAfter) {
  MemorySource source;
  std::vector<float> w = randoms(3 * 21, 5);
  source.add("w", w);
  MemorySink table, vector;
  std::string error;
  ASSERT_TRUE(packEntry(entry(Layout::Table, tensor("w", 3, 21)), source, table, error)) << error;
  ASSERT_TRUE(packEntry(entry(Layout::Vector, tensor("w", 1, 63)), source, vector, error)) << error;
  for (const MemorySink *sink : {&table, &vector}) {
    EXPECT_EQ(sink->bytes.size() % 64, 0u);
    std::vector<float> got = sink->floats();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], i < w.size() ? w[i] : 0.0f) << i;
  }
  EXPECT_EQ(table.bytes.size(), 320u); // (2*21 + 32) * 4 = 296
  EXPECT_EQ(vector.bytes.size(), 256u);
}

TEST(WeightPackerTest, ConcatJoinsRowsAndVectors) {
  MemorySource source;
  source.add("a", randoms(40 * 9, 1));
  source.add("b", randoms(3 * 9, 2));
  source.add("c", randoms(50 * 9, 3));
  std::vector<float> all;
  for (const char *name : {"a", "b", "c"}) {
    std::vector<float> values(static_cast<size_t>(source.tensors[name].elements));
    std::memcpy(values.data(), source.tensors[name].bytes.data() + 1, 4 * values.size());
    all.insert(all.end(), values.begin(), values.end());
  }
  std::string error;
  MemorySink rows, flat;
  WeightExpr joined = node(Kind::Concat, {tensor("a", 40, 9), tensor("b", 3, 9), tensor("c", 50, 9)}, 93, 9);
  ASSERT_TRUE(packEntry(entry(Layout::Table, joined), source, rows, error)) << error;
  WeightExpr vector = node(Kind::Concat, {tensor("a", 1, 360), tensor("b", 1, 27), tensor("c", 1, 450)}, 1, 837);
  ASSERT_TRUE(packEntry(entry(Layout::Vector, vector), source, flat, error)) << error;
  for (const MemorySink *sink : {&rows, &flat}) {
    std::vector<float> got = sink->floats();
    ASSERT_GE(got.size(), all.size());
    EXPECT_EQ(std::memcmp(got.data(), all.data(), 4 * all.size()), 0);
  }
}

TEST(WeightPackerTest, ScaleTransposeAndCastNest) {
  MemorySource source;
  std::vector<float> w = randoms(700 * 900, 4);
  source.add("w", w);
  WeightExpr turned = node(Kind::Transpose, {tensor("w", 700, 900)}, 900, 700);
  WeightExpr expr = node(Kind::Cast, {node(Kind::Scale, {turned}, 900, 700, 0.125f)}, 900, 700);
  MemorySink sink;
  std::string error;
  ASSERT_TRUE(packEntry(entry(Layout::Table, expr), source, sink, error)) << error;
  std::vector<float> got = sink.floats();
  for (size_t r = 0; r < 900; ++r)
    for (size_t c = 0; c < 700; ++c)
      ASSERT_EQ(got[r * 700 + c], w[c * 900 + r] * 0.125f) << r << ", " << c;
}

TEST(WeightPackerTest, R39_ReadsInBlocksNotWholeTensors) {
  MemorySource source;
  source.add("w", randoms(4000 * 1000, 6));
  MemorySink sink;
  std::string error;
  ASSERT_TRUE(packEntry(entry(Layout::Panels, tensor("w", 4000, 1000)), source, sink, error)) << error;
  EXPECT_LE(source.mostRead, 300 * 1000);
}

TEST(WeightPackerTest, R8_EveryBF16WidensExactly) {
  for (uint32_t bits = 0; bits < 65536; ++bits)
    ASSERT_EQ(std::bit_cast<uint32_t>(widenBF16(static_cast<uint16_t>(bits))), bits << 16);
}

TEST(WeightPackerTest, R8_EveryF16WidensExactly) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float got = widenF16(static_cast<uint16_t>(bits));
    int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
    if (exponent == 31) {
      ASSERT_TRUE(mantissa ? std::isnan(got) : std::isinf(got)) << bits;
    } else {
      double want = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
      ASSERT_EQ(static_cast<double>(std::fabs(got)), want) << bits;
    }
    ASSERT_EQ(std::signbit(got), (bits & 0x8000) != 0) << bits;
  }
}

TEST(WeightPackerTest, R8_TypesMixInOneExpression) {
  MemorySource source;
  source.add("a", {1.5f, -2.25f});
  source.add16("b", Elem::BF16, {0x3F80, 0x0001, 0xFF7F});
  source.add16("c", Elem::F16, {0x3C00, 0x0001, 0xFBFF});
  WeightExpr expr = node(Kind::Concat, {tensor("a", 1, 2), tensor("b", 1, 3), tensor("c", 1, 3)}, 1, 8);
  float got[8];
  std::string error;
  ASSERT_TRUE(evaluate(expr, source, got, error)) << error;
  const float want[8] = {
      1.5f,     -2.25f, 1.0f, std::ldexp(1.0f, -133), std::bit_cast<float>(0xFF7F0000u), 1.0f, std::ldexp(1.0f, -24),
      -65504.0f};
  EXPECT_EQ(std::memcmp(got, want, sizeof(want)), 0);
}

TEST(WeightPackerTest, R8_NaNAndInfAreReportedWithTheirPlace) {
  for (auto [value, text] : {std::pair<float, const char *>{NAN, "NaN"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}}) {
    MemorySource source;
    std::vector<float> w = randoms(1000 * 700, 9);
    w[999 * 700 + 13] = value;
    source.add("deep.weight", w);
    MemorySink sink;
    std::string error;
    EXPECT_FALSE(packEntry(entry(Layout::Panels, tensor("deep.weight", 1000, 700)), source, sink, error));
    EXPECT_EQ(error, std::string("model.safetensors: deep.weight: ") + text + " at row 999, column 13");
  }
  MemorySource source;
  source.add16("b", Elem::BF16, {0x3F80, 0x7F80});
  source.add16("h", Elem::F16, {0x3C00, 0x7C01});
  float out[2];
  std::string error;
  EXPECT_FALSE(evaluate(tensor("b", 1, 2), source, out, error));
  EXPECT_EQ(error, "model.safetensors: b: inf at row 0, column 1");
  EXPECT_FALSE(evaluate(tensor("h", 1, 2), source, out, error));
  EXPECT_EQ(error, "model.safetensors: h: NaN at row 0, column 1");
}

TEST(WeightPackerTest, AScaledWeightThatOverflowsIsReported) {
  MemorySource source;
  source.add("w", {1.0f, 3e38f});
  float out[2];
  std::string error;
  EXPECT_FALSE(evaluate(node(Kind::Scale, {tensor("w", 1, 2)}, 1, 2, 2.0f), source, out, error));
  EXPECT_EQ(error, "w times 2 is not finite at row 0, column 1");
}

// Frequencies and angles are rounded to f32 step by step, as PyTorch does it; the functions of the angle once.
TEST(WeightPackerTest, RopeTablesRoundFrequencyAndAngle) {
  MemorySource source;
  std::string error;
  size_t movedByRounding = 0;
  for (auto [theta, divisor] :
       {std::pair(10000.0f, 1.0f), {160000.0f, 1.0219f}, {300.0f, 1.0f}, {1e6f, 3.0f}, {0.5f, 0.75f}})
    for (int64_t cols : {2, 8, 26, 64, 128}) {
      int64_t rows = 9000, half = cols / 2;
      std::vector<float> got(static_cast<size_t>(rows * cols));
      ASSERT_TRUE(evaluate(rope(theta, rows, cols, divisor), source, got.data(), error)) << error;
      for (int64_t j = 0; j < half; ++j) {
        float exponent = static_cast<float>(2 * j) / static_cast<float>(cols);
        float power = static_cast<float>(std::pow(static_cast<long double>(theta), static_cast<long double>(exponent)));
        float frequency = 1.0f / power / divisor;
        for (int64_t p : {0, 1, 2, 100, 511, 512, 4095, 8191, 8999}) {
          float angle = static_cast<float>(p) * frequency;
          float cosine = got[static_cast<size_t>(p * cols + j)], sine = got[static_cast<size_t>(p * cols + half + j)];
          ASSERT_EQ(cosine, static_cast<float>(std::cos(static_cast<long double>(angle))))
              << theta << " " << p << " " << j;
          ASSERT_EQ(sine, static_cast<float>(std::sin(static_cast<long double>(angle))))
              << theta << " " << p << " " << j;
          // Five roundings, each half a unit of the angle at most; the power's exponent weighs by the logarithm of theta.
          double exact = static_cast<double>(p) *
                         std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(cols)) / divisor;
          double allowed = 0x1p-24 * (1 + exact * (4 + std::fabs(std::log(theta))));
          ASSERT_NEAR(cosine, std::cos(exact), allowed) << theta << " " << p << " " << j;
          ASSERT_NEAR(sine, std::sin(exact), allowed) << theta << " " << p << " " << j;
          movedByRounding += sine != static_cast<float>(std::sin(exact));
        }
      }
    }
  EXPECT_GT(movedByRounding, 1000u);
}

TEST(WeightPackerTest, RopeTablesArePackedDenseInBlocks) {
  MemorySource source;
  MemorySink sink;
  std::string error;
  int64_t rows = 40000, cols = 26; // several blocks
  ASSERT_TRUE(packEntry(entry(Layout::Table, rope(10000.0f, rows, cols)), source, sink, error)) << error;
  std::vector<float> whole(static_cast<size_t>(rows * cols)), got = sink.floats();
  ASSERT_TRUE(evaluate(rope(10000.0f, rows, cols), source, whole.data(), error)) << error;
  ASSERT_EQ(static_cast<int64_t>(sink.bytes.size()), entryBytes(Layout::Table, Elem::F32, rows, cols));
  ASSERT_GE(got.size(), whole.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], i < whole.size() ? whole[i] : 0.0f) << i;
  EXPECT_FALSE(packEntry(entry(Layout::Table, rope(10000.0f, 4, 7)), source, sink, error));
  EXPECT_EQ(error, "rope table of 7 columns, an even number wanted");
}

TEST(WeightPackerTest, RefusesShapesThatDisagree) {
  MemorySource source;
  source.add("w", randoms(20, 1));
  float out[64];
  std::string error;
  EXPECT_FALSE(evaluate(tensor("w", 3, 7), source, out, error));
  EXPECT_EQ(error, "model.safetensors: w: [3, 7] wanted, 20 elements found");
  EXPECT_FALSE(evaluate(tensor("gone", 4, 5), source, out, error));
  EXPECT_EQ(error, "gone: missing");
  EXPECT_FALSE(evaluate(tensor("w", int64_t(1) << 62, 4), source, out, error));
  EXPECT_FALSE(evaluate(tensor("w", 0, 4), source, out, error));
  EXPECT_FALSE(evaluate(node(Kind::Transpose, {tensor("w", 4, 5)}, 4, 5), source, out, error));
  EXPECT_FALSE(evaluate(node(Kind::Concat, {tensor("w", 4, 5), tensor("w", 4, 5)}, 8, 6), source, out, error));
  EXPECT_FALSE(evaluate(node(Kind::Concat, {}, 4, 5), source, out, error));
  EXPECT_FALSE(evaluate(node(Kind::Scale, {tensor("w", 4, 5), tensor("w", 4, 5)}, 4, 5), source, out, error));
  MemorySink sink;
  PackEntry stored = entry(Layout::Table, tensor("w", 4, 5));
  stored.elem = Elem::I8;
  EXPECT_FALSE(packEntry(stored, source, sink, error));
  EXPECT_NE(error.find("i8 outside of dot panels"), std::string::npos) << error;
  stored.elem = Elem::F32;
  stored.rows = 5;
  EXPECT_FALSE(packEntry(stored, source, sink, error));
  EXPECT_TRUE(sink.bytes.empty());
}

TEST(WeightPackerTest, CastsRoundAndRefuseWhatIsTooLarge) {
  MemorySource source;
  source.add("w", {1.0f, 1.0f / 3, -65519.0f, 1e-9f});
  WeightExpr half = node(Kind::Cast, {tensor("w", 2, 2)}, 2, 2);
  half.elem = Elem::F16;
  float out[4];
  std::string error;
  ASSERT_TRUE(evaluate(half, source, out, error)) << error;
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], 0.333251953125f);
  EXPECT_EQ(out[2], -65504.0f);
  EXPECT_EQ(out[3], 0.0f);
  source.add("large", {0.0f, 1.0f, 2.0f, 65520.0f});
  half.operands = {tensor("large", 2, 2)};
  EXPECT_FALSE(evaluate(half, source, out, error));
  EXPECT_EQ(error, "large as f16 is not finite at row 1, column 1");
}

TEST(WeightPackerTest, ASinkThatFailsEndsThePacking) {
  MemorySource source;
  source.add("w", randoms(64, 1));
  MemorySink sink;
  sink.room = 8;
  std::string error;
  EXPECT_FALSE(packEntry(entry(Layout::Panels, tensor("w", 8, 8)), source, sink, error));
  EXPECT_EQ(error, "sink is full");
}
