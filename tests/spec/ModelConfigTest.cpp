// config.json: sizes, activations, defaults that are stated, and what is refused by name.
#include "compiler/spec/ModelConfig.h"
#include "tests/ErrorText.h"

using namespace batten;
using namespace batten::test;

namespace {

/// A sound config with `extra` members in front, which replace those of the same name.
std::string config(const std::string &extra, std::initializer_list<const char *> without = {}) {
  std::string out = "{" + extra;
  for (auto [key, value] :
       {std::pair("model_type", "\"bert\""), std::pair("hidden_size", "32"), std::pair("num_hidden_layers", "2"),
        std::pair("num_attention_heads", "4"), std::pair("intermediate_size", "64"), std::pair("vocab_size", "100"),
        std::pair("max_position_embeddings", "48"), std::pair("type_vocab_size", "2"),
        std::pair("hidden_act", "\"gelu\""), std::pair("layer_norm_eps", "1e-12")}) {
    bool skip = extra.find("\"" + std::string(key) + "\"") != std::string::npos;
    for (const char *name : without)
      skip |= std::string(name) == key;
    if (!skip)
      out += std::string(out.size() > 1 ? ", " : "") + "\"" + key + "\": " + value;
  }
  return out + "}";
}

std::string refusal(const std::string &text) { return errorText(parseModelConfig(text, "dir/config.json")); }

ModelConfig parsed(const std::string &text) {
  llvm::Expected<ModelConfig> config = parseModelConfig(text, "dir/config.json");
  if (config)
    return *config;
  ADD_FAILURE() << llvm::toString(config.takeError());
  return {};
}

} // namespace

TEST(ModelConfigTest, ReadsABertConfig) {
  ModelConfig c = parsed(config(""));
  EXPECT_EQ(c.hiddenSize, 32);
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.intermediateSize, 64);
  EXPECT_EQ(c.vocabSize, 100);
  EXPECT_EQ(c.maxPositions, 48);
  EXPECT_EQ(c.typeVocabSize, 2);
  EXPECT_EQ(c.activation, "gelu_erf");
  EXPECT_EQ(c.normEps, 1e-12);
  EXPECT_TRUE(c.defaults.empty());
}

TEST(ModelConfigTest, R9_ActivationsByExactName) {
  for (auto [name, dialect] :
       {std::pair("gelu", "gelu_erf"), std::pair("gelu_python", "gelu_erf"), std::pair("gelu_new", "gelu_tanh"),
        std::pair("gelu_pytorch_tanh", "gelu_tanh"), std::pair("gelu_fast", "gelu_tanh"), std::pair("relu", "relu"),
        std::pair("silu", "silu"), std::pair("swish", "silu"), std::pair("tanh", "tanh")})
    EXPECT_EQ(parsed(config("\"hidden_act\": \"" + std::string(name) + "\"")).activation, dialect) << name;
  for (const char *name : {"mish", "GELU", "quick_gelu", "gelu_10", "Gelu", "relu6", ""})
    expectParts(
        refusal(config("\"hidden_act\": \"" + std::string(name) + "\"")),
        {"dir/config.json", "hidden_act", "\"" + std::string(name) + "\"", "known: gelu, gelu_python, gelu_new"});
}

TEST(ModelConfigTest, R10_EpsFromTheConfigOrTheFamilyDefaultStated) {
  EXPECT_EQ(parsed(config("\"layer_norm_eps\": 1e-5")).normEps, 1e-5);
  EXPECT_EQ(parsed(config("\"norm_eps\": 1e-6", {"layer_norm_eps"})).normEps, 1e-6);
  ModelConfig c = parsed(config("", {"layer_norm_eps"}));
  EXPECT_EQ(c.normEps, 1e-12);
  EXPECT_EQ(c.defaults, std::vector<std::string>{"layer_norm_eps"});
  for (const char *value : {"-1", "0", "1e-60", "2"})
    expectParts(refusal(config("\"layer_norm_eps\": " + std::string(value))),
                {"config.json: layer_norm_eps: ", "at most 1"});
  expectParts(refusal(config("\"layer_norm_eps\": \"1e-5\"")), {"layer_norm_eps", "a number wanted"});
}

