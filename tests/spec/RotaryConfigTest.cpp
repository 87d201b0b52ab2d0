// config.json of Nomic, GTE, EuroBERT and rotary XLM-RoBERTa, in each spelling that checkpoints publish: heads, gating,
// biases, and what is refused by its key.
#include "tests/spec/ConfigTexts.h"

#include <cmath>

using namespace batten;
using namespace batten::test;

TEST(RotaryConfigTest, ScaledOrPartialAnglesAreRefusedByTheirKey) {
  for (auto spell : {modernBert, gpt2Nomic, nomic, newGte, euroBert, rotaryXlmRoberta}) {
    expectParts(refusal(spell({{"rope_scaling", R"({"type": "dynamic", "factor": 2.0})"}})),
                {"dir/config.json: rope_scaling.type \"dynamic\" is not computed", "\"default\" wanted"});
    expectParts(refusal(spell({{"rope_scaling", R"({"rope_type": "linear", "factor": 2.0})"}})),
                {"rope_scaling.rope_type \"linear\""});
    EXPECT_EQ(refusal(spell({{"rope_scaling", R"({"rope_type": "default"})"}})), "(no error)");
    expectParts(refusal(spell({{"partial_rotary_factor", "0.5"}})), {"partial_rotary_factor is 0.5", "1 wanted"});
    expectParts(refusal(spell({{"rope_scaling", "2"}})), {"rope_scaling", "an object wanted"});
    expectParts(refusal(spell({{"rotary_emb_scale_base", "512"}})), {"rotary_emb_scale_base is set", "xPos"});
  }
  for (auto spell : {nomic, euroBert, newGte}) {
    expectParts(refusal(spell({{"rope_parameters", R"({"rope_theta": 5.0, "rope_type": "yarn"})"}})),
                {"rope_parameters.rope_type \"yarn\""});
    expectParts(refusal(spell({{"rope_parameters", R"({"partial_rotary_factor": 0.25})"}})),
                {"rope_parameters.partial_rotary_factor is 0.25"});
  }
  expectParts(refusal(newModernBert({{"rope_parameters", R"({"full_attention": {"rope_type": "linear"}})"}})),
              {"rope_parameters.full_attention.rope_type \"linear\""});
  EXPECT_EQ(refusal(nomic({{"partial_rotary_factor", "1.0"}})), "(no error)");
}

TEST(RotaryConfigTest, RopeParametersAreReadOrRefusedWhereverTheyStand) {
  for (auto spell : {gpt2Nomic, nomic, newGte, euroBert, rotaryXlmRoberta}) {
    std::string base = R"({"rope_type": "default", "rope_theta": 7.0})";
    auto alone = [&](const char *key, const std::string &value) {
      Members changes = {{"rope_theta", ""}, {"rotary_emb_base", ""}, {"rope_parameters", ""}, {"rope_scaling", ""}};
      changes[key] = value;
      return spell(changes);
    };
    for (const char *key : {"rope_parameters", "rope_scaling"}) {
      EXPECT_EQ(parsed(alone(key, base)).attention[0].ropeTheta, 7) << key;
      expectParts(refusal(alone(key, R"({"full_attention": )" + base + "}")),
                  {std::string(key) + ".full_attention is an object", "one base for all layers"});
      expectParts(refusal(alone(key, R"({"factor": 8.0})")),
                  {std::string(key) + ".factor is 8 without a rope_type", "1 wanted"});
      EXPECT_EQ(refusal(alone(key, R"({"factor": 1.0})")), "(no error)");
    }
  }
  expectParts(refusal(euroBert({{"rope_theta", "5.0"}, {"rope_scaling", R"({"rope_theta": 7.0})"}})),
              {"rope_theta is 5 and rope_scaling.rope_theta is another"});
  // For layers of both kinds.
  expectParts(refusal(modernBert({{"rope_scaling", R"({"rope_theta": 7.0})"}})),
              {"global_rope_theta is 160000 and rope_scaling.rope_theta is another"});
  ModelConfig c = parsed(
      modernBert({{"global_rope_theta", ""}, {"local_rope_theta", ""}, {"rope_scaling", R"({"rope_theta": 7.0})"}}));
  for (const LayerAttention &each : c.attention)
    EXPECT_EQ(each.ropeTheta, 7);
}

