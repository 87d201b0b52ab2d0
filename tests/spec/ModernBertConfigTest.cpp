// config.json of ModernBERT in both spellings, how classifiers pool, and decision checkpoints in one file or two.
#include "tests/spec/ConfigTexts.h"

using namespace batten;
using namespace batten::test;

namespace {

constexpr LayerAttention kGlobal = {160000, -1}, kLocal = {10000, 64};

} // namespace

TEST(ModernBertConfigTest, R14_ModernBertsLayersAreGlobalEveryNth) {
  ModelConfig c = parsed(modernBert());
  EXPECT_EQ(c.attention, (std::vector{kGlobal, kLocal, kLocal, kGlobal, kLocal, kLocal}));
  EXPECT_EQ(c.family->names, "modernbert");
  EXPECT_EQ(c.headWidth, 16);
  EXPECT_EQ(c.kvHeads, 3);
  EXPECT_TRUE(c.gated);
  EXPECT_EQ(c.activation, "gelu_erf");
  EXPECT_EQ(c.activationKey, "hidden_activation");
  EXPECT_EQ(c.typeVocabSize, 0);
  EXPECT_EQ(c.normEps, 1e-5);
  EXPECT_EQ(c.normEpsKey, "norm_eps");
  EXPECT_FALSE(c.attentionBias || c.upBias || c.downBias || c.normBias);
  EXPECT_TRUE(c.defaults.empty());
  EXPECT_TRUE(c.notes.empty());
  c = parsed(modernBert({{"global_attn_every_n_layers", "1"}, {"local_attention", "7"}}));
  EXPECT_EQ(c.attention, std::vector<LayerAttention>(6, kGlobal));
  EXPECT_EQ(parsed(modernBert({{"local_attention", "7"}})).attention[1].window, 3);
  EXPECT_EQ(parsed(modernBert({{"local_attention", "1"}})).attention[1].window, 0);
}

TEST(ModernBertConfigTest, R14_BothSpellingsOfModernBertAreOneModel) {
  ModelConfig old = parsed(modernBert()), now = parsed(newModernBert());
  EXPECT_EQ(old.attention, now.attention);
  EXPECT_TRUE(now.defaults.empty());
  EXPECT_EQ(parsed(newModernBert({{"global_rope_theta", "160000"}})).attention, old.attention);
  // Kinds in another order than every n-th, and one base only.
  now = parsed(newModernBert({{"num_hidden_layers", "2"},
                              {"layer_types", R"(["sliding_attention", "full_attention"])"},
                              {"rope_parameters", R"({"full_attention": {"rope_theta": 5}})"}}));
  EXPECT_EQ(now.attention, (std::vector<LayerAttention>{{10000, 64}, {5, -1}}));
  EXPECT_EQ(now.defaults, std::vector<std::string>{"local_rope_theta"});
  now = parsed(newModernBert({{"global_attn_every_n_layers", "2"}}));
  EXPECT_EQ(now.attention, old.attention);
  ASSERT_EQ(now.notes.size(), 1u);
  expectParts(now.notes[0], {"global_attn_every_n_layers is not read", "layer_types"});
}

TEST(ModernBertConfigTest, R10_ModernBertsDefaultsAreListed) {
  ModelConfig c = parsed(object({{"model_type", "\"modernbert\""},
                                 {"hidden_size", "48"},
                                 {"intermediate_size", "36"},
                                 {"max_position_embeddings", "64"},
                                 {"num_attention_heads", "3"},
                                 {"num_hidden_layers", "4"},
                                 {"vocab_size", "100"}},
                                {}));
  EXPECT_EQ(c.attention, (std::vector{kGlobal, kLocal, kLocal, kGlobal}));
  EXPECT_EQ(c.normEps, 1e-5);
  EXPECT_EQ(c.classifier.pooling, "cls");
  EXPECT_EQ(c.classifier.activation, "gelu_erf");
  EXPECT_FALSE(c.classifier.denseBias || c.attentionBias || c.upBias || c.downBias || c.normBias);
  EXPECT_EQ(c.defaults, (std::vector<std::string>{"hidden_activation", "norm_eps", "attention_bias", "mlp_bias",
                                                  "norm_bias", "global_rope_theta", "local_rope_theta",
                                                  "global_attn_every_n_layers", "local_attention", "classifier_pooling",
                                                  "classifier_activation", "classifier_bias"}));
  c = parsed(modernBert({{"norm_eps", ""}, {"layer_norm_eps", "1e-12"}})); // its code reads norm_eps only
  EXPECT_EQ(c.normEps, 1e-5);
  ASSERT_EQ(c.notes.size(), 1u);
  expectParts(c.notes[0], {"layer_norm_eps is not read", "norm_eps"});
  // Of old, null gives local layers the base of the global ones.
  EXPECT_EQ(parsed(modernBert({{"local_rope_theta", "null"}})).attention[1], (LayerAttention{160000, 64}));
}

