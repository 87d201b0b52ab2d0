// Families with rotary positions as graphs: windows and bases by layer, gated layers in each way of storing them, norms before
// or after, heads of keys, biases, heads of classifiers.
#include "tests/graph/GraphTestSupport.h"

#include <map>

using namespace batten;
using namespace batten::test;

namespace {

class RotaryFamilyTest : public GraphTest {
protected:
  /// The graphs' text without facts.
  std::string textOf(ImportedModel model) {
    if (!model.module)
      return "";
    model.module.get()->removeAttr("batten.facts");
    return printGraph(*model.module);
  }
  /// A golden with text of its config replaced; tensors may get other names, or go.
  std::string edited(const std::string &golden, const std::map<std::string, std::string> &edits,
                     llvm::function_ref<std::string(const std::string &)> newName = nullptr) {
    TempDir dir;
    copyGolden(golden, dir);
    for (const auto &[from, to] : edits)
      editFile(dir, "config.json", from, to);
    if (newName)
      rename(dir, golden, newName);
    return textOf(import(dir.path()));
  }
};

} // namespace

TEST_F(RotaryFamilyTest, R14_ModernBertsLayers) {
  std::string text = textOf(import(goldenPath("modernbert")));
  expectParts(text,
              {// Layer 0 sees all keys and reads the embeddings without a norm.
               "%embed.norm = batten.layer_norm %embed.words weight(%embed.norm.w : tensor<32xf32>) eps",
               "%l0.qkv = batten.linear %embed.norm, %l0.qkv.w",
               "%l0.rope = batten.rope %l0.qkv, %seg heads 4 head_width 8 theta 5.000000e+03",
               "%l0.attn = batten.attention %l0.rope, %seg heads 4 head_width 8 scale 0.353553385",
               "%l0.attn_add = batten.add %l0.proj, %embed.norm", "%l0.norm = batten.layer_norm %l0.attn_add",
               "%l0.upgate = batten.linear %l0.norm, %l0.upgate.w : tensor<?x32xf32, #tokens>, tensor<56x32xf32>",
               "%l0.gated = batten.gated gelu_erf first %l0.upgate", "%l0.add = batten.add %l0.down, %l0.attn_add",
               // Layer 1 has a window of local_attention / 2 keys on either side, and its own base.
               "%l1.attn_norm = batten.layer_norm %l0.add", "%l1.qkv = batten.linear %l1.attn_norm, %l1.qkv.w",
               "%l1.rope = batten.rope %l1.qkv, %seg heads 4 head_width 8 theta 1.000000e+02",
               "%l1.attn = batten.attention %l1.rope, %seg heads 4 head_width 8 window 8 scale",
               "%l1.attn_add = batten.add %l1.proj, %l0.add",
               "%l3.attn = batten.attention %l3.rope, %seg heads 4 head_width 8 scale",
               "%norm = batten.layer_norm %l3.add", "batten.return %norm"});
  EXPECT_EQ(text.find("l0.attn_norm"), std::string::npos);
  EXPECT_EQ(text.find("bias("), std::string::npos);
  EXPECT_EQ(text.find("embed_positions"), std::string::npos);
}

TEST_F(RotaryFamilyTest, R14_BothSpellingsOfAConfigGiveTheSameGraph) {
  std::string old = textOf(import(goldenPath("modernbert-old-config")));
  expectParts(old, {"%l0.rope = batten.rope %l0.qkv, %seg heads 2 head_width 20 theta 8.000000e+03",
                    "%l1.attn = batten.attention %l1.rope, %seg heads 2 head_width 20 window 6",
                    "%l2.rope = batten.rope %l2.qkv, %seg heads 2 head_width 20 theta 8.000000e+03"});
  EXPECT_EQ(old,
            edited("modernbert-old-config",
                   {{"\"global_attn_every_n_layers\": 2",
                     R"("layer_types": ["full_attention", "sliding_attention", "full_attention"])"},
                    {"\"global_rope_theta\": 8000.0", R"("rope_parameters": {"full_attention": {"rope_theta": 8000.0},
                           "sliding_attention": {"rope_type": "default", "rope_theta": 200.0}})"},
                    {"\"local_rope_theta\": 200.0", "\"unread\": 0"}}));
  EXPECT_NE(old, edited("modernbert-old-config", {{"\"local_rope_theta\": 200.0", "\"local_rope_theta\": 201.0"}}));
}