TEST(RotaryConfigTest, NtkScalingIsWhatNewCheckpointsHave) {
  ModelConfig plain = parsed(newGte({{"rope_theta", "20000"}}));
  ModelConfig scaled =
      parsed(newGte({{"rope_theta", "20000"}, {"rope_scaling", R"({"factor": 8.0, "type": "ntk", "mixed_b": null})"}}));
  EXPECT_EQ(plain.attention[0], (LayerAttention{20000, -1}));
  EXPECT_EQ(scaled.attention[0].ropeTheta, 160000);
  EXPECT_EQ(scaled.attention[0].ropeDivisor, std::pow(8.0, 2.0 / static_cast<double>(scaled.headWidth)));
  EXPECT_EQ(parsed(newGte({{"rope_scaling", R"({"factor": 1, "type": "ntk"})"}})).attention[0].ropeDivisor, 1);
  expectParts(refusal(newGte({{"rope_scaling", R"({"type": "ntk"})"}})), {"rope_scaling.factor is missing"});
  expectParts(refusal(newGte({{"rope_scaling", R"({"type": "ntk", "factor": 0.5})"}})),
              {"rope_scaling.factor: 0.5 found", "at least 1 wanted"});
  expectParts(refusal(newGte({{"rope_scaling", R"({"type": "ntk", "factor": 2, "mixed_b": 0.6})"}})),
              {"rope_scaling.mixed_b is set"});
  for (auto spell : {nomic, euroBert, modernBert}) // other families' code has no such scaling
    expectParts(refusal(spell({{"rope_scaling", R"({"type": "ntk", "factor": 2.0})"}})),
                {"rope_scaling.type \"ntk\" is not computed"});
}

TEST(RotaryConfigTest, NomicIsOneModelInBothSpellings) {
  ModelConfig old = parsed(gpt2Nomic()), now = parsed(nomic());
  for (const ModelConfig &c : {old, now}) {
    EXPECT_EQ(c.family->names, "nomic_bert");
    EXPECT_EQ(c.hiddenSize, 48);
    EXPECT_EQ(c.layers, 2);
    EXPECT_EQ(c.heads, 3);
    EXPECT_EQ(c.headWidth, 16);
    EXPECT_EQ(c.intermediateSize, 64);
    EXPECT_EQ(c.typeVocabSize, 2);
    EXPECT_TRUE(c.gated);
    EXPECT_EQ(c.activation, "silu");
    EXPECT_EQ(c.normEps, 1e-12);
    EXPECT_EQ(c.attention, std::vector<LayerAttention>(2, {1000, -1}));
    EXPECT_TRUE(!c.attentionBias && !c.upBias && !c.downBias && c.normBias);
  }
  EXPECT_EQ(old.hiddenSizeKey, "n_embd");
  EXPECT_EQ(old.maxPositions, 8192);
  EXPECT_TRUE(old.defaults.empty());
  EXPECT_EQ(now.defaults, std::vector<std::string>{"head_dim"});
  // Published configs that were converted hold both, with another n_positions.
  ModelConfig both = parsed(gpt2Nomic({{"hidden_size", "48"},
                                       {"hidden_act", "\"silu\""},
                                       {"max_position_embeddings", "2048"},
                                       {"rope_parameters", R"({"rope_theta": 1000.0, "rope_type": "default"})"}}));
  EXPECT_EQ(both.attention, old.attention);
  EXPECT_EQ(both.maxPositions, 8192);
  expectParts(refusal(gpt2Nomic({{"hidden_size", "64"}})), {"n_embd is 48 and hidden_size is 64", "not clear"});
  expectParts(refusal(gpt2Nomic({{"hidden_act", "\"gelu\""}})),
              {"hidden_act is the string \"gelu\" and activation_function is \"swiglu\"", "not clear"});
  expectParts(refusal(gpt2Nomic({{"rope_parameters", R"({"rope_theta": 10.0})"}})),
              {"rotary_emb_base is 1000 and rope_parameters.rope_theta is another", "not clear"});
  expectParts(refusal(gpt2Nomic({{"n_inner", "null"}})), {"n_inner: null found, an integer"});
}

