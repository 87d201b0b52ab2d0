// What the families' goldens don't hold: heads and poolings that have no golden, worked out in double precision from the
// hidden states of one that does; positions of the RoBERTa family at their limit; families that are refused.
#include "tests/golden/EditedModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace batten;
using namespace batten::test;

namespace {

std::string testName(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  llvm::replace(name, '-', '_');
  return name;
}

} // namespace

/// Goldens without a head, one a family.
class FamilyTest : public testing::TestWithParam<std::string> {};

TEST_P(FamilyTest, R13_TokenClassifierIsALinearLayerOnEveryToken) {
  Golden golden = llvm::cantFail(loadGolden(GetParam()));
  const GoldenCase &entry = caseOf(golden, "ragged");
  const Rows &hidden = entry.outputs.at("hidden");
  EditedModel model(GetParam());
  auto w = model.random("classifier.weight", {5, hidden.width}), b = model.random("classifier.bias", {5});
  std::string name = GetParam() == "electra" ? "ForPreTraining" : "Model";
  model.edit(name + "\"", "ForTokenClassification\"");
  expectOutput(model.write(), entry.batch, "logits", linear(hidden, w, b));
}

TEST_P(FamilyTest, R18_SentenceDirectoriesPoolAroundTheEncoder) {
  Golden golden = llvm::cantFail(loadGolden(GetParam()));
  const GoldenCase &entry = caseOf(golden, "ragged");
  EditedModel model(GetParam());
  model.dir.write("modules.json",
                  R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
                      {"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"}])");
  model.dir.write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens":true})");
  expectOutput(model.write(), entry.batch, "embedding", mean(entry.outputs.at("hidden"), entry.batch.cu));
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyTest,
                         testing::Values("roberta", "camembert", "distilbert", "electra", "albert", "nomic-bert", "gte",
                                         "eurobert", "jina-embeddings-v3"),
                         testName);

TEST(AlbertTest, R13_SequenceClassifierStandsOnThePooler) {
  Golden golden = llvm::cantFail(loadGolden("albert"));
  const GoldenCase &entry = caseOf(golden, "token_types");
  const Rows &pooled = entry.outputs.at("pooled");
  EditedModel model("albert");
  auto w = model.random("classifier.weight", {3, pooled.width}), b = model.random("classifier.bias", {3});
  model.edit("AlbertModel", "AlbertForSequenceClassification");
  expectOutput(model.write(), entry.batch, "logits", linear(pooled, w, b));
}

// Three groups of one layer each, which all hold the weights that one group had, compute what one group computes; and each
// layer reads its own group, since another bias in the last gives something else.
TEST(AlbertTest, R17_LayersReadTheWeightsOfTheirGroup) {
  Golden golden = llvm::cantFail(loadGolden("albert"));
  const GoldenCase &entry = caseOf(golden, "ragged");
  EditedModel model("albert");
  const std::string groups = "encoder.albert_layer_groups.";
  auto copy = model.tensors;
  for (const auto &[name, tensor] : copy)
    if (llvm::StringRef rest = name; rest.consume_front(groups + "0."))
      for (const char *group : {"1.", "2."})
        model.tensors[groups + group + rest.str()] = tensor;
  model.edit("\"num_hidden_groups\": 1", "\"num_hidden_groups\": 3");
  expectOutput(model.write(), entry.batch, "hidden", entry.outputs.at("hidden"));

  model.random(groups + "2.albert_layers.0.ffn_output.bias", {entry.outputs.at("hidden").width});
  auto bundle = TestBundle::open(TestBundle::compile(model.write()), runnableTargets().front());
  ASSERT_TRUE(bundle);
  TestExecutor executor(*bundle, 1);
  EXPECT_GT(largestDifference(executor.run(0, entry.batch)["hidden"], entry.outputs.at("hidden")), 0.1);
}

