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
  EXPECT_EQ(c.layerNormEps, 1e-12);
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
  EXPECT_EQ(parsed(config("\"layer_norm_eps\": 1e-5")).layerNormEps, 1e-5);
  EXPECT_EQ(parsed(config("\"norm_eps\": 1e-6", {"layer_norm_eps"})).layerNormEps, 1e-6);
  ModelConfig c = parsed(config("", {"layer_norm_eps"}));
  EXPECT_EQ(c.layerNormEps, 1e-12);
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
  EXPECT_EQ(refusal(config("\"is_decoder\": false, \"position_embedding_type\": \"absolute\", \"pruned_heads\": {}")),
            "(no error)");
}

TEST(ModelConfigTest, OtherFamiliesAreRefusedWithTheReason) {
  expectParts(refusal(config("\"model_type\": \"mpnet\"")),
              {"model_type \"mpnet\"", "relative position", "known: bert"});
  expectParts(refusal(config("\"model_type\": \"roberta\"")), {"\"roberta\"", "not compiled yet"});
  expectParts(refusal(config("\"model_type\": \"llama\"")), {"\"llama\"", "known: bert"});
  expectParts(refusal(config("", {"model_type"})), {"model_type is missing"});
  ModelConfig c = parsed(config("\"architectures\": [\"BertModel\"]", {"model_type"}));
  EXPECT_EQ(c.modelType, "bert");
  EXPECT_EQ(c.defaults, std::vector<std::string>{"model_type"});
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
  for (const char *name :
       {"bert", "bert-bf16", "bert-f16", "bert-legacy-names", "bert-masked-lm", "bert-module-prefix", "bert-no-pooler",
        "bert-sequence-classification", "bert-sharded", "bert-token-classification", "sentence-max", "malformed/base"})
    EXPECT_EQ(errorText(readModelConfig(std::string(BATTEN_TEST_DATA "/goldens/") + name + "/config.json")),
              "(no error)")
        << name;
}