TEST(ModelConfigTest, R21_WrongTypesAreRefusedWithTheirPath) {
  EXPECT_EQ(parsed(config("\"hidden_size\": 32.0")).hiddenSize, 32);
  for (const char *value : {"\"768\"", "-1", "1e30", "null", "32.5", "[32]", "{}", "true", "0", "99999999999"})
    expectParts(refusal(config("\"hidden_size\": " + std::string(value))),
                {"dir/config.json: hidden_size", "an integer within [1, 16777216]"});
  for (const char *key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
                          "max_position_embeddings"})
    expectParts(refusal(config("", {key})), {"dir/config.json: " + std::string(key) + " is missing"});
  expectParts(refusal(config("\"num_hidden_layers\": -1")), {"num_hidden_layers", "-1"});
  expectParts(refusal("[]"), {"dir/config.json: an array found, an object wanted"});
  expectParts(refusal("{\"hidden_size\": 16, \"hidden_size\": 32}"), {"dir/config.json", "duplicate", "hidden_size"});
}

TEST(ModelConfigTest, R16_HeadsMustDivideTheWidth) {
  EXPECT_EQ(refusal(config("\"num_attention_heads\": 5")),
            "dir/config.json: hidden_size 32 is no multiple of num_attention_heads 5");
}

TEST(ModelConfigTest, R15_PadIdMayBeNullOrAbsent) {
  EXPECT_EQ(refusal(config("\"pad_token_id\": null")), "(no error)");
}

TEST(ModelConfigTest, OtherComputationsAreRefusedByTheirKey) {
  expectParts(refusal(config("\"is_decoder\": true")), {"dir/config.json", "is_decoder"});
  expectParts(refusal(config("\"add_cross_attention\": true")), {"add_cross_attention"});
  expectParts(refusal(config("\"position_embedding_type\": \"relative_key\"")),
              {"position_embedding_type", "relative_key"});
  expectParts(refusal(config("\"quantization_config\": {\"bits\": 4}")), {"quantization_config"});
  expectParts(refusal(config("\"pruned_heads\": {\"0\": [1]}")), {"pruned_heads"});
  expectParts(refusal(config(R"("adapters": {"adapters": {"de": "a1"}})")),
              {"config.json: adapters.adapters is not empty", "not computed"});
  EXPECT_EQ(refusal(config(R"("adapters": {"adapters": {}, "config_map": {}})")), "(no error)");
  EXPECT_EQ(refusal(config("\"is_decoder\": false, \"position_embedding_type\": \"absolute\", \"pruned_heads\": {}")),
            "(no error)");
}

TEST(ModelConfigTest, OtherFamiliesAreRefusedWithTheReason) {
  for (auto [type, reason] :
       {std::pair("mpnet", "bias by relative position"), std::pair("t5", "decoder"), std::pair("mt5", "decoder"),
        std::pair("deberta", "disentangled"), std::pair("deberta-v2", "disentangled"), std::pair("llama", "causal"),
        std::pair("xlm-roberta-xl", "before attention"), std::pair("longformer", "sparse attention"),
        std::pair("xmod", "adapter"), std::pair("xlnet", "relative position"),
        std::pair("nomic_bert_moe", "mixtures of experts"), std::pair("bertt", "not a family that is known"),
        std::pair("", "not a family")})
    expectParts(refusal(config("\"model_type\": \"" + std::string(type) + "\"")),
                {"dir/config.json: model_type \"" + std::string(type) + "\" is refused: ", reason,
                 "; known: bert, roberta, xlm-roberta, camembert, distilbert, electra, albert, modernbert, nomic_bert, "
                 "gte, new, "
                 "eurobert, jina_embeddings_v3"});
}

TEST(ModelConfigTest, AMissingModelTypeIsTakenFromTheWholeClassName) {
  expectParts(refusal(config("", {"model_type"})), {"model_type is missing; known: bert, roberta"});
  for (auto [name, type] :
       {std::pair("BertModel", "bert"), std::pair("RobertaForMaskedLM", "roberta"),
        std::pair("XLMRobertaForSequenceClassification", "xlm-roberta"), std::pair("CamembertModel", "camembert"),
        std::pair("ElectraForPreTraining", "electra"), std::pair("AlbertForTokenClassification", "albert")}) {
    ModelConfig c = parsed(config("\"embedding_size\": 16, \"pad_token_id\": 1, \"num_hidden_groups\": 1, "
                                  "\"inner_group_num\": 1, \"architectures\": [\"" +
                                      std::string(name) + "\"]",
                                  {"model_type"}));
    EXPECT_EQ(c.modelType, type);
    EXPECT_EQ(c.defaults, std::vector<std::string>{"model_type"});
  }
  for (const char *name : {"BertGenerationEncoder", "RobertaPreLayerNormModel", "XLMRobertaXLModel", "Bert"})
    expectParts(refusal(config("\"architectures\": [\"" + std::string(name) + "\"]", {"model_type"})),
                {"model_type is missing"});
}

