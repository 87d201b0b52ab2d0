// Decision checkpoints as graphs: lanes on one set of weights, both layouts of a directory, what must be stored, stages.
#include "tests/graph/GraphTestSupport.h"

#include <map>

using namespace batten;
using namespace batten::test;

using DecisionTest = GraphTest;

namespace {

const char *const kGoldens[] = {"laya-tiny-a", "laya-tiny-b", "laya-tiny-c"};

/// The golden as it would be published: encoder/config.json, rl_agent_config.json, model.safetensors.
void copySplit(const std::string &golden, const TempDir &dir) {
  std::string config = readFile(goldenPath(golden + "/config.json"));
  size_t at = config.find("\"head_layers\"");
  ASSERT_NE(at, std::string::npos);
  std::string head = config.substr(at, config.find_first_of(",}\n", at) - at);
  dir.write("encoder/config.json", config.replace(at, 13, "\"unread\""));
  dir.write("rl_agent_config.json", "{" + head + ", \"max_len\": 512}");
  dir.write("model.safetensors", readFile(goldenPath(golden + "/model.safetensors")));
}

} // namespace

TEST_F(DecisionTest, LanesShareOneSetOfWeights) {
  for (auto [golden, lanes] :
       {std::pair("laya-tiny-a", "decide(logits: markers x 1, act: seqs x 2) embed(pooled: seqs x 64) "
                                 "encode(hidden: tokens x 64)"),
        std::pair("laya-tiny-c", "decide(logits: markers x 1, act: seqs x 2) embed(pooled: seqs x 128) "
                                 "encode(hidden: tokens x 128)")}) {
    ImportedModel model = import(goldenPath(golden));
    ASSERT_TRUE(model.module);
    EXPECT_EQ(lanesText(model), lanes);
    EXPECT_EQ(model.lanes, (std::vector<std::string>{"decide", "embed", "encode"}));
  }
}

TEST_F(DecisionTest, EveryTensorIsAskedForWithItsShape) {
  for (const std::string golden : kGoldens) {
    ImportedModel model = import(goldenPath(golden));
    ASSERT_TRUE(model.module);
    EXPECT_TRUE(unusedTensors(model).empty()) << golden;
    for (WeightOp weight : model.module->getOps<WeightOp>()) {
      const Checkpoint::Tensor *stored = model.checkpoint->lookup(weight.getDir(), weight.getTensor());
      ASSERT_NE(stored, nullptr) << golden << ": " << weight.getTensor().str();
      EXPECT_EQ(llvm::ArrayRef<int64_t>(stored->stored->shape),
                mlir::cast<mlir::RankedTensorType>(weight.getType()).getShape())
          << golden << ": " << weight.getTensor().str();
    }
  }
}

TEST_F(DecisionTest, TheHeadReadsTypesAndMarkers) {
  ImportedModel model = import(goldenPath("laya-tiny-a"));
  ASSERT_TRUE(model.module);
  std::string text = printGraph(*model.module);
  expectParts(text,
              {"@decide(%ids: !batten.ids, %seq_types: !batten.seq_types, %seg: !batten.segments)",
               "%type = batten.add_type %norm, %seq_types, %type.w", "%h0.attn_norm = batten.layer_norm %type weight(",
               "%h0.attn = batten.attention %h0.qkv, %seg heads 1 head_width 64 scale 1.250000e-01",
               "@h0.qkv.w from \"head.layers.0.self_attn.in_proj_weight\"",
               "@h0.qkv.b from \"head.layers.0.self_attn.in_proj_bias\"", "%h0.act = batten.activation relu %h0.up",
               "%h1.add = batten.add %h1.down, %h1.attn_add", "%markers = batten.gather_markers %h1.add, %seg",
               "%scorer.act = batten.activation gelu_erf %scorer.dense",
               "%features = batten.decision_features %h1.add, %scorer, %seg", "batten.return %scorer, %act",
               "@embed(%ids: !batten.ids, %seg: !batten.segments)", "%pool = batten.pool mean %norm, %seg"});
  EXPECT_EQ(countOps(model, "decide", "batten.attention"), 4 + 2);
  EXPECT_EQ(countOps(model, "decide", "batten.rope"), 4);
  EXPECT_EQ(countOps(model, "embed", "batten.attention"), 4);
  // The head's norms have their own eps.
  ImportedModel other = import(goldenPath("laya-tiny-b"));
  std::map<std::string, float> eps;
  other.module->lookupSymbol("decide")->walk([&](LayerNormOp op) {
    eps[mlir::cast<mlir::NameLoc>(op.getLoc()).getName().str()] = op.getEps().convertToFloat();
  });
  EXPECT_EQ(eps.at("norm"), 1e-3f);
  EXPECT_EQ(eps.at("l1.attn_norm"), 1e-3f);
  EXPECT_EQ(eps.at("h0.norm"), 1e-5f);
  EXPECT_EQ(eps.at("scorer.norm"), 1e-5f);
}