TEST(ModernBertConfigTest, ModernBertsBiasesAreSwitches) {
  ModelConfig c = parsed(modernBert({{"attention_bias", "true"}}));
  EXPECT_TRUE(c.attentionBias && !c.upBias && !c.downBias && !c.normBias);
  c = parsed(modernBert({{"mlp_bias", "true"}}));
  EXPECT_TRUE(!c.attentionBias && c.upBias && c.downBias && !c.normBias);
  c = parsed(modernBert({{"norm_bias", "true"}}));
  EXPECT_TRUE(!c.attentionBias && !c.upBias && !c.downBias && c.normBias);
  for (const char *key : {"attention_bias", "mlp_bias", "norm_bias"})
    expectParts(refusal(modernBert({{key, "1"}})), {"dir/config.json: " + std::string(key), "true or false wanted"});
}

TEST(ModernBertConfigTest, R14_ClassifiersSayHowTheyPool) {
  const Members head = {{"architectures", "[\"ModernBertForSequenceClassification\"]"}};
  auto with = [&](Members changes) {
    changes.insert(head.begin(), head.end());
    return changes;
  };
  EXPECT_EQ(parsed(modernBert(head)).classifier.pooling, "mean");
  ModelConfig c = parsed(modernBert(
      with({{"classifier_pooling", "\"cls\""}, {"classifier_activation", "\"relu\""}, {"classifier_bias", "true"}})));
  EXPECT_EQ(c.classifier.pooling, "cls");
  EXPECT_EQ(c.classifier.activation, "relu");
  EXPECT_TRUE(c.classifier.denseBias);
  expectParts(refusal(modernBert(with({{"classifier_pooling", "\"max\""}}))),
              {"dir/config.json: classifier_pooling \"max\"", "known: cls, mean"});
  expectParts(refusal(modernBert(with({{"classifier_pooling", "1"}}))), {"classifier_pooling", "a string wanted"});
  expectParts(refusal(modernBert(with({{"classifier_activation", "\"mish\""}}))),
              {"classifier_activation \"mish\"", "known: gelu"});
  EXPECT_EQ(refusal(modernBert({{"classifier_pooling", "\"max\""}})), "(no error)") << "there is no classifier";

  for (auto [name, ours] : {std::pair("late", "late"), std::pair("bos", "cls"), std::pair("mean", "mean")})
    for (const char *key : {"classifier_pooling", "clf_pooling"})
      EXPECT_EQ(parsed(euroBert({{key, "\"" + std::string(name) + "\""}})).classifier.pooling, ours) << name;
  c = parsed(euroBert());
  EXPECT_EQ(c.classifier.pooling, "late");
  EXPECT_EQ(c.defaults, std::vector<std::string>{"classifier_pooling"});
  expectParts(refusal(euroBert({{"clf_pooling", "\"cls\""}})), {"clf_pooling \"cls\"", "known: late, bos, mean"});
  expectParts(refusal(euroBert({{"clf_pooling", "\"bos\""}, {"classifier_pooling", "\"late\""}})), {"not clear"});
}

TEST(ModernBertConfigTest, R21_ModernBertsWrongValuesAreRefusedWithTheirPath) {
  for (auto [key, value, text] :
       {std::tuple("global_attn_every_n_layers", "0", "an integer within [1, 16777216] wanted"),
        std::tuple("global_attn_every_n_layers", "\"3\"", "an integer"),
        std::tuple("local_attention", "0", "an integer within [1, 16777216] wanted"),
        std::tuple("local_attention", "128.5", "an integer"),
        std::tuple("global_rope_theta", "\"1\"", "a number wanted"),
        std::tuple("global_rope_theta", "0", "a number above 0 that f32 holds wanted"),
        std::tuple("local_rope_theta", "-1", "a number above 0"), std::tuple("local_rope_theta", "1e60", "f32"),
        std::tuple("hidden_activation", "3", "a string wanted"),
        std::tuple("hidden_activation", "\"swiglu\"", "known: gelu"), std::tuple("norm_eps", "0", "above 0")})
    expectParts(refusal(modernBert({{key, value}})), {"dir/config.json: " + std::string(key), text});
  EXPECT_EQ(parsed(modernBert({{"local_attention", "128.0"}})).attention[1].window, 64);
  expectParts(refusal(newModernBert({{"layer_types", "[\"full_attention\"]"}})),
              {"dir/config.json: layer_types has 1 entries, num_hidden_layers is 6"});
  expectParts(refusal(newModernBert({{"num_hidden_layers", "1"}, {"layer_types", "[\"chunked_attention\"]"}})),
              {"dir/config.json: layer_types[0]: \"chunked_attention\" found", "\"sliding_attention\" wanted"});
  expectParts(refusal(newModernBert({{"layer_types", "3"}})), {"layer_types", "an array of strings wanted"});
  expectParts(refusal(newModernBert({{"rope_parameters", R"({"rope_theta": 5.0})"}})),
              {"dir/config.json: rope_parameters.rope_theta is not known", "full_attention", "sliding_attention"});
  expectParts(refusal(newModernBert({{"rope_parameters", R"({"full_attention": {"rope_theta": "x"}})"}})),
              {"dir/config.json: rope_parameters.full_attention.rope_theta", "a number wanted"});
  expectParts(refusal(newModernBert({{"global_rope_theta", "5"}})),
              {"global_rope_theta is 5 and rope_parameters.full_attention.rope_theta is another", "not clear"});
}

