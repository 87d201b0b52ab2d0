// Graphs added to a jit executor that has run: the new lane answers as a bundle made with it does, the others give the bits
// that they gave, and what is refused changes nothing.
#include "tests/ErrorText.h"
#include "tests/golden/JitRunning.h"

#include "llvm/ADT/StringExtras.h"

using namespace batten;
using namespace batten::test;

namespace {

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// A sentence model with weights in 2_Dense, imported: lanes embed, which reads them, and encode, which doesn't.
class JitAddGraphTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(bool(importModel(model, dir.path("model"))));
    graph = readFile(dir.path("model/graph.mlir"));
    // A spec of lane encode alone, whose graph knows nothing of 2_Dense.
    std::string alone;
    bool skips = false;
    for (llvm::StringRef line : llvm::split(graph, "\n")) {
      skips |= line.contains("batten.graph @embed");
      if (!skips && !line.contains("2_Dense"))
        alone += (line + "\n").str();
      skips &= !line.starts_with("  }");
    }
    dir.write("alone/graph.mlir", alone);
    dir.write("alone/batten.toml",
              "[model]\ngraph = \"graph.mlir\"\ncheckpoint = '" + model +
                  "'\n[[lane]]\nname = \"encode\"\ngraph = \"@encode\"\nstage = \"text\"\n"
                  "[stage.text]\nbuckets = [{ tokens = 16, seqs = 4 }, { tokens = 64, seqs = 8 }]\n");
    executor = makeJit(dir.path("alone/batten.toml"));
    ASSERT_TRUE(executor);
    before = ask(*executor, 0, 2, batch);
    ASSERT_EQ(before.bucket, 0u);
    dir.write("buckets.txt", "text 16 4 0\ntext 64 8 0\n");
  }

  std::string file() const { return dir.path("model/graph.mlir"); }
  std::string write(const std::string &text) const { return dir.write("changed.mlir", text); }

  TempDir dir;
  std::string model = goldenPath("sentence-mean-sqrt-len-dense"), graph;
  std::optional<jit::Executor> executor;
  PackedBatch batch = oneSequence(9);
  Answer before;
};

TEST_F(JitAddGraphTest, NewWeightsAndKernelsJoin) {
  AheadOfTime ahead(model, dir.path("buckets.txt"));
  ASSERT_TRUE(ahead.executor);
  uint64_t weights = executor->memory().weightsMapped;
  auto lane = executor->addGraph({.lane = "embed", .file = file(), .stage = "text"});
  ASSERT_TRUE(bool(lane)) << llvm::toString(lane.takeError());
  EXPECT_EQ(*lane, 1u);
  EXPECT_EQ(executor->laneCount(), 2u);
  EXPECT_EQ(executor->findLane("embed").value(), 1u);
  EXPECT_EQ(executor->findLane("other").error().status, BATTEN_BAD_ARGUMENT);
  EXPECT_EQ(warmOf(*executor), (Warm{{0, 0}})); // as it was
  EXPECT_TRUE(ask(*executor, 0, 2, batch) == before);
  for (uint32_t tokens : {1u, 15u, 17u, 40u}) {
    PackedBatch each = oneSequence(tokens);
    EXPECT_TRUE(ask(*executor, 1, 1, each) == ask(*ahead.executor, 0, 1, each)) << tokens;
    EXPECT_TRUE(ask(*executor, 0, 2, each) == ask(*ahead.executor, 1, 2, each)) << tokens;
  }
  EXPECT_GT(executor->memory().weightsMapped, weights);
  // Each tensor once: no more than a bundle of both lanes holds.
  EXPECT_EQ(executor->memory().weightsMapped, ahead.executor->memory().weightsMapped);
}

TEST_F(JitAddGraphTest, WeightsThatAreThereAreShared) {
  // The same graph by another author: other names for the weights, one of them another tensor's name here.
  std::string text = graph;
  for (size_t at; (at = text.find("@l0.q.w")) != std::string::npos;)
    text.replace(at, 7, "@swap");
  for (size_t at; (at = text.find("@l0.k.w")) != std::string::npos;)
    text.replace(at, 7, "@l0.q.w");
  for (size_t at; (at = text.find("@swap")) != std::string::npos;)
    text.replace(at, 5, "@mine");
  uint64_t weights = executor->memory().weightsMapped;
  auto lane = executor->addGraph(
      {.lane = "again", .file = write(text), .graph = "encode", .stage = "wide", .buckets = {{90, 3, 0}, {20, 2, 0}}});
  ASSERT_TRUE(bool(lane)) << llvm::toString(lane.takeError());
  EXPECT_EQ(executor->memory().weightsMapped, weights);
  EXPECT_EQ(executor->bucket(1, 0).value().tokens, 20u);
  EXPECT_EQ(executor->lane(1).value().bucketCount, 2u);
  EXPECT_EQ(view(executor->output(1, 0).value().name), "hidden");
  EXPECT_FALSE(executor->output(1, 2) || executor->lane(2) || executor->bucket(1, 2));
  EXPECT_TRUE(ask(*executor, 1, 2, batch) == before);
  EXPECT_EQ(ask(*executor, 1, 2, oneSequence(60)).bucket, 1u);
  EXPECT_TRUE(ask(*executor, 0, 2, batch) == before);
  // And a third, on the stage that the second brought.
  lane = executor->addGraph({.lane = "third", .file = file(), .graph = "embed", .stage = "wide"});
  ASSERT_TRUE(bool(lane)) << llvm::toString(lane.takeError());
  EXPECT_EQ(*lane, 2u);
  EXPECT_EQ(warmOf(*executor), (Warm{{0, 0}, {1, 0}, {1, 1}}));
  EXPECT_TRUE(ask(*executor, 1, 2, batch) == before);
}

