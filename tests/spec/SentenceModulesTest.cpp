// modules.json: what is read of each module, the order of joined poolings, and what is refused by name.
#include "compiler/spec/SentenceModules.h"
#include "tests/ErrorText.h"

using namespace batten;
using namespace batten::test;

namespace {

std::string list(std::initializer_list<std::pair<const char *, const char *>> modules) {
  std::string out = "[";
  int i = 0;
  for (auto [type, path] : modules)
    out +=
        std::string(i++ ? "," : "") + "{\"idx\":0,\"name\":\"0\",\"path\":\"" + path + "\",\"type\":\"" + type + "\"}";
  return out + "]";
}

constexpr const char *kTransformer = "sentence_transformers.models.Transformer";
constexpr const char *kPooling = "sentence_transformers.models.Pooling";
constexpr const char *kDense = "sentence_transformers.models.Dense";
constexpr const char *kNormalize = "sentence_transformers.models.Normalize";

/// The modules of a directory with one Pooling of the given config.
llvm::Expected<std::optional<SentenceModules>> withPooling(const TempDir &dir, const std::string &pooling) {
  dir.write("modules.json", list({{kTransformer, ""}, {kPooling, "1_Pooling"}}));
  dir.write("1_Pooling/config.json", pooling);
  return readSentenceModules(dir.path());
}

std::vector<std::string> modesOf(const std::string &pooling) {
  TempDir dir;
  auto modules = withPooling(dir, pooling);
  if (modules)
    return (*modules)->modules.at(0).modes;
  ADD_FAILURE() << llvm::toString(modules.takeError());
  return {};
}

std::string poolingRefusal(const std::string &pooling) {
  TempDir dir;
  return errorText(withPooling(dir, pooling));
}

using Modes = std::vector<std::string>;

} // namespace

TEST(SentenceModulesTest, R18_FlagsAreJoinedInTheLibrarysOrder) {
  EXPECT_EQ(modesOf(R"({"word_embedding_dimension":8,"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false})"),
            Modes{"mean"});
  EXPECT_EQ(modesOf(R"({"pooling_mode_mean_sqrt_len_tokens":true,"pooling_mode_mean_tokens":true,
                        "pooling_mode_lasttoken":true,"pooling_mode_max_tokens":true,"pooling_mode_cls_token":true})"),
            (Modes{"cls", "max", "mean", "mean_sqrt_len", "last"}));
  expectParts(poolingRefusal(R"({"pooling_mode_weightedmean_tokens":true})"), {"weightedmean", "known: cls"});
  expectParts(poolingRefusal(R"({"pooling_mode_mean_tokens":1})"), {"pooling_mode_mean_tokens", "true or false"});
}

TEST(SentenceModulesTest, R18_NewerModesKeepTheirStatedOrder) {
  EXPECT_EQ(modesOf(R"({"embedding_dimension":8,"pooling_mode":"cls","include_prompt":true})"), Modes{"cls"});
  EXPECT_EQ(modesOf(R"({"pooling_mode":["max","cls","mean_sqrt_len_tokens"]})"),
            (Modes{"max", "cls", "mean_sqrt_len"}));
  EXPECT_EQ(modesOf(R"({"pooling_mode":"lasttoken","pooling_mode_mean_tokens":true})"), Modes{"last"});
  expectParts(poolingRefusal(R"({"pooling_mode":"median"})"), {"1_Pooling/config.json: pooling_mode", "\"median\""});
  expectParts(poolingRefusal(R"({"pooling_mode":[]})"), {"0 modes"});
  expectParts(poolingRefusal(R"({"pooling_mode":3})"), {"a string wanted"});
}