TEST_F(RotaryFamilyTest, R14_OnlyLayerZeroHasNoAttentionNorm) {
  TempDir dir;
  copyGolden("modernbert", dir);
  SafetensorsWriter writer = rewritten(goldenPath("modernbert/model.safetensors"), [](const std::string &name) {
    return name == "layers.1.attn_norm.weight" ? std::string() : name;
  });
  writer.addF32("layers.0.attn_norm.weight", {32}, std::vector<float>(32, 1));
  dir.write("model.safetensors", writer.bytes());
  ImportedModel model = import(dir.path());
  ASSERT_TRUE(model.module);
  EXPECT_EQ(unusedTensors(model), std::vector<std::string>{"layers.0.attn_norm.weight"});
  EXPECT_TRUE(weightTensors(model).count("layers.1.attn_norm.weight")) << "asked for, so that its lack is reported";
}

TEST_F(RotaryFamilyTest, ModernBertsBiasesAreAskedForWhereTheConfigSaysSo) {
  std::string none = textOf(import(goldenPath("modernbert-sequence-classification-cls")));
  const std::map<std::string, std::vector<std::string>> wanted = {
      {"attention_bias", {"model.layers.0.attn.Wqkv.bias", "model.layers.0.attn.Wo.bias"}},
      {"mlp_bias", {"model.layers.0.mlp.Wi.bias", "model.layers.0.mlp.Wo.bias"}},
      {"norm_bias",
       {"model.embeddings.norm.bias", "model.layers.1.attn_norm.bias", "model.layers.0.mlp_norm.bias",
        "model.final_norm.bias", "head.norm.bias"}},
      {"classifier_bias", {"head.dense.bias"}}};
  for (const auto &[key, tensors] : wanted) {
    std::string text =
        edited("modernbert-sequence-classification-cls", {{"\"" + key + "\": false", "\"" + key + "\": true"}});
    for (const std::string &tensor : tensors) {
      EXPECT_NE(text.find("\"" + tensor + "\""), std::string::npos) << key << " " << tensor;
      EXPECT_EQ(none.find("\"" + tensor + "\""), std::string::npos) << key << " " << tensor;
    }
  }
  expectParts(none, {"\"classifier.bias\""});
}

TEST_F(RotaryFamilyTest, R14_ModernBertsHeadIsDenseActivationNorm) {
  for (auto [golden, pooling] : {std::pair("modernbert-sequence-classification-cls", "cls"),
                                 std::pair("modernbert-sequence-classification-mean", "mean")})
    expectParts(textOf(import(goldenPath(golden))),
                {"%classifier." + std::string(pooling) + " = batten.pool " + pooling + " %norm, %seg",
                 "%classifier.dense = batten.linear %classifier." + std::string(pooling),
                 "%classifier.act = batten.activation gelu_erf %classifier.dense",
                 "%classifier.norm = batten.layer_norm %classifier.act",
                 "%classifier = batten.linear %classifier.norm"});
  std::string tokens = textOf(import(goldenPath("modernbert-token-classification")));
  expectParts(tokens, {"%classifier.dense = batten.linear %norm,", "%classifier = batten.linear %classifier.norm"});
  EXPECT_EQ(tokens.find("batten.pool"), std::string::npos);
  expectParts(edited("modernbert-token-classification",
                     {{"\"classifier_activation\": \"gelu\"", "\"classifier_activation\": \"silu\""}}),
              {"batten.activation silu %classifier.dense", "batten.gated gelu_erf"});
}

