// Kernels of decision models against their references: add_type, gather_markers, decision_features.
#include "tests/kernels/KernelHarness.h"

#include <cmath>
#include <numeric>

using namespace batten;
using namespace batten::test;

namespace {

const std::vector<uint32_t> kWidths = {1, 2, 3, 15, 16, 17, 31, 33, 40, 64, 68, 257, 768, 1152};

/// Sequences with 0 to 40 markers, out of order and repeated; empty ones; some without markers.
BatchSpec decisionBatch() {
  BatchSpec batch{{0, 1, 7, 0, 16, 2, 13, 30, 1, 0}, {}, {}, {2, 1, 0, 1, 2, 0, 0, 1, 2, 0}, {}};
  uint32_t counts[] = {0, 1, 2, 0, 15, 16, 17, 40, 0, 0};
  for (size_t s = 0; s < batch.lengths.size(); ++s) {
    batch.markers.emplace_back();
    for (uint32_t i = 0; i < counts[s]; ++i)
      batch.markers.back().push_back(i * 7 % batch.lengths[s]);
  }
  return batch;
}

Input rowsOf(uint32_t rows, uint32_t width, uint32_t seed, float scale = 1.0f) {
  return Input::ofRows(rows, width, randomFloats(rows * width, seed, scale));
}

/// One sequence of one token for each list of logits.
struct Options {
  BatchSpec batch;
  Input x, logits;

  explicit Options(const std::vector<std::vector<float>> &lists) : x(Input::ofRows(0, 5, {})), logits(x) {
    for (const std::vector<float> &list : lists) {
      batch.lengths.push_back(1);
      batch.markers.push_back(std::vector<uint32_t>(list.size(), 0));
      logits.values.insert(logits.values.end(), list.begin(), list.end());
    }
    uint32_t sequences = static_cast<uint32_t>(lists.size());
    x = rowsOf(sequences, 5, 1);
    logits.rows = logits.values.size();
    logits.cols = 1;
  }

  /// The features alone, 4 a sequence; their x part is checked.
  std::vector<float> run() {
    uint32_t sequences = static_cast<uint32_t>(batch.lengths.size());
    std::vector<float> all = runEveryWay(KernelKey::decisionFeatures(5), {x, logits}, batch, sequences, 9), result;
    for (size_t i = 0; i < all.size(); ++i)
      if (i % 9 < 5)
        EXPECT_EQ(all[i], x.values[i / 9 * 5 + i % 9]);
      else
        result.push_back(all[i]);
    return result;
  }
  std::vector<double> wanted() const {
    reference::Matrix all =
        reference::decisionFeatures(x.matrix(), logits.matrix(), batch.cuSeqlens(), batch.cuMarkers());
    std::vector<double> result;
    for (size_t s = 0; s < all.rows; ++s)
      for (size_t i = 5; i < 9; ++i)
        result.push_back(all(s, i));
    return result;
  }
};

} // namespace

TEST(DecisionTest, AddTypeAddsTheRowOfTheSequencesType) {
  BatchSpec batch = decisionBatch();
  uint32_t tokens = batch.tokens();
  for (uint32_t width : kWidths) {
    Input table = Input::table(3, width, randomFloats(3 * width, 1)), x = rowsOf(tokens, width, 2);
    std::vector<float> got = runEveryWay(KernelKey::addType(width), {table, x}, batch, tokens, width);
    reference::Matrix wanted = reference::addType(x.matrix(), batch.cuSeqlens(), batch.seqTypes, table.matrix());
    // Sums of two floats round as their exact sums do.
    expectSameBits(got, {wanted.values.begin(), wanted.values.end()}, width, "add_type");
  }
}

TEST(DecisionTest, GatherMarkersCopiesTokenRows) {
  BatchSpec batch = decisionBatch();
  for (uint32_t width : kWidths) {
    Input x = rowsOf(batch.tokens(), width, width);
    std::vector<uint32_t> rows = batch.markerRows();
    uint32_t markers = static_cast<uint32_t>(rows.size());
    std::vector<float> got = runEveryWay(KernelKey::gatherMarkers(width), {x}, batch, markers, width);
    reference::Matrix wanted = reference::gatherRows(x.matrix(), rows);
    expectSameBits(got, {wanted.values.begin(), wanted.values.end()}, width, "gather_markers");
  }
}

TEST(DecisionTest, FeaturesMatchReference) {
  BatchSpec batch = decisionBatch();
  uint32_t seqs = static_cast<uint32_t>(batch.lengths.size()), markers = batch.cuMarkers().back();
  for (uint32_t width : kWidths)
    for (float scale : {1e-3f, 1.0f, 8.0f}) {
      Input x = rowsOf(batch.tokens(), width, width), logits = rowsOf(markers, 1, width + 7, scale);
      KernelKey key = KernelKey::decisionFeatures(width);
      std::vector<float> got = runEveryWay(key, {x, logits}, batch, seqs, width + 4);
      reference::Matrix wanted =
          reference::decisionFeatures(x.matrix(), logits.matrix(), batch.cuSeqlens(), batch.cuMarkers());
      // Rows are copied. Probabilities and the entropy are at most about 1, a difference of two errs as they do; a
      // probability errs by its logit's distance to the largest.
      reference::Matrix magnitude(seqs, width + 4);
      for (uint32_t s = 0; s < seqs; ++s)
        for (uint32_t i = width; i < width + 4; ++i)
          magnitude(s, i) = i == width + 3 ? wanted(s, i) : 1.0 + 4 * static_cast<double>(scale);
      expectClose(got, wanted, magnitude, 4, kernelSymbol(key));
    }
}