TEST(SentenceModulesTest, R18_NoModeIsTheLibrarysDefaultAndSaidSo) {
  for (const char *text : {R"({"word_embedding_dimension":8})", R"({"pooling_mode_mean_tokens":false})"}) {
    TempDir dir;
    auto modules = withPooling(dir, text);
    ASSERT_TRUE(static_cast<bool>(modules)) << llvm::toString(modules.takeError());
    EXPECT_EQ((*modules)->modules[0].modes, Modes{"mean"});
    EXPECT_TRUE((*modules)->modules[0].modesAreDefault);
    ASSERT_EQ((*modules)->notes.size(), 1u);
    expectParts((*modules)->notes[0], {"1_Pooling/config.json", "mean", "default"});
  }
}

TEST(SentenceModulesTest, IncludePromptFalseIsRefused) {
  expectParts(poolingRefusal(R"({"pooling_mode":"mean","include_prompt":false})"), {"include_prompt", "prompt"});
}

TEST(SentenceModulesTest, ReadsDenseAndNormalizeWithOrWithoutFolder) {
  TempDir dir;
  dir.write("modules.json", list({{"sentence_transformers.base.modules.transformer.Transformer", ""},
                                  {"sentence_transformers.sentence_transformer.modules.pooling.Pooling", "1_Pooling"},
                                  {"sentence_transformers.base.modules.dense.Dense", "2_Dense"},
                                  {kNormalize, "3_Normalize"}}));
  dir.write("1_Pooling/config.json", R"({"embedding_dimension":32,"pooling_mode":"mean"})");
  dir.write("2_Dense/config.json", R"({"in_features":32,"out_features":24,"bias":false,"use_residual":true,
            "activation_function":"torch.nn.modules.linear.Identity","module_input_name":"sentence_embedding"})");
  auto found = readSentenceModules(dir.path());
  ASSERT_TRUE(found && *found);
  ASSERT_EQ((*found)->modules.size(), 3u);
  EXPECT_EQ((*found)->modules[0].width, 32);
  const SentenceModule &dense = (*found)->modules[1];
  EXPECT_EQ(dense.dir, "2_Dense");
  EXPECT_EQ(dense.inFeatures, 32);
  EXPECT_EQ(dense.outFeatures, 24);
  EXPECT_FALSE(dense.bias);
  EXPECT_TRUE(dense.residual);
  EXPECT_EQ(dense.activation, "none");
  EXPECT_EQ((*found)->modules[2].kind, SentenceModule::Kind::Normalize);
}

TEST(SentenceModulesTest, R9_DenseActivationsByExactName) {
  for (auto [name, dialect] : {std::pair("\"torch.nn.modules.activation.Tanh\"", "tanh"),
                               std::pair("\"torch.nn.modules.activation.GELU\"", "gelu_erf"),
                               std::pair("\"torch.nn.modules.activation.ReLU\"", "relu"),
                               std::pair("\"torch.nn.modules.activation.SiLU\"", "silu"), std::pair("null", "none"),
                               std::pair("\"torch.nn.modules.activation.Sigmoid\"", ""),
                               std::pair("\"my_code.Tanh\"", ""), std::pair("\"Tanh\"", "")}) {
    TempDir dir;
    dir.write("modules.json", list({{kTransformer, ""}, {kPooling, "1_Pooling"}, {kDense, "2_Dense"}}));
    dir.write("1_Pooling/config.json", R"({"pooling_mode":"cls"})");
    dir.write("2_Dense/config.json",
              "{\"in_features\":4,\"out_features\":2,\"activation_function\":" + std::string(name) + "}");
    auto found = readSentenceModules(dir.path());
    if (*dialect) {
      ASSERT_TRUE(found && *found);
      EXPECT_EQ((*found)->modules[1].activation, dialect);
    } else {
      expectParts(errorText(std::move(found)), {"2_Dense/config.json: activation_function", name, "known"});
    }
  }
}