TEST_F(RotaryFamilyTest, AModernBertHeadNeedsAnArchitecture) {
  TempDir dir;
  copyGolden("modernbert-token-classification", dir);
  editFile(dir, "config.json", "\"architectures\"", "\"other\"");
  expectParts(refusal(dir.path()), {"config.json: architectures is missing", "\"classifier.weight\"", "not clear",
                                    "ModernBertForSequenceClassification", "ModernBertForTokenClassification"});
  // A masked-LM checkpoint has the same dense layer and norm, and a decoder.
  rename(dir, "modernbert-token-classification", [](const std::string &name) {
    return name.rfind("classifier.", 0) == 0 ? "decoder." + name.substr(11) : name;
  });
  ImportedModel model = import(dir.path());
  ASSERT_TRUE(model.module);
  EXPECT_EQ(lanesText(model), "encode(hidden: tokens x 40)");
  EXPECT_EQ(unusedTensors(model),
            (std::vector<std::string>{"decoder.bias", "decoder.weight", "head.dense.weight", "head.norm.weight"}));
}

TEST_F(RotaryFamilyTest, NomicsInnerLayersAreTwoMatricesOrOne) {
  std::string text = textOf(import(goldenPath("nomic-bert")));
  expectParts(text,
              {"%embed = batten.add %embed.words, %embed.types", "%embed.norm = batten.layer_norm %embed weight(",
               "%l0.qkv = batten.linear %embed.norm, %l0.qkv.w : tensor<?x40xf32, #tokens>, tensor<120x40xf32>",
               "theta 1.000000e+03", "@l0.gate.w from \"encoder.layers.0.mlp.fc12.weight\"",
               "@l0.up.w from \"encoder.layers.0.mlp.fc11.weight\"", "%l0.upgate = batten.concat_cols %l0.gate, %l0.up",
               "%l0.gated = batten.gated silu first %l0.upgate",
               "%l0.attn_norm = batten.layer_norm %l0.attn_add weight(%l0.attn_norm.w : tensor<40xf32>) bias(",
               "%l0.norm = batten.layer_norm %l0.add", "batten.return %l1.norm"});
  EXPECT_EQ(text.find(".qkv.b"), std::string::npos);
  // The same model in GPT-2's spelling; then one with biases and a plain activation.
  const std::map<std::string, std::string> gpt2 = {
      {"\"hidden_size\"", "\"n_embd\""},
      {"\"num_hidden_layers\"", "\"n_layer\""},
      {"\"num_attention_heads\"", "\"n_head\""},
      {"\"intermediate_size\"", "\"n_inner\""},
      {"\"layer_norm_eps\"", "\"layer_norm_epsilon\""},
      {"\"max_position_embeddings\"", "\"n_positions\""},
      {"\"head_dim\": 20", "\"qkv_proj_bias\": false, \"mlp_fc1_bias\": false, \"mlp_fc2_bias\": false, "
                           "\"rotary_emb_fraction\": 1.0"},
      {"\"hidden_act\": \"silu\"", "\"activation_function\": \"swiglu\""}};
  std::string old = edited("nomic-bert", gpt2);
  auto graphs = [](const std::string &module) { return module.substr(module.find("batten.graph")); };
  EXPECT_EQ(graphs(text), graphs(old));
  std::map<std::string, std::string> plain = gpt2;
  plain["\"hidden_act\": \"silu\""] = "\"activation_function\": \"gelu\"";
  plain["\"head_dim\": 20"] = "\"rotary_emb_fraction\": 1.0";
  expectParts(edited("nomic-bert", plain),
              {"\"encoder.layers.0.attn.Wqkv.bias\"", "\"encoder.layers.0.attn.out_proj.bias\"",
               "@l0.up.w from \"encoder.layers.0.mlp.fc1.weight\"", "\"encoder.layers.0.mlp.fc1.bias\"",
               "\"encoder.layers.0.mlp.fc2.bias\"", "%l0.act = batten.activation gelu_erf %l0.up"});
}