TEST(ModelConfigTest, R11_RobertaPositionsBeginAfterThePadding) {
  for (const char *type : {"roberta", "xlm-roberta", "camembert"}) {
    std::string family = "\"model_type\": \"" + std::string(type) + "\"";
    ModelConfig c = parsed(config(family + ", \"pad_token_id\": 1, \"max_position_embeddings\": 514"));
    EXPECT_EQ(c.firstPosition, 2);
    EXPECT_EQ(c.maxSeqTokens(), 512);
    EXPECT_TRUE(c.defaults.empty());
    EXPECT_EQ(parsed(config(family + ", \"pad_token_id\": 0")).maxSeqTokens(), 47);
    c = parsed(config(family)); // R15: absent is the family's default, stated
    EXPECT_EQ(c.firstPosition, 2);
    EXPECT_EQ(c.defaults, std::vector<std::string>{"pad_token_id"});
    expectParts(refusal(config(family + ", \"pad_token_id\": null")),
                {"dir/config.json: pad_token_id is null", type, "pad_token_id + 1"});
    expectParts(refusal(config(family + ", \"pad_token_id\": -1")), {"pad_token_id", "-1"});
    EXPECT_EQ(parsed(config(family + ", \"pad_token_id\": 46")).maxSeqTokens(), 1);
    expectParts(refusal(config(family + ", \"pad_token_id\": 47")),
                {"max_position_embeddings 48", "pad_token_id + 1 = 48", "no position"});
  }
  for (const char *type : {"bert", "electra", "albert"}) // padding plays no part: not even its type is read
    EXPECT_EQ(parsed(config("\"pad_token_id\": 7, \"model_type\": \"" + std::string(type) + "\"")).maxSeqTokens(), 48);
}

TEST(ModelConfigTest, DistilBertHasKeysOfItsOwnOrBertsAndAFixedEps) {
  auto distil = [](const std::string &extra) {
    return "{" + extra + "\"model_type\": \"distilbert\", \"vocab_size\": 100, \"max_position_embeddings\": 48}";
  };
  const std::string own = R"("dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, )";
  ModelConfig c = parsed(distil(own + "\"activation\": \"relu\", \"layer_norm_eps\": 1e-5, "));
  EXPECT_EQ(c.hiddenSize, 32);
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.intermediateSize, 64);
  EXPECT_EQ(c.activation, "relu");
  EXPECT_EQ(c.normEps, 1e-12);
  EXPECT_EQ(c.typeVocabSize, 0);
  EXPECT_EQ(c.hiddenSizeKey, "dim");
  EXPECT_EQ(c.intermediateSizeKey, "hidden_dim");
  EXPECT_TRUE(c.defaults.empty());
  ASSERT_EQ(c.notes.size(), 1u);
  expectParts(c.notes[0], {"layer_norm_eps is not read", "distilbert"});
  c = parsed(distil(R"("hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_dim": 64, )"));
  EXPECT_EQ(c.hiddenSize, 32);
  EXPECT_EQ(c.hiddenSizeKey, "hidden_size");
  EXPECT_EQ(c.defaults, std::vector<std::string>{"activation"});
  EXPECT_EQ(parsed(distil(own + "\"hidden_size\": 32, ")).hiddenSizeKey, "dim");
  expectParts(refusal(distil(own + "\"hidden_size\": 48, ")), {"dim is 32 and hidden_size is 48", "not clear"});
  expectParts(refusal(distil(R"("dim": 32, "n_layers": 2, "n_heads": 5, "hidden_dim": 64, )")),
              {"dim 32 is no multiple of n_heads 5"});
  expectParts(refusal(distil(R"("n_layers": 2, "n_heads": 4, "hidden_dim": 64, )")), {"config.json: dim is missing"});
}