TEST(SentenceModulesTest, ValuesUnderOtherNamesAreRefused) {
  for (const char *config : {R"({"module_input_name":"token_embeddings"})", R"({"module_output_name":"x"})"}) {
    TempDir dir;
    dir.write("modules.json", list({{kTransformer, ""}, {kPooling, "1_Pooling"}, {kNormalize, "2_Normalize"}}));
    dir.write("1_Pooling/config.json", R"({"pooling_mode":"cls"})");
    dir.write("2_Normalize/config.json", config);
    expectParts(errorText(readSentenceModules(dir.path())),
                {"2_Normalize/config.json: module_", "\"sentence_embedding\""});
  }
}

TEST(SentenceModulesTest, UnknownModulesAreRefusedByName) {
  auto refusal = [](std::initializer_list<std::pair<const char *, const char *>> modules) {
    TempDir dir;
    dir.write("modules.json", list(modules));
    dir.write("1_Pooling/config.json", R"({"pooling_mode":"cls"})");
    return errorText(readSentenceModules(dir.path()));
  };
  expectParts(refusal({{kTransformer, ""}, {kPooling, "1_Pooling"}, {"sentence_transformers.models.LSTM", "2_LSTM"}}),
              {"modules.json", "sentence_transformers.models.LSTM", "known"});
  expectParts(refusal({{kTransformer, ""}, {"custom_st.Pooling", "1_Pooling"}}),
              {"custom_st.Pooling", "code of its own"});
  expectParts(refusal({{"sentence_transformers.models.CLIPModel", ""}, {kPooling, "1_Pooling"}}),
              {"CLIPModel", "first"});
  expectParts(refusal({}), {"no modules"});
  expectParts(refusal({{kTransformer, ""}, {kNormalize, "1_Pooling"}}), {"Normalize before Pooling"});
  expectParts(refusal({{kTransformer, ""}, {kPooling, "1_Pooling"}, {kPooling, "1_Pooling"}}), {"a second Pooling"});
  expectParts(refusal({{kTransformer, ""}, {kPooling, "../1_Pooling"}}), {"\"../1_Pooling\"", "no plain name"});
  expectParts(refusal({{kTransformer, ""}, {kPooling, "/etc"}}), {"no plain name"});
}

TEST(SentenceModulesTest, EncoderConfigGivesNotes) {
  TempDir dir;
  dir.write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": true})");
  auto found = withPooling(dir, R"({"pooling_mode":"mean"})");
  ASSERT_TRUE(found && *found);
  ASSERT_EQ((*found)->notes.size(), 2u);
  expectParts((*found)->notes[0], {"256", "nothing is cut"});
  dir.write("sentence_bert_config.json", R"({"transformer_task": "fill-mask"})");
  expectParts(errorText(readSentenceModules(dir.path())), {"transformer_task", "fill-mask"});
}

TEST(SentenceModulesTest, OtherDirectoriesHaveNone) {
  TempDir dir;
  auto none = readSentenceModules(dir.path());
  ASSERT_TRUE(static_cast<bool>(none));
  EXPECT_FALSE(none->has_value());
  dir.write("modules.json", list({{kTransformer, "0_Transformer"}}));
  auto encoder = readSentenceModules(dir.path());
  ASSERT_TRUE(encoder && *encoder);
  EXPECT_EQ((*encoder)->encoderDir, "0_Transformer");
  EXPECT_TRUE((*encoder)->modules.empty());
}

TEST(SentenceModulesTest, R53_BrokenFilesAreRefusedWithTheirName) {
  for (const char *text :
       {"", "{}", "[3]", "[{\"type\":3,\"path\":\"\"}]", "[{\"type\":\"sentence_transformers.models.Transformer\"}]"}) {
    TempDir dir;
    dir.write("modules.json", text);
    expectParts(errorText(readSentenceModules(dir.path())), {"modules.json"});
  }
  TempDir dir;
  dir.write("modules.json", list({{kTransformer, ""}, {kPooling, "1_Pooling"}}));
  expectParts(errorText(readSentenceModules(dir.path())), {"1_Pooling/config.json"});
}