TEST_F(RotaryFamilyTest, NomicsLengthScalingBoundsItsLanes) {
  TempDir dir;
  copyGolden("nomic-bert", dir);
  editFile(dir, "config.json", "\"head_dim\"",
           "\"rotary_scaling_factor\": 2, \"max_trained_positions\": 48, \"head_dim\"");
  ImportedModel model = import(dir.path());
  ASSERT_TRUE(model.module);
  EXPECT_EQ(model.maxSeqTokens, 48);
  expectParts(fact(model, "positions"), {"at most 48 tokens"});
  expectParts(printGraph(*model.module), {"attributes {batten.max_seq_tokens = 48 : i64}"});
  EXPECT_EQ(textOf(import(goldenPath("nomic-bert"))).find("max_seq_tokens"), std::string::npos);
}

TEST_F(RotaryFamilyTest, GtesPackedMatricesMayBeApart) {
  std::string text = textOf(import(goldenPath("gte")));
  expectParts(text,
              {"@l0.qkv.w from \"encoder.layer.0.attention.qkv_proj.weight\" dims [\"3 * hidden_size\"",
               "%l0.upgate = batten.linear %l0.attn_norm, %l0.upgate.w : tensor<?x32xf32, #tokens>, tensor<92x32xf32>",
               "%l0.gated = batten.gated gelu_erf second %l0.upgate",
               "%l0.down = batten.linear %l0.gated, %l0.down.w bias("});
  TempDir dir;
  copyGolden("gte", dir);
  SafetensorsWriter writer = rewritten(goldenPath("gte/model.safetensors"), [](const std::string &name) {
    return name.find("qkv_proj") == std::string::npos ? name : std::string();
  });
  for (const char *layer : {"0", "1"})
    for (const char *part : {"q", "k", "v"}) {
      std::string module = "encoder.layer." + std::string(layer) + ".attention." + part + "_proj.";
      writer.addF32(module + "weight", {32, 32}, std::vector<float>(32 * 32));
      writer.addF32(module + "bias", {32}, std::vector<float>(32));
    }
  dir.write("model.safetensors", writer.bytes());
  ImportedModel apart = import(dir.path());
  EXPECT_TRUE(unusedTensors(apart).empty());
  expectParts(textOf(std::move(apart)), {"%l0.qkv = batten.concat_cols %l0.q, %l0.k, %l0.v"});

  ImportedModel model = import(goldenPath("gte"));
  EXPECT_EQ(countOps(model, "encode", "batten.embed_types"), 1);
  std::string untyped = edited("gte", {{"\"type_vocab_size\": 1", "\"type_vocab_size\": 0"}});
  EXPECT_EQ(untyped.find("embed_types"), std::string::npos);
  expectParts(untyped, {"@encode(%ids: !batten.ids, %seg: !batten.segments)", "batten.layer_norm %embed.words"});
}

TEST_F(RotaryFamilyTest, GtesClassifierIsOverItsPooler) {
  for (auto [type, architecture, prefix] : {std::tuple("new", "NewForSequenceClassification", "new."),
                                            std::tuple("gte", "GteForSequenceClassification", "gte.")}) {
    std::string text = edited("gte",
                              {{"\"model_type\": \"gte\"", "\"model_type\": \"" + std::string(type) + "\""},
                               {"GteModel", architecture},
                               {"\"vocab_size\"", "\"num_labels\": 1, \"vocab_size\""}},
                              [prefix = std::string(prefix)](const std::string &name) { return prefix + name; });
    expectParts(text, {"@pooler.w from \"" + std::string(prefix) + "pooler.dense.weight\"",
                       "@classifier.w from \"classifier.weight\"", "%pooler.act = batten.activation tanh %pooler",
                       "%classifier = batten.linear %pooler.act", "(logits: tensor<?x1xf32, #seqs>)"});
  }
  for (const char *prefix : {"bert.", "nomic_bert."})
    expectParts(edited("nomic-bert", {{"NomicBertModel", "NomicBertForSequenceClassification"}},
                       [prefix = std::string(prefix)](const std::string &name) { return prefix + name; }),
                {"\"" + std::string(prefix) + "pooler.dense.weight\"", "\"classifier.weight\""});
}