TEST(ModelConfigTest, R17_AlbertsGroupsMustDivideTheLayers) {
  auto albert = [](const std::string &extra) { return config("\"model_type\": \"albert\", " + extra, {"hidden_act"}); };
  ModelConfig c = parsed(albert(R"("embedding_size": 16, "num_hidden_groups": 2, "num_hidden_layers": 4)"));
  EXPECT_EQ(c.embeddingSize, 16);
  EXPECT_EQ(c.layerGroups, 2);
  EXPECT_EQ(c.groupOf(1), 0);
  EXPECT_EQ(c.groupOf(2), 1);
  EXPECT_EQ(c.activationName, "gelu_new");
  EXPECT_EQ(c.activation, "gelu_tanh");
  EXPECT_EQ(c.defaults, (std::vector<std::string>{"inner_group_num", "hidden_act"}));
  c = parsed(config(R"("model_type": "albert")"));
  EXPECT_EQ(c.embeddingSize, 128);
  EXPECT_EQ(c.defaults, (std::vector<std::string>{"embedding_size", "num_hidden_groups", "inner_group_num"}));
  expectParts(refusal(albert(R"("num_hidden_layers": 12, "num_hidden_groups": 5)")),
              {"num_hidden_layers 12 is no multiple of num_hidden_groups 5"});
  expectParts(refusal(albert(R"("inner_group_num": 2)")), {"inner_group_num is 2", "1 wanted"});
  expectParts(refusal(albert(R"("num_hidden_groups": 0)")), {"num_hidden_groups", "0"});
  EXPECT_EQ(parsed(albert(R"("num_hidden_layers": 0)")).layerGroups, 0);
}

TEST(ModelConfigTest, ElectrasEmbeddingsHaveAWidthOfTheirOwn) {
  ModelConfig c = parsed(config(R"("model_type": "electra", "embedding_size": 24)"));
  EXPECT_EQ(c.embeddingSize, 24);
  EXPECT_EQ(c.embeddingSizeKey, "embedding_size");
  EXPECT_TRUE(c.defaults.empty());
  EXPECT_EQ(parsed(config(R"("model_type": "electra")")).embeddingSize, 128);
  EXPECT_EQ(parsed(config("\"embedding_size\": 24")).embeddingSize, 32) << "bert has no such key";
}

TEST(ModelConfigTest, HeadsComeFromArchitectures) {
  EXPECT_EQ(parsed(config("\"architectures\": [\"BertForSequenceClassification\"]")).head,
            ModelHead::SequenceClassification);
  EXPECT_EQ(parsed(config("\"architectures\": [\"BertForTokenClassification\"]")).head, ModelHead::TokenClassification);
  EXPECT_EQ(parsed(config("\"architectures\": [\"BertForMaskedLM\"]")).head, ModelHead::None);
  expectParts(refusal(config("\"architectures\": [\"BertForTokenClassification\", \"BertForSequenceClassification\"]")),
              {"architectures", "not clear"});
  expectParts(refusal(config("\"architectures\": \"BertModel\"")), {"architectures", "an array of strings"});
}

TEST(ModelConfigTest, LabelsByNumberOrNotAtAll) {
  ModelConfig c = parsed(config("\"id2label\": {\"1\": \"no\", \"0\": \"yes\"}"));
  EXPECT_EQ(c.labelCount, 2);
  EXPECT_EQ(c.labels, (std::vector<std::string>{"yes", "no"}));
  EXPECT_EQ(parsed(config("")).labelCount, std::nullopt);
  c = parsed(config("\"id2label\": {\"5\": \"no\"}"));
  EXPECT_TRUE(c.labels.empty());
  EXPECT_EQ(c.notes.size(), 1u);
}

TEST(ModelConfigTest, GoldensParse) {
  for (const char *name : {"bert",
                           "bert-bf16",
                           "bert-f16",
                           "bert-legacy-names",
                           "bert-masked-lm",
                           "bert-module-prefix",
                           "bert-no-pooler",
                           "bert-sequence-classification",
                           "bert-sharded",
                           "bert-token-classification",
                           "sentence-max",
                           "malformed/base",
                           "roberta",
                           "xlm-roberta-cross-encoder",
                           "camembert",
                           "distilbert",
                           "distilbert-sequence-classification",
                           "electra",
                           "electra-sequence-classification",
                           "albert"})
    EXPECT_EQ(errorText(readModelConfig(std::string(BATTEN_TEST_DATA "/goldens/") + name + "/config.json")),
              "(no error)")
        << name;
}