TEST(RotaryConfigTest, BasesThatDependOnTheLengthBoundSequences) {
  for (auto spell : {gpt2Nomic, nomic}) {
    ModelConfig c = parsed(spell({{"rotary_scaling_factor", "2"}, {"max_trained_positions", "1024"}}));
    EXPECT_EQ(c.longestSequence, 1024);
    EXPECT_EQ(c.maxSeqTokens(), 1024);
    EXPECT_EQ(c.attention[0].ropeTheta, 1000);
    ASSERT_EQ(c.notes.size(), 1u);
    expectParts(c.notes[0], {"max_trained_positions (1024)", "rotary_scaling_factor"});
    EXPECT_EQ(parsed(spell({{"max_trained_positions", "1024"}})).longestSequence, 0);
    c = parsed(spell({{"rotary_scaling_factor", "2"}, {"max_trained_positions", ""}}));
    EXPECT_EQ(c.longestSequence, 2048);
    EXPECT_EQ(c.defaults.back(), "max_trained_positions");
    expectParts(refusal(spell({{"rotary_scaling_factor", "\"2\""}})), {"rotary_scaling_factor", "a number wanted"});
    expectParts(refusal(spell({{"rotary_scaling_factor", "2"}, {"max_trained_positions", "0"}})),
                {"max_trained_positions", "an integer within [1, "});
  }
  for (auto spell : {modernBert, newGte, euroBert, rotaryXlmRoberta})
    expectParts(refusal(spell({{"rotary_scaling_factor", "2"}})), {"rotary_scaling_factor is set", "null wanted"});
}