TEST_F(DecisionTest, TemperatureMustBeThereAndIsReadByNoLane) {
  ImportedModel model = import(goldenPath("laya-tiny-a"));
  ASSERT_TRUE(model.module);
  EXPECT_TRUE(weightTensors(model).count("temperature"));
  EXPECT_EQ(printGraph(*model.module).find("batten.param @temperature"), std::string::npos);
  expectParts(model.notes.at(0), {"temperature", "no lane"});
}

TEST_F(DecisionTest, R19_BothLayoutsGiveTheSameGraph) {
  for (const std::string golden : kGoldens) {
    TempDir dir;
    copySplit(golden, dir);
    ImportedModel one = import(goldenPath(golden)), split = import(dir.path());
    ASSERT_TRUE(one.module && split.module);
    EXPECT_EQ(printGraph(*one.module), printGraph(*split.module)) << golden;
  }
  TempDir dir;
  copySplit("laya-tiny-a", dir);
  std::filesystem::remove(dir.path("rl_agent_config.json"));
  expectParts(refusal(dir.path()), {dir.path("config.json") + " is not there", dir.path("encoder/config.json"),
                                    dir.path("rl_agent_config.json")});
}

TEST_F(DecisionTest, HeadsAreSixtyFourWide) {
  TempDir dir;
  copyGolden("laya-tiny-c", dir);
  editFile(dir, "config.json", "\"num_attention_heads\": 2", "\"num_attention_heads\": 4");
  expectParts(refusal(dir.path()), {"config.json: heads are 32 wide", "heads of 64"});
}

TEST_F(DecisionTest, LanesThatReadMarkersHaveAStageOfTheirOwn) {
  ImportedModel model = import(goldenPath("laya-tiny-a"));
  ASSERT_TRUE(model.module);
  Spec spec = specFor(model, "graph.mlir", "model");
  ASSERT_EQ(spec.stages.size(), 2u);
  EXPECT_EQ(spec.stages[0].name, "state");
  EXPECT_EQ(spec.stages[1].name, "question");
  for (const Bucket &bucket : spec.stages[0].buckets)
    EXPECT_EQ(bucket.markers, 0u);
  for (const Bucket &bucket : spec.stages[1].buckets)
    EXPECT_EQ(bucket.markers, bucket.tokens);
  ASSERT_EQ(spec.lanes.size(), 3u);
  EXPECT_EQ(spec.lanes[0].stage, "question");
  EXPECT_EQ(spec.lanes[1].stage, "state");
  EXPECT_EQ(spec.lanes[2].stage, "state");
}

TEST_F(DecisionTest, SentenceModulesAroundADecisionCheckpointAreRefused) {
  TempDir dir;
  copyGolden("laya-tiny-a", dir);
  dir.write("modules.json",
            R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}])");
  expectParts(refusal(dir.path()), {"modules.json is there", "config.json has head_layers", "is not clear"});
}