TEST_F(RotaryFamilyTest, EuroBertsHeadsShareKeys) {
  std::string text = textOf(import(goldenPath("eurobert")));
  expectParts(text,
              {"%l0.attn_norm = batten.rms_norm %embed.words weight(%l0.attn_norm.w : tensor<48xf32>) eps",
               "%l0.q = batten.linear %l0.attn_norm, %l0.q.w : tensor<?x48xf32, #tokens>, tensor<48x48xf32>",
               "%l0.k = batten.linear %l0.attn_norm, %l0.k.w : tensor<?x48xf32, #tokens>, tensor<16x48xf32>",
               "dims [\"num_key_value_heads * head_dim\", \"hidden_size\"]",
               "%l0.rope = batten.rope %l0.qkv, %seg heads 6 kv_heads 2 head_width 8 theta 1.000000e+04",
               "%l0.attn = batten.attention %l0.rope, %seg heads 6 kv_heads 2 head_width 8 scale",
               "@l0.gate.w from \"layers.0.mlp.gate_proj.weight\"", "@l0.up.w from \"layers.0.mlp.up_proj.weight\"",
               "%l0.gated = batten.gated silu first %l0.upgate", "%l0.norm = batten.rms_norm %l0.attn_add",
               "%norm = batten.rms_norm %l1.add", "batten.return %norm"});
  EXPECT_EQ(text.find("layer_norm"), std::string::npos);
  EXPECT_EQ(text.find("bias("), std::string::npos);
  expectParts(edited("eurobert", {{"\"head_dim\": 8", "\"head_dim\": 10"}}),
              {"%l0.attn = batten.attention %l0.rope, %seg heads 6 kv_heads 2 head_width 10",
               "@l0.proj.w from \"layers.0.self_attn.o_proj.weight\" dims [\"hidden_size\", \"num_attention_heads * "
               "head_dim\"] : "
               "tensor<48x60xf32>"});
  std::string biased = edited("eurobert", {{"\"attention_bias\": false", "\"attention_bias\": true"},
                                           {"\"mlp_bias\": false", "\"mlp_bias\": true"}});
  for (const char *name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    expectParts(biased, {"\"layers.1." + std::string(name) + ".bias\""});
}

TEST_F(RotaryFamilyTest, EuroBertsClassifierPoolsBeforeOrAfter) {
  auto head = [&](const std::string &pooling, const std::string &task) {
    return edited("eurobert", {{"EuroBertModel", "EuroBertFor" + task + "Classification"},
                               {"\"classifier_pooling\": \"late\"", "\"classifier_pooling\": \"" + pooling + "\""}});
  };
  expectParts(head("late", "Sequence"),
              {"%classifier.dense = batten.linear %norm, %classifier.dense.w bias(",
               "batten.activation gelu_erf %classifier.dense", "%classifier.tokens = batten.linear %classifier.act",
               "%classifier = batten.pool mean %classifier.tokens"});
  expectParts(head("bos", "Sequence"),
              {"%classifier.cls = batten.pool cls %norm", "%classifier = batten.linear %classifier.act"});
  expectParts(head("mean", "Sequence"), {"%classifier.mean = batten.pool mean %norm"});
  std::string tokens = head("late", "Token");
  expectParts(tokens, {"%classifier = batten.linear %norm"});
  EXPECT_EQ(tokens.find("classifier.dense"), std::string::npos);
}

TEST_F(RotaryFamilyTest, JinasPoolerAndClassifiersAreRobertas) {
  expectParts(textOf(import(goldenPath("jina-embeddings-v3"))),
              {"\"encoder.layers.0.mixer.Wqkv.bias\"", "theta 2.000000e+04",
               "%l0.act = batten.activation gelu_erf %l0.up", "%pooler.act = batten.activation tanh %pooler"});
  expectParts(
      edited("jina-embeddings-v3", {{"JinaEmbeddingsV3Model", "JinaEmbeddingsV3ForSequenceClassification"}},
             [](const std::string &name) { return "roberta." + name; }),
      {"\"classifier.dense.weight\"", "\"classifier.out_proj.weight\"", "batten.activation tanh %classifier.dense"});
  TempDir dir;
  copyGolden("jina-embeddings-v3", dir);
  editFile(dir, "config.json", "\"jina_embeddings_v3\"",
           R"("xlm-roberta", "position_embedding_type": "rotary", "lora_adaptations": ["retrieval.query"])");
  expectParts(refusal(dir.path()),
              {"config.json: lora_adaptations has \"retrieval.query\"", "adapters are not computed"});
}

TEST_F(RotaryFamilyTest, R18_SentenceTransformersAroundThem) {
  for (const char *golden : {"modernbert", "nomic-bert", "gte", "eurobert", "jina-embeddings-v3"}) {
    TempDir dir;
    copyGolden(golden, dir);
    dir.write("modules.json", R"([
      {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
    dir.write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
    ImportedModel model = import(dir.path());
    ASSERT_TRUE(model.module) << golden;
    EXPECT_EQ(lanesText(model).rfind("embed(embedding: seqs x ", 0), 0u) << golden;
    EXPECT_EQ(fact(model, "pooling"), "mean") << golden;
    EXPECT_EQ(countOps(model, "embed", "batten.l2_normalize"), 1) << golden;
  }
}

TEST_F(RotaryFamilyTest, R10_FactsTellWindowsBasesAndDefaults) {
  ImportedModel model = import(goldenPath("modernbert"));
  for (auto [key, value] :
       {std::pair("layers without a window", "0, 3"), std::pair("layers with a window", "1, 2"),
        std::pair("rotary base without a window", "5000"), std::pair("rotary base with a window", "100"),
        std::pair("window", "8 keys on either side"),
        std::pair("activation", "gelu (gelu_erf), times a second linear layer"),
        std::pair("norms", "before attention and inner layers"), std::pair("biases in attention", "no"),
        std::pair("token types", "none"),
        std::pair("positions",
                  "rotary, from 0 in each sequence; no table bounds a sequence (max_position_embeddings 128)")})
    EXPECT_EQ(fact(model, key), value) << key;
  TempDir dir;
  copyGolden("modernbert-sequence-classification-cls", dir);
  for (const char *key : {"layer_types", "local_attention", "classifier_pooling", "norm_bias", "rope_parameters"})
    editFile(dir, "config.json", "\"" + std::string(key) + "\"", "\"no_" + std::string(key) + "\"");
  model = import(dir.path());
  expectParts(fact(model, "layers with a window"), {"1, 2 (default of the family", "no global_attn_every_n_layers"});
  expectParts(fact(model, "window"), {"64 keys on either side (default of the family", "no local_attention"});
  expectParts(fact(model, "rotary base with a window"), {"10000 (default", "no local_rope_theta"});
  expectParts(fact(model, "rotary base without a window"), {"160000 (default", "no global_rope_theta"});
  expectParts(fact(model, "classifier pooling"), {"cls (default", "no classifier_pooling"});
  expectParts(fact(model, "biases of norms"), {"no (default", "no norm_bias"});
  EXPECT_EQ(fact(model, "classifier activation"), "gelu (gelu_erf)");
  model = import(goldenPath("eurobert"));
  EXPECT_EQ(fact(model, "heads of keys and values"), "2");
  EXPECT_EQ(fact(model, "rms norm eps"), "1e-05");
  EXPECT_EQ(fact(model, "rotary base"), "10000");
}