// A table of 514 rows with padding id 1 holds 512 tokens: 512 run, 513 are refused with both numbers.
TEST(RobertaTest, R11_UsableLengthIsTheTableWithoutThePaddingsRows) {
  EditedModel model("roberta");
  model.random("embeddings.position_embeddings.weight", {514, 40});
  model.edit("\"max_position_embeddings\": 66", "\"max_position_embeddings\": 514");
  auto bundle = TestBundle::open(TestBundle::compile(model.write()), runnableTargets().front());
  ASSERT_TRUE(bundle);
  batten_lane_info_t lane;
  ASSERT_EQ(batten_bundle_get_lane(bundle->get(), 0, &lane), BATTEN_OK);
  EXPECT_EQ(lane.maxSeqTokens, 512u);
  TestExecutor executor(*bundle, 1);
  PackedBatch batch;
  batch.ids.assign(512, 7);
  batch.cu.push_back(512);
  EXPECT_EQ(statusOf(executor, batch, 2).first, BATTEN_OK);
  batch.ids.push_back(7);
  batch.cu.back() = 513;
  auto [status, message] = statusOf(executor, batch, 2);
  EXPECT_EQ(status, BATTEN_BAD_BATCH);
  EXPECT_NE(message.find("513"), std::string::npos) << message;
  EXPECT_NE(message.find("512"), std::string::npos) << message;
}

// Positions are those of the index alone: a token whose word row equals the padding's gives the padding's bits. So the
// goldens' optional case pad_inside, where transformers moves positions, does not apply (and differs).
TEST(RobertaTest, APaddingIdInsideASequenceIsATokenLikeAnyOther) {
  for (std::string name : {"roberta", "camembert", "xlm-roberta-cross-encoder"}) {
    Golden golden = llvm::cantFail(loadGolden(name));
    const GoldenCase &entry = caseOf(golden, "pad_inside");
    EditedModel model(name);
    const std::string words = name == "xlm-roberta-cross-encoder" ? "roberta.embeddings.word_embeddings.weight"
                                                                  : "embeddings.word_embeddings.weight";
    EditedModel::Tensor &table = model.tensors.at(words);
    int32_t twin = 2;
    while (llvm::is_contained(entry.batch.ids, twin))
      ++twin;
    int64_t width = table.shape[1];
    std::copy_n(table.values.begin() + width, width, table.values.begin() + twin * width);
    PackedBatch other = entry.batch;
    ASSERT_TRUE(llvm::is_contained(other.ids, 1));
    std::replace(other.ids.begin(), other.ids.end(), 1, twin);
    auto bundle = TestBundle::open(TestBundle::compile(model.write()), runnableTargets().front());
    ASSERT_TRUE(bundle);
    TestExecutor executor(*bundle, 1);
    uint32_t lane = bundle->lane("encode");
    Rows padded = executor.run(lane, entry.batch)["hidden"], plain = executor.run(lane, other)["hidden"];
    ASSERT_EQ(padded.values.size(), plain.values.size());
    EXPECT_EQ(std::memcmp(padded.values.data(), plain.values.data(), plain.values.size() * sizeof(float)), 0) << name;
    EXPECT_GT(largestDifference(padded, entry.outputs.at("hidden")), 1e-3) << name;
  }
}

TEST(RefusedFamiliesTest, GoldensOfRefusedFamiliesAreRefusedByNameAndReason) {
  for (auto [name, reason] :
       {std::pair("mpnet", "bias by relative position"), std::pair("deberta-v2", "disentangled attention")}) {
    TempDir dir;
    CompileRequest request;
    request.input = goldenPath(name);
    request.output = dir.path("x.batten");
    auto summary = compile(request);
    ASSERT_FALSE(bool(summary)) << name << " was compiled";
    std::string text = llvm::toString(summary.takeError());
    for (std::string part :
         {"\"" + std::string(name) + "\" is refused", std::string(reason), std::string("known: bert, roberta")})
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
    EXPECT_FALSE(std::filesystem::exists(dir.path("x.batten")));
  }
}