TEST_F(JitAddGraphTest, WhatIsRefusedChangesNothing) {
  const jit::NewGraph good{.lane = "embed", .file = file(), .stage = "text"};
  auto with = [&](auto change) {
    jit::NewGraph graph = good;
    change(graph);
    return graph;
  };
  const std::string dense = "batten.weight @dense.w from \"linear.weight\" in \"2_Dense\"";
  struct Case {
    jit::NewGraph graph;
    std::vector<std::string> parts;
  } cases[] = {
      {with([](auto &g) { g.lane = "encode"; }), {"addGraph: lane \"encode\" is there already"}},
      {with([](auto &g) { g.lane = "a/b"; }), {"addGraph: lane \"a/b\": 1 to 64 characters"}},
      {with([](auto &g) { g.lane = "text", g.graph = "embed"; }), {"lane \"text\"", "name of a stage"}},
      {with([](auto &g) { g.lane = "l1.q.w", g.graph = "embed"; }), {"lane \"l1.q.w\"", "name of a"}},
      {with([](auto &g) { g.graph = "embde"; }), {"no graph @embde", "did you mean", "embed, encode"}},
      {with([](auto &g) { g.stage = "txt"; }), {"no stage \"txt\"", "did you mean 'text'", "no buckets for a new one"}},
      {with([](auto &g) { g.buckets = {{8, 2, 0}}; }), {"stage \"text\" is there already"}},
      {with([](auto &g) { g.stage = "s", g.buckets = {{0, 2, 0}}; }), {"addGraph: tokens is 0"}},
      {with([](auto &g) { g.stage = "s", g.buckets = {{8, 2, 0}, {8, 2, 0}}; }), {"8 x 2 x 0", "\"s\""}},
      {with([](auto &g) { g.stage = "s t", g.buckets = {{8, 2, 0}}; }), {"stage \"s t\": 1 to 64 characters"}},
      {with([](auto &g) { g.stage = "encode", g.buckets = {{8, 2, 0}}; }), {"stage \"encode\"", "name of a"}},
      {with([&](auto &g) { g.file = dir.path("no.mlir"); }), {"no.mlir"}},
      {with([&](auto &g) { g.file = dir.write("text.mlir", "nonsense\n"); }), {"text.mlir:1:1"}},
      {with([&](auto &g) { g.file = dir.write("a.mlir", replaced(graph, "\"linear.weight\"", "\"none.weight\"")); }),
       {"a.mlir", "no weight names: \"2_Dense/linear.weight\"",
        "\"none.weight\" of 2_Dense is missing from the checkpoint"}},
      {with([&](auto &g) {
         g.file = dir.write("b.mlir", replaced(graph, dense, dense.substr(0, dense.size() - 9) + "\"3_Dense\""));
       }),
       {"3_Dense", "no such directory"}},
      {with([&](auto &g) {
         g.file = dir.write("c.mlir", replaced(graph, "from \"pooler.dense.weight\"", "from \"pooler.dense.bias\""));
         g.lane = "second", g.graph = "encode";
       }),
       {"c.mlir", "pooler.dense.bias", "[32, 32] wanted, [32] found"}},
  };
  for (int round = 0; round < 2; ++round) // a second time it is refused with the same words
    for (const Case &c : cases) {
      std::string text = errorText(executor->addGraph(c.graph));
      for (const std::string &part : c.parts)
        expectParts(text, {part});
      EXPECT_LE(llvm::StringRef(text).count('\n'), 1u) << text; // the cause, after the tensors that no weight names
      EXPECT_EQ(executor->laneCount(), 1u);
      EXPECT_EQ(warmOf(*executor), (Warm{{0, 0}}));
      EXPECT_TRUE(ask(*executor, 0, 2, batch) == before);
    }
  EXPECT_EQ(executor->run({.tokenIds = batch.ids, .cuSeqlens = batch.cu}, {}, 1).error().status, BATTEN_BAD_ARGUMENT);
  auto lane = executor->addGraph(good);
  EXPECT_TRUE(bool(lane)) << llvm::toString(lane.takeError());
}

} // namespace
