// Inputs of self-tests: what a lane reads is in them, within its limits and a bucket's.
#include "compiler/SelfTest.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace batten;

namespace {

Manifest manifestOf(std::vector<Bucket> buckets, uint32_t inputs, uint32_t typeCount, uint32_t seqTypeCount) {
  Manifest m;
  m.stages.push_back({"text", std::move(buckets), ""});
  m.lanes.push_back({"decide", 0, {{"logits", BATTEN_ROWS_MARKERS, 1}}, inputs, 100, typeCount, seqTypeCount, 20});
  return m;
}

} // namespace

TEST(SelfTestTest, GivesMarkersAndTypesToLanesThatReadThem) {
  Manifest m = manifestOf({{32, 8, 0}, {64, 8, 6}}, BATTEN_INPUT_MARKERS | BATTEN_INPUT_SEQ_TYPES, 0, 3);
  ManifestSelfTest test = makeSelfTestInputs(m, 0);
  EXPECT_FALSE(test.types);
  ASSERT_TRUE(test.seqTypes && test.cuMarkers);
  size_t seqs = test.cuSeqlens.size() - 1;
  EXPECT_GT(seqs, 3u);
  EXPECT_GT(test.ids.size(), 32u) << "the first bucket holds no marker";
  EXPECT_EQ(test.seqTypes->size(), seqs);
  EXPECT_LT(*std::max_element(test.seqTypes->begin(), test.seqTypes->end()), 3u);
  EXPECT_GT(*std::max_element(test.seqTypes->begin(), test.seqTypes->end()), 0u);
  ASSERT_EQ(test.cuMarkers->size(), seqs + 1);
  EXPECT_EQ(test.markers.size(), 6u) << "as many as the bucket holds";
  EXPECT_EQ(test.cuMarkers->front(), 0u);
  EXPECT_EQ(test.cuMarkers->back(), 6u);
  for (size_t s = 0; s < seqs; ++s)
    for (uint32_t i = (*test.cuMarkers)[s]; i < (*test.cuMarkers)[s + 1]; ++i)
      EXPECT_LT(test.markers[i], test.cuSeqlens[s + 1] - test.cuSeqlens[s]);
}

TEST(SelfTestTest, GivesNothingThatALaneDoesNotRead) {
  ManifestSelfTest test = makeSelfTestInputs(manifestOf({{32, 8, 4}}, BATTEN_INPUT_TOKEN_TYPES, 2, 0), 0);
  EXPECT_TRUE(test.types);
  EXPECT_FALSE(test.cuMarkers);
  EXPECT_FALSE(test.seqTypes);
  EXPECT_TRUE(test.markers.empty());
  EXPECT_EQ(test.ids.size(), 32u);
}