//===--- decision checkpoints -------------------------------------------------------------------------------------===//

namespace {

const Members kDecision = {{"num_attention_heads", "2"}, {"hidden_size", "128"}};

std::string decision(Members changes) {
  changes.insert(kDecision.begin(), kDecision.end());
  return modernBert(changes);
}

std::string dirRefusal(const TempDir &dir) { return errorText(readModelDirConfig(dir.path())); }

} // namespace

TEST(ModernBertConfigTest, HeadLayersMakeADecisionCheckpoint) {
  EXPECT_EQ(parsed(decision({{"head_layers", "2"}})).decisionLayers, 2);
  EXPECT_EQ(parsed(decision({})).decisionLayers, std::nullopt);
  EXPECT_EQ(parsed(euroBert({{"head_layers", "2"}})).decisionLayers, std::nullopt) << "no key of that family";
  expectParts(refusal(decision({{"head_layers", "-1"}})),
              {"dir/config.json: head_layers", "an integer within [0, 4096]"});
  expectParts(refusal(modernBert({{"head_layers", "2"}})),
              {"dir/config.json: heads are 16 wide (hidden_size 48, num_attention_heads 3)", "heads of 64"});
}

TEST(ModernBertConfigTest, R19_ADecisionConfigMayBeInTwoFiles) {
  TempDir dir;
  expectParts(dirRefusal(dir), {dir.path("config.json") + " is not there", dir.path("encoder/config.json"),
                                dir.path("rl_agent_config.json"), "neither is"});
  dir.write("rl_agent_config.json", R"({"encoder": "x", "head_layers": 2, "max_len": 512, "temperature": [1, 1, 1]})");
  expectParts(dirRefusal(dir), {dir.path("config.json") + " is not there", dir.path("encoder/config.json"),
                                dir.path("rl_agent_config.json"), "only the latter is"});
  dir.write("encoder/config.json", decision({}));
  llvm::Expected<ModelConfig> config = readModelDirConfig(dir.path());
  ASSERT_TRUE(static_cast<bool>(config)) << llvm::toString(config.takeError());
  EXPECT_EQ(config->decisionLayers, 2);
  EXPECT_EQ(config->path, dir.path("encoder/config.json"));

  dir.write("encoder/config.json", decision({{"head_layers", "1"}}));
  expectParts(dirRefusal(dir),
              {dir.path("rl_agent_config.json") + ": head_layers is 2", "encoder/config.json it is 1"});
  dir.write("encoder/config.json", modernBert());
  expectParts(dirRefusal(dir), {dir.path("encoder/config.json") + ": heads are 16 wide"});
  dir.write("encoder/config.json", euroBert());
  expectParts(dirRefusal(dir), {"model_type \"eurobert\" beside", "an encoder of modernbert"});
  dir.write("encoder/config.json", decision({}));
  dir.write("rl_agent_config.json", "{}");
  expectParts(dirRefusal(dir), {dir.path("rl_agent_config.json") + ": head_layers is missing"});
  dir.write("rl_agent_config.json", "[]");
  expectParts(dirRefusal(dir), {dir.path("rl_agent_config.json") + ": an array found, an object wanted"});
  std::filesystem::remove(dir.path("rl_agent_config.json"));
  expectParts(dirRefusal(dir), {"only the former is"});
  dir.write("config.json", decision({})); // the model's own config comes first
  config = readModelDirConfig(dir.path());
  ASSERT_TRUE(static_cast<bool>(config)) << llvm::toString(config.takeError());
  EXPECT_EQ(config->decisionLayers, std::nullopt);
}