TEST(RotaryConfigTest, NomicsActivationTellsWhetherItIsGated) {
  for (auto [name, act, gated] :
       {std::tuple("swiglu", "silu", true), std::tuple("geglu", "gelu_erf", true),
        std::tuple("gelu", "gelu_erf", false), std::tuple("gelu_pytorch_tanh", "gelu_tanh", false)}) {
    ModelConfig c = parsed(gpt2Nomic({{"activation_function", "\"" + std::string(name) + "\""}}));
    EXPECT_EQ(c.activation, act) << name;
    EXPECT_EQ(c.gated, gated) << name;
  }
  expectParts(refusal(gpt2Nomic({{"activation_function", "\"glu\""}})),
              {"activation_function \"glu\"", "known: gelu", "swiglu, geglu"});
  ModelConfig c = parsed(gpt2Nomic({{"activation_function", ""},
                                    {"layer_norm_epsilon", ""},
                                    {"qkv_proj_bias", ""},
                                    {"mlp_fc1_bias", ""},
                                    {"mlp_fc2_bias", ""},
                                    {"rotary_emb_base", ""},
                                    {"type_vocab_size", ""}}));
  EXPECT_EQ(c.activation, "gelu_tanh");
  EXPECT_EQ(c.normEps, 1e-5);
  EXPECT_TRUE(!c.gated && c.attentionBias && c.upBias && c.downBias);
  EXPECT_EQ(c.defaults, (std::vector<std::string>{"type_vocab_size", "activation_function", "layer_norm_epsilon",
                                                  "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "rope_theta"}));
  EXPECT_EQ(parsed(gpt2Nomic({{"type_vocab_size", "0"}})).typeVocabSize, 0);
}

TEST(RotaryConfigTest, NomicsOtherComputationsAreRefusedByTheirKey) {
  for (const char *key : {"prenorm", "parallel_block", "use_rms_norm", "causal", "rotary_emb_interleaved"})
    expectParts(refusal(gpt2Nomic({{key, "true"}})),
                {"dir/config.json: " + std::string(key) + " is true", "not computed", "false wanted"});
  expectParts(refusal(gpt2Nomic({{"rotary_emb_fraction", "0.5"}})), {"rotary_emb_fraction is 0.5", "1 wanted"});
  expectParts(refusal(gpt2Nomic({{"rotary_emb_fraction", ""}})), {"rotary_emb_fraction is missing, which means 0"});
  expectParts(refusal(gpt2Nomic({{"moe_every_n_layers", "2"}, {"num_experts", "8"}})),
              {"num_experts is 8", "mixtures of experts"});
  expectParts(refusal(gpt2Nomic({{"moe_every_n_layers", "2"}})), {"moe_every_n_layers is 2", "mixtures of experts"});
  EXPECT_EQ(refusal(gpt2Nomic({{"moe_every_n_layers", "0"}, {"num_experts", "0"}})), "(no error)");
}

TEST(RotaryConfigTest, GteIsReadUnderBothItsNames) {
  ModelConfig c = parsed(newGte());
  EXPECT_EQ(c.family->names, "gte");
  EXPECT_EQ(c.typeVocabSize, 0);
  EXPECT_TRUE(c.gated && c.attentionBias && !c.upBias && c.downBias && c.normBias);
  EXPECT_EQ(c.attention, std::vector<LayerAttention>(2, {500000, -1}));
  EXPECT_TRUE(c.defaults.empty());
  c = parsed(newGte({{"model_type", "\"gte\""}, {"rope_theta", ""}, {"type_vocab_size", ""}, {"architectures", ""}}));
  EXPECT_EQ(c.family->names, "gte");
  EXPECT_EQ(c.typeVocabSize, 1);
  EXPECT_EQ(c.attention[0].ropeTheta, 160000);
  EXPECT_EQ(c.defaults, (std::vector<std::string>{"type_vocab_size", "rope_theta"}));
  EXPECT_EQ(parsed(newGte({{"rope_theta", ""}})).attention[0].ropeTheta, 10000);
  EXPECT_EQ(parsed(newGte({{"model_type", ""}, {"architectures", "[\"NewForSequenceClassification\"]"}})).modelType,
            "new");
  expectParts(refusal(newGte({{"logn_attention_scale", "true"}})), {"logn_attention_scale is true", "false wanted"});
  expectParts(refusal(newGte({{"layer_norm_type", "\"rms_norm\""}})),
              {"layer_norm_type \"rms_norm\"", "\"layer_norm\" wanted"});
  expectParts(refusal(newGte({{"position_embedding_type", "\"absolute\""}})),
              {"position_embedding_type \"absolute\" is not computed", "\"rope\""});
  expectParts(refusal(newGte({{"type_vocab_size", "-1"}})), {"type_vocab_size", "within [0, "});
}

TEST(RotaryConfigTest, R16_EuroBertsHeadsHaveAWidthAndSharedKeys) {
  ModelConfig c = parsed(euroBert());
  EXPECT_EQ(c.heads, 6);
  EXPECT_EQ(c.kvHeads, 2);
  EXPECT_EQ(c.headWidth, 8);
  EXPECT_EQ(c.keyWidth(), 16);
  EXPECT_EQ(c.typeVocabSize, 0);
  EXPECT_TRUE(c.gated && !c.attentionBias && !c.upBias && !c.downBias);
  EXPECT_EQ(c.activation, "silu");
  EXPECT_EQ(c.normEpsKey, "rms_norm_eps");
  EXPECT_EQ(c.attention, std::vector<LayerAttention>(2, {250000, -1}));
  c = parsed(euroBert({{"head_dim", "10"}})); // need not make up hidden_size
  EXPECT_EQ(c.queryWidth(), 60);
  c = parsed(euroBert({{"head_dim", ""}, {"num_key_value_heads", ""}, {"rms_norm_eps", ""}}));
  EXPECT_EQ(c.headWidth, 8);
  EXPECT_EQ(c.kvHeads, 6);
  EXPECT_EQ(c.normEps, 1e-5);
  EXPECT_EQ(c.defaults,
            (std::vector<std::string>{"head_dim", "num_key_value_heads", "rms_norm_eps", "classifier_pooling"}));
  EXPECT_EQ(
      parsed(euroBert({{"rope_theta", ""}, {"rope_parameters", R"({"rope_theta": 250000})"}})).attention[0].ropeTheta,
      250000);
  expectParts(refusal(euroBert({{"num_key_value_heads", "4"}})),
              {"num_attention_heads 6 is no multiple of num_key_value_heads 4"});
  expectParts(refusal(euroBert({{"head_dim", "7"}})), {"heads are 7 wide", "an even width wanted"});
  expectParts(refusal(euroBert({{"head_dim", "65536"}, {"num_attention_heads", "512"}})),
              {"num_attention_heads 512 times head_dim 65536 is above"});
  expectParts(refusal(euroBert({{"head_dim", "65537"}})), {"head_dim", "an integer within [1, 65536]"});
  expectParts(refusal(modernBert({{"num_attention_heads", "1"}, {"hidden_size", "65538"}})),
              {"heads are 65538 wide, at most 65536 wanted"});
  expectParts(refusal(euroBert({{"hidden_act", "\"linear\""}})), {"hidden_act \"linear\"", "gated layers without"});
  expectParts(refusal(euroBert({{"head_dim", "0"}})), {"head_dim", "an integer within [1, "});
  expectParts(refusal(euroBert({{"is_causal", "true"}})), {"is_causal is true", "causal attention"});
  expectParts(refusal(modernBert({{"num_attention_heads", "5"}})),
              {"hidden_size 48 is no multiple of num_attention_heads 5"});
  expectParts(refusal(modernBert({{"num_attention_heads", "16"}})), {"heads are 3 wide", "an even width wanted"});
}

TEST(RotaryConfigTest, XlmRobertaWithRotaryPositionsIsJinas) {
  ModelConfig c = parsed(rotaryXlmRoberta());
  EXPECT_EQ(c.modelType, "xlm-roberta");
  EXPECT_EQ(c.family->names, "jina_embeddings_v3");
  EXPECT_EQ(c.firstPosition, 0);
  EXPECT_FALSE(c.gated);
  EXPECT_TRUE(c.attentionBias && c.upBias && c.downBias);
  EXPECT_EQ(c.attention, std::vector<LayerAttention>(2, {20000, -1}));
  EXPECT_EQ(parsed(rotaryXlmRoberta({{"rotary_emb_base", ""}})).attention[0].ropeTheta, 10000);
  c = parsed(
      rotaryXlmRoberta({{"model_type", "\"jina_embeddings_v3\""}, {"rotary_emb_base", ""}, {"type_vocab_size", ""}}));
  EXPECT_EQ(c.attention[0].ropeTheta, 20000);
  EXPECT_EQ(c.typeVocabSize, 1);
  EXPECT_EQ(parsed(rotaryXlmRoberta({{"position_embedding_type", "\"absolute\""}})).family->names, "roberta");
  for (const char *type : {"\"xlm-roberta\"", "\"jina_embeddings_v3\""})
    expectParts(refusal(rotaryXlmRoberta(
                    {{"model_type", type}, {"lora_adaptations", R"(["retrieval.query", "retrieval.passage"])"}})),
                {"dir/config.json: lora_adaptations has \"retrieval.query\", ..", "adapters are not computed"});
  EXPECT_EQ(refusal(rotaryXlmRoberta({{"lora_adaptations", "[]"}})), "(no error)");
  expectParts(refusal(rotaryXlmRoberta({{"lora_adaptations", "4"}})),
              {"lora_adaptations", "an array of strings wanted"});
}

TEST(RotaryConfigTest, R15_PadIdMayBeNullOrAbsentWherePositionsAreAngles) {
  for (auto spell : {modernBert, gpt2Nomic, nomic, newGte, euroBert, rotaryXlmRoberta})
    for (const char *pad : {"null", "", "0"})
      EXPECT_EQ(refusal(spell({{"pad_token_id", pad}})), "(no error)");
}

TEST(RotaryConfigTest, AMissingModelTypeIsTakenFromTheClass) {
  for (auto [spell, name, names] :
       {std::tuple(&modernBert, "ModernBertForTokenClassification", "modernbert"),
        std::tuple(&gpt2Nomic, "NomicBertModel", "nomic_bert"), std::tuple(&nomic, "NomicBertModel", "nomic_bert"),
        std::tuple(&newGte, "NewModel", "gte"), std::tuple(&newGte, "GteModel", "gte"),
        std::tuple(&euroBert, "EuroBertForMaskedLM", "eurobert"),
        std::tuple(&rotaryXlmRoberta, "XLMRobertaModel", "jina_embeddings_v3"),
        std::tuple(&rotaryXlmRoberta, "JinaEmbeddingsV3Model", "jina_embeddings_v3")}) {
    ModelConfig c = parsed((*spell)({{"model_type", ""}, {"architectures", "[\"" + std::string(name) + "\"]"}}));
    EXPECT_EQ(c.family->names, names) << name;
    EXPECT_EQ(c.defaults.at(0), "model_type");
  }
}

TEST(RotaryConfigTest, GoldensParse) {
  for (auto [name, decisionLayers] :
       {std::pair("modernbert", -1), std::pair("modernbert-old-config", -1),
        std::pair("modernbert-sequence-classification-cls", -1),
        std::pair("modernbert-sequence-classification-mean", -1), std::pair("modernbert-token-classification", -1),
        std::pair("nomic-bert", -1), std::pair("gte", -1), std::pair("eurobert", -1),
        std::pair("jina-embeddings-v3", -1), std::pair("laya-tiny-a", 2), std::pair("laya-tiny-b", 1),
        std::pair("laya-tiny-c", 1)}) {
    llvm::Expected<ModelConfig> config = readModelDirConfig(std::string(BATTEN_TEST_DATA "/goldens/") + name);
    ASSERT_TRUE(static_cast<bool>(config)) << llvm::toString(config.takeError());
    EXPECT_EQ(config->decisionLayers.value_or(-1), decisionLayers) << name;
    EXPECT_EQ(config->attention.size(), static_cast<size_t>(config->layers)) << name;
  }
}
