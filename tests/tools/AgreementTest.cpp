// Agreement of lanes over batches: which output breaks which threshold, where it is worst, and tables of odd notes.
#include "tools/batten/Agreement.h"

#include <gtest/gtest.h>

#include <limits>

using namespace batten::tools;
using nlohmann::ordered_json;

namespace {

Lane laneOf(std::vector<Lane::Output> outputs) {
  Lane lane = {};
  lane.name = "embed";
  lane.outputs = std::move(outputs);
  return lane;
}

/// Two outputs, of width 2 and 1, over two batches of one and two rows; the second is farther in `wide`.
Agreement made() {
  const Lane lane = laneOf({{"wide", 1, 2, 1}, {"narrow", 1, 1, 1}});
  Agreement agreement(lane, lane, "a", "b");
  agreement.add({{{3, 4}, {1}}, {1, 1}}, {{{3, 4.5f}, {1}}, {1, 1}}, "first", 0);
  agreement.add({{{1, 0, 0, 2}, {1, 2}}, {2, 2}}, {{{0, 1, 0, 2}, {1, 2.25f}}, {2, 2}}, "second", 0);
  return agreement;
}

std::vector<std::string> failures(const Thresholds &thresholds) {
  std::vector<std::string> found;
  made().addFailures(thresholds, found);
  return found;
}

std::string refusal(const Lane &a, const Lane &b) {
  try {
    Agreement(a, b, "A", "B");
  } catch (const Failure &failure) {
    return failure.what();
  }
  return "(none)";
}

} // namespace

TEST(AgreementTest, FiguresAreOverAllBatches) {
  const Agreement agreement = made();
  const ordered_json wide = agreement.outputs()[0].describe(), narrow = agreement.outputs()[1].describe();
  EXPECT_EQ(wide["rows"], 3);
  EXPECT_EQ(wide["max_abs"], 1);
  EXPECT_EQ(wide["mean_abs"], 2.5 / 6);
  EXPECT_EQ(wide["least_cosine"], 0);
  EXPECT_EQ(narrow["max_abs"], 0.25);
  EXPECT_TRUE(narrow["least_cosine"].is_null());
  EXPECT_TRUE(narrow["argmax_agreement"].is_null());
}

TEST(AgreementTest, EachThresholdNamesLaneOutputFiguresAndWorstBatch) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(failures({}), Lines{});
  EXPECT_EQ(failures({.maxAbs = 1, .maxMean = 0.5, .maxRel = 0.25, .minCosine = 0, .minArgmax = 0.6, .margin = {}}),
            Lines{});
  EXPECT_EQ(failures({.maxAbs = 0.5, .maxMean = {}, .maxRel = {}, .minCosine = {}, .minArgmax = {}, .margin = {}}),
            Lines{"lane embed, output wide: max abs 1, at most 0.5 wanted; most in second"});
  EXPECT_EQ(
      failures({.maxAbs = 0.1, .maxMean = {}, .maxRel = {}, .minCosine = {}, .minArgmax = {}, .margin = {}}).size(),
      2u);
  EXPECT_EQ(failures({.maxAbs = {}, .maxMean = 0.3, .maxRel = {}, .minCosine = {}, .minArgmax = {}, .margin = {}}),
            Lines{"lane embed, output wide: mean abs 0.417, at most 0.3 wanted; most in second"});
  EXPECT_EQ(failures({.maxAbs = {}, .maxMean = {}, .maxRel = 0.2, .minCosine = {}, .minArgmax = {}, .margin = {}}),
            Lines{"lane embed, output wide: max rel 0.25, at most 0.2 wanted; most in second"});
  EXPECT_EQ(failures({.maxAbs = {}, .maxMean = {}, .maxRel = {}, .minCosine = 0.5, .minArgmax = {}, .margin = {}}),
            Lines{"lane embed, output wide: least cosine 0.0000000, at least 0.5000000 wanted; least in second"});
  EXPECT_EQ(failures({.maxAbs = {}, .maxMean = {}, .maxRel = {}, .minCosine = {}, .minArgmax = 1, .margin = {}}),
            Lines{"lane embed, output wide: argmax agreement 0.6666667, at least 1.0000000 wanted; least in second"});
}

TEST(AgreementTest, WhatIsNotFiniteBreaksAnyThreshold) {
  const Lane lane = laneOf({{"x", 1, 1, 1}});
  Agreement agreement(lane, lane, "a", "b");
  agreement.add({{{1}}, {1}}, {{{std::numeric_limits<float>::quiet_NaN()}}, {1}}, "only", 0);
  std::vector<std::string> found;
  Thresholds thresholds;
  agreement.addFailures(thresholds, found);
  EXPECT_TRUE(found.empty());
  thresholds.maxAbs = 100;
  agreement.addFailures(thresholds, found);
  EXPECT_EQ(found,
            std::vector<std::string>{"lane embed, output x: 1 elements are infinite or not a number on one side, "
                                     "none wanted; most in only"});
}

TEST(AgreementTest, OutputsAreMatchedByNameAndShape) {
  EXPECT_EQ(refusal(laneOf({{"x", 1, 2, 1}}), laneOf({{"y", 1, 1, 1}, {"x", 1, 2, 1}})), "(none)");
  EXPECT_EQ(refusal(laneOf({{"x", 1, 2, 1}}), laneOf({{"y", 1, 2, 1}})), "B: lane embed has no output x, which A has");
  EXPECT_EQ(refusal(laneOf({{"x", 1, 2, 1}}), laneOf({{"x", 0, 2, 1}})),
            "output x is [seqs, 2] in A and [tokens, 2] in B");
}

TEST(AgreementTest, AnyNoteHasAPage) {
  const ordered_json odd = {{"lane", "\x1b[31m"}, {"max_abs", {1, 2}}, {"rows", nullptr}, {"thresholds", 3}};
  const ordered_json other = {{"thresholds", {{"max_abs", 0.5}, {"\x07", "text"}}}};
  const std::string page = agreementPage({odd, other, ordered_json::object()}, "  ");
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_EQ(page.find('\x07'), std::string::npos);
  EXPECT_NE(page.find("held: nothing"), std::string::npos);
  EXPECT_NE(page.find("max_abs 0.5"), std::string::npos);
}
