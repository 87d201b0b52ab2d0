// Which stage a lane uses under a bucket table and --stage, and the table in examples/.
#include "compiler/spec/Spec.h"
#include "tests/ErrorText.h"

#include <array>
#include <gtest/gtest.h>

using namespace batten;
using namespace batten::test;

namespace {

std::vector<StageSpec> table(const std::string &text) { return llvm::cantFail(parseBucketTable(text, "buckets.txt")); }

/// Lanes decide on "compat", embed on "state".
Spec decision() {
  Spec spec;
  for (auto [lane, stage] : {std::pair("decide", "compat"), std::pair("embed", "state")})
    spec.lanes.push_back({lane, lane, stage, {}, {}, {}, {}, ""});
  spec.stages = table("compat 8 2 8\nstate 16 2 0\n");
  return spec;
}

std::string stagesOf(const Spec &spec) {
  std::string text;
  for (const LaneSpec &lane : spec.lanes)
    text += lane.name + "=" + lane.stage + " ";
  for (const StageSpec &stage : spec.stages)
    text += "/" + stage.name;
  return text;
}

struct Assigned {
  std::string error, stages;
  std::vector<std::string> notes;
};

Assigned assign(const std::string &buckets, const std::vector<std::string> &assignments = {}) {
  Spec spec = decision();
  Assigned out;
  std::optional<std::vector<StageSpec>> read;
  if (!buckets.empty())
    read = table(buckets);
  out.error = errorText(assignStages(spec, std::move(read), "buckets.txt", assignments, out.notes));
  out.stages = stagesOf(spec);
  return out;
}

} // namespace

TEST(StagesTest, AStageIsFoundByItsNameTheLanesNameOrAlone) {
  EXPECT_EQ(assign("").stages, "decide=compat embed=state /compat/state");
  EXPECT_EQ(assign("state 32 8 0\ncompat 32 8 32\n").stages, "decide=compat embed=state /state/compat");
  EXPECT_EQ(assign("compat 32 8 32\nembed 32 8 0\n").stages, "decide=compat embed=embed /compat/embed");
  EXPECT_EQ(assign("text 32 8 32\n").stages, "decide=text embed=text /text");
}

TEST(StagesTest, TheCommandLineChooses) {
  EXPECT_EQ(assign("", {"embed=compat"}).stages, "decide=compat embed=compat /compat");
  EXPECT_EQ(assign("a 32 8 32\nb 32 8 0\n", {"decide=a", "embed=b"}).stages, "decide=a embed=b /a/b");
}

TEST(StagesTest, AnUnusedStageIsLeftOutAndSaidSo) {
  Assigned got = assign("compat 32 8 32\nstate 32 8 0\nquestion 64 8 64\n");
  EXPECT_EQ(got.stages, "decide=compat embed=state /compat/state");
  EXPECT_EQ(got.notes, std::vector<std::string>{"no lane uses stage \"question\": left out"});
}

TEST(StagesTest, WhatIsNotThereIsNamed) {
  expectParts(assign("compat 32 8 32\nquestion 64 8 64\n").error,
              {"buckets.txt", "no stage for lane \"embed\"", "\"state\"", "compat, question", "--stage embed=STAGE"});
  expectParts(assign("", {"embed"}).error, {"--stage \"embed\"", "LANE=STAGE wanted"});
  expectParts(assign("", {"=state"}).error, {"LANE=STAGE wanted"});
  expectParts(assign("", {"embd=state"}).error, {"no lane \"embd\"", "did you mean", "embed", "decide"});
  expectParts(assign("", {"embed=stat"}).error, {"no stage \"stat\"", "did you mean", "state"});
  expectParts(assign("", {"embed=state", "embed=compat"}).error, {"has a stage already", "\"state\""});
}

// The reference's tables; its documentation gives the counts.
TEST(StagesTest, TheExamplesTableHoldsTheReferencesStages) {
  std::vector<StageSpec> stages = llvm::cantFail(readBucketTable(BATTEN_TEST_DATA "/../../examples/decision.buckets"));
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].name, "compat");
  EXPECT_EQ(stages[0].buckets.size(), 20u);
  EXPECT_EQ(stages[1].name, "state");
  EXPECT_EQ(stages[1].buckets.size(), 11u);
  EXPECT_EQ(stages[2].name, "question");
  EXPECT_EQ(stages[2].buckets.size(), 9u);
  const Bucket &last = stages[0].buckets.back();
  EXPECT_EQ((std::array<int64_t, 3>{last.tokens, last.seqs, last.markers}),
            (std::array<int64_t, 3>{16384, 1024, 8192}));
}