TEST(DecisionTest, FeaturesOfFewAndOfEqualOptions) {
  Options options({{}, {-3.5f}, {2.0f, 2.0f}, {1.0f, 3.0f, 3.0f, -1.0f}, std::vector<float>(300, -7.0f)});
  std::vector<float> got = options.run();
  std::vector<double> wanted = options.wanted();
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 4e-7) << "sequence " << i / 4 << " feature " << i % 4;
  for (size_t i : {0, 1, 2}) // no marker
    EXPECT_EQ(got[i], 0.0f);
  EXPECT_EQ(got[3], 2.0f / 255.0f);
  EXPECT_EQ(got[4], 1.0f); // one: it has all, and there is no second
  EXPECT_EQ(got[5], 1.0f);
  EXPECT_EQ(got[6], 0.0f);
  EXPECT_EQ(got[7], 2.0f / 255.0f);
  for (size_t s : {2, 3, 4}) // equal options count twice
    EXPECT_EQ(got[4 * s + 1], 0.0f) << s;
  EXPECT_NEAR(got[4 * 4 + 2], 1.0f, 1e-6);
  EXPECT_GT(got[4 * 4 + 3], 1.0f); // k / 255 may pass 1
}

TEST(DecisionTest, FeaturesOfVeryManyMarkers) {
  std::vector<float> many = randomFloats(8192, 4, 3.0f);
  Options options({{1.0f}, many, {0.5f, 0.25f}});
  std::vector<float> got = options.run();
  std::vector<double> wanted = options.wanted();
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-6 * std::max(1.0, wanted[i])) << i;
}

// A hundred thousand options of 1e-10 each: without the floor the entropy would be a tenth larger.
TEST(DecisionTest, ProbabilitiesAreFlooredInTheLogarithm) {
  constexpr size_t kCount = 100000;
  std::vector<float> logits(kCount, -23.03f);
  logits[77] = 0.0f;
  Options options({logits});
  std::vector<float> got = options.run();
  std::vector<double> wanted = options.wanted();
  EXPECT_NEAR(got[2], wanted[2], 1e-2 * wanted[2]);
  double p = std::exp(-23.03), missing = (kCount - 1) * p * (std::log(1e-9) - std::log(p)) / std::log(kCount);
  EXPECT_GT(missing, 0.05 * wanted[2]);
}

TEST(DecisionTest, FeaturesKeepNanInItsSequence) {
  float inf = INFINITY;
  Options options({{1.0f, 2.0f},
                   {NAN, 1.0f, 3.0f},
                   {3.0f, 1.0f, NAN},
                   {-inf, -inf},
                   {inf, 0.0f},
                   {-inf, 1.0f, -inf},
                   std::vector<float>(40, -inf),
                   {0.5f}});
  options.x.values[2 * 5 + 3] = 2.0f;
  std::vector<float> got = options.run();
  std::vector<double> wanted = options.wanted();
  for (size_t s = 0; s < 8; ++s)
    for (size_t i = 0; i < 4; ++i) {
      bool isNan = i < 3 && ((s >= 1 && s <= 4) || s == 6);
      EXPECT_EQ(std::isnan(got[4 * s + i]), isNan) << "sequence " << s << " feature " << i;
      if (!isNan)
        EXPECT_NEAR(got[4 * s + i], wanted[4 * s + i], 1e-6) << "sequence " << s << " feature " << i;
    }
}

// A sequence's bits don't depend on where its markers are in the batch.
TEST(DecisionTest, FeaturesAreTheSameAloneAndAmidOthers) {
  std::vector<float> some = randomFloats(37, 8, 2.0f);
  std::vector<float> alone = Options({some}).run();
  for (size_t before : {1, 5, 16, 31}) {
    std::vector<float> amid = Options({randomFloats(before, 9), some, {1.0f, 2.0f}}).run();
    expectSameBits({amid.begin() + 4, amid.begin() + 8}, alone, 4, std::to_string(before) + " markers before");
  }
}

TEST(DecisionTest, FeaturesTakeFirstRowsAsTheyAre) {
  BatchSpec batch{{0, 3, 0, 2}, {}, {}};
  Input x = rowsOf(5, 33, 3), logits = Input::ofRows(0, 1, {});
  x.values[0] = NAN;
  std::vector<float> got = runEveryWay(KernelKey::decisionFeatures(33), {x, logits}, batch, 4, 37), wanted(4 * 37);
  std::copy_n(x.values.begin(), 33, wanted.begin() + 37);
  std::copy_n(x.values.begin() + 3 * 33, 33, wanted.begin() + 3 * 37);
  for (size_t s = 0; s < 4; ++s)
    wanted[s * 37 + 36] = 2.0f / 255.0f;
  expectSameBits(got, wanted, 37, "decision_features without markers");
}
