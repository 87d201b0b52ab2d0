// Figures of `batten compare` on values that no bundle gives: infinities, NaN, zeros, ties.
#include "tools/batten/Difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

using batten::tools::Difference;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

Difference differenceOf(const std::vector<float> &a, const std::vector<float> &b, size_t width, double margin = 0) {
  Difference difference;
  difference.add(a.data(), b.data(), a.size() / width, width, margin);
  return difference;
}

} // namespace

TEST(DifferenceTest, SumsUpOverCalls) {
  Difference difference;
  const float a[] = {1, -4, 2, 2}, b[] = {1, -3, 2, 2.5f};
  difference.add(a, b, 1, 2, 0);
  difference.add(a + 2, b + 2, 1, 2, 0);
  EXPECT_EQ(difference.rows, 2u);
  EXPECT_EQ(difference.elements, 4u);
  EXPECT_EQ(difference.bitsDiffer, 2u);
  EXPECT_EQ(difference.maxAbs, 1);
  EXPECT_EQ(difference.meanAbs(), 1.5 / 4);
  EXPECT_EQ(difference.maxRelative(), 0.25);
  EXPECT_DOUBLE_EQ(difference.leastCosine, 9 / std::sqrt(8.0 * (4 + 6.25)));
  EXPECT_EQ(difference.argmaxAgreement(), 0.5); // (2, 2): the first of equals; (2, 2.5): the second
}

TEST(DifferenceTest, NothingAndZeros) {
  const Difference nothing = differenceOf({}, {}, 3);
  EXPECT_EQ(nothing.meanAbs() + nothing.maxRelative(), 0);
  EXPECT_EQ(nothing.leastCosine + nothing.argmaxAgreement(), 2);
  const Difference zeros = differenceOf({0, 0}, {0, -0.0f}, 2); // differ in bits only
  EXPECT_EQ(zeros.bitsDiffer, 1u);
  EXPECT_EQ(zeros.maxAbs + zeros.maxRelative(), 0);
  EXPECT_EQ(zeros.leastCosine, 1);
  const Difference one = differenceOf({0, 0}, {0, 1}, 2);
  EXPECT_EQ(one.maxRelative(), kInf);
  EXPECT_EQ(one.leastCosine, 0);
}

TEST(DifferenceTest, CountsWhatIsNotFiniteOnOneSideOnly) {
  const Difference same = differenceOf({kNan, kInf, 1}, {kNan, kInf, 1}, 3);
  EXPECT_EQ(same.notFinite + same.bitsDiffer, 0u);
  EXPECT_EQ(same.leastCosine, 1);
  for (const float other : {kNan, kInf, -kInf}) {
    const Difference odd = differenceOf({1, 2}, {1, other}, 2);
    EXPECT_EQ(odd.notFinite, 1u);
    EXPECT_EQ(odd.leastCosine + odd.argmaxAgreement(), 0);
    EXPECT_EQ(odd.maxAbs, 0); // of the elements that are finite in both
  }
  EXPECT_EQ(differenceOf({kInf}, {-kInf}, 1).notFinite, 1u);
  const Difference payload = differenceOf({kNan, 1}, {-kNan, 1}, 2); // both NaN, in other bits
  EXPECT_EQ(payload.notFinite, 0u);
  EXPECT_EQ(payload.bitsDiffer, 1u);
}

TEST(DifferenceTest, LeavesOutRowsWithinTheMargin) {
  const std::vector<float> a = {1, 1.25f, 0, 3}, b = {1.25f, 1, 0, 3};
  EXPECT_EQ(differenceOf(a, b, 2).argmaxAgreement(), 0.5);
  EXPECT_EQ(differenceOf(a, b, 2, 0.25).argmaxAgreement(), 0.5); // at the margin: decided
  const Difference outside = differenceOf(a, b, 2, 0.26);
  EXPECT_EQ(outside.argmaxAgreement(), 1);
  EXPECT_EQ(outside.decidedRows, 1u);
  EXPECT_EQ(differenceOf({1, 2}, {2, 1}, 1).decidedRows, 0u); // no best of one column
}
