// The table of families and that of refusals; see the header.
#include "compiler/spec/ConfigFamily.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/STLExtras.h"

#include <vector>

namespace batten {

namespace {

constexpr ConfigKeys kBertKeys = {
    {"hidden_size"}, {"num_hidden_layers"},          {"num_attention_heads"},    {"intermediate_size"},
    {"hidden_act"},  {"layer_norm_eps", "norm_eps"}, {"max_position_embeddings"}};

constexpr ConfigKeys kDistilBertKeys = {{"dim", "hidden_size"},
                                        {"n_layers", "num_hidden_layers"},
                                        {"n_heads", "num_attention_heads"},
                                        {"hidden_dim"},
                                        {"activation"},
                                        {"layer_norm_eps"},
                                        {"max_position_embeddings"}};

constexpr ConfigKeys kModernBertKeys = {
    {"hidden_size"},       {"num_hidden_layers"}, {"num_attention_heads"},    {"intermediate_size"},
    {"hidden_activation"}, {"norm_eps"},          {"max_position_embeddings"}};

constexpr ConfigKeys kEuroBertKeys = {
    {"hidden_size"}, {"num_hidden_layers"}, {"num_attention_heads"},    {"intermediate_size"},
    {"hidden_act"},  {"rms_norm_eps"},      {"max_position_embeddings"}};

/// n_positions bounds nothing where positions are angles: published configs have it beside another max_position_embeddings.
constexpr ConfigKeys kNomicKeys = {{"hidden_size"},
                                   {"num_hidden_layers"},
                                   {"num_attention_heads"},
                                   {"intermediate_size"},
                                   {"hidden_act"},
                                   {"layer_norm_eps"},
                                   {"max_position_embeddings", "n_positions", true}};

/// Those of GPT-2, as the checkpoints' own code spells them.
constexpr ConfigKeys kNomicGpt2Keys = {{"n_embd", "hidden_size"},
                                       {"n_layer", "num_hidden_layers"},
                                       {"n_head", "num_attention_heads"},
                                       {"n_inner", "intermediate_size"},
                                       {"activation_function"},
                                       {"layer_norm_epsilon", "layer_norm_eps"},
                                       {"n_positions", "max_position_embeddings", true}};

constexpr llvm::StringLiteral kAbsolute[] = {"absolute"};
constexpr llvm::StringLiteral kRotary[] = {"rope", "rotary"};
/// ModernBERT's code doesn't read the key; published configs have all three.
constexpr llvm::StringLiteral kModernBertPositions[] = {"absolute", "rope", "sans_pos"};

constexpr PoolingName kModernBertPoolings[] = {{"cls", "cls"}, {"mean", "mean"}};
/// late: the mean of all tokens' logits.
constexpr PoolingName kEuroBertPoolings[] = {{"late", "late"}, {"bos", "cls"}, {"mean", "mean"}};

constexpr RefusedSwitch kNomicRefused[] = {
    {"prenorm", "norms before attention and the inner layers are not computed for this family"},
    {"parallel_block", "attention and inner layers side by side are not computed"},
    {"use_rms_norm", "RMS norms are not computed for this family"},
    {"causal", "causal attention is not computed"},
    {"rotary_emb_interleaved",
     "rotary pairs of neighbours (2j, 2j + 1) are not computed, halves (j, j + width / 2) are"},
};
constexpr RefusedSwitch kGteRefused[] = {
    {"logn_attention_scale", "an attention scale that depends on the length is not computed"}};
constexpr RefusedSwitch kEuroBertRefused[] = {{"is_causal", "causal attention is not computed"}};

constexpr ConfigSwitch kOff = {"", false};

/// The RoBERTa family's classes are each other's copies; its default eps is 1e-12 although every published config has 1e-5.
constexpr ConfigFamily roberta(llvm::StringLiteral modelType, llvm::StringLiteral className) {
  return {.modelType = modelType,
          .className = className,
          .names = "roberta",
          .keys = &kBertKeys,
          .activation = "gelu",
          .eps = 1e-12,
          .positionPad = 1,
          .positionTypes = kAbsolute};
}

/// XLM-RoBERTa with rotary positions. Checkpoints with code of their own call it xlm-roberta.
constexpr ConfigFamily jina(llvm::StringLiteral modelType, llvm::StringLiteral className, llvm::StringLiteral whenKey,
                            llvm::StringLiteral whenText, double theta) {
  return {.modelType = modelType,
          .className = className,
          .names = "jina_embeddings_v3",
          .whenKey = whenKey,
          .whenText = whenText,
          .keys = &kBertKeys,
          .activation = "gelu",
          .eps = 1e-5,
          .tokenTypes = 1,
          .rope = RopeLayout::OneTheta,
          .theta = theta,
          .positionTypes = kRotary};
}

/// GTE: `new` is how checkpoints with code of their own call it.
constexpr ConfigFamily gte(llvm::StringLiteral modelType, llvm::StringLiteral className, double theta,
                           bool ntkScaling = false) {
  return {.modelType = modelType,
          .className = className,
          .names = "gte",
          .keys = &kBertKeys,
          .activation = "gelu",
          .eps = 1e-12,
          .tokenTypes = 1,
          .tokenTypesMayBeNone = true,
          .rope = RopeLayout::OneTheta,
          .theta = theta,
          .ntkScaling = ntkScaling,
          .gating = Gating::Always,
          .upBias = kOff,
          .positionTypes = kRotary,
          .refused = kGteRefused};
}

const ConfigFamily kFamilies[] = {
    {.modelType = "bert",
     .className = "Bert",
     .names = "bert",
     .keys = &kBertKeys,
     .activation = "gelu",
     .eps = 1e-12,
     .positionTypes = kAbsolute},
    roberta("roberta", "Roberta"),
    jina("xlm-roberta", "XLMRoberta", "position_embedding_type", "rotary", 10000),
    roberta("xlm-roberta", "XLMRoberta"),
    roberta("camembert", "Camembert"),
    {.modelType = "distilbert",
     .className = "DistilBert",
     .names = "distilbert",
     .keys = &kDistilBertKeys,
     .activation = "gelu",
     .eps = 1e-12,
     .epsIsFixed = true,
     .tokenTypes = 0,
     .positionTypes = kAbsolute},
    {.modelType = "electra",
     .className = "Electra",
     .names = "electra",
     .keys = &kBertKeys,
     .activation = "gelu",
     .eps = 1e-12,
     .embeddingSize = 128,
     .positionTypes = kAbsolute},
    {.modelType = "albert",
     .className = "Albert",
     .names = "albert",
     .keys = &kBertKeys,
     .activation = "gelu_new",
     .eps = 1e-12,
     .embeddingSize = 128,
     .layerGroups = true,
     .positionTypes = kAbsolute},
    {.modelType = "modernbert",
     .className = "ModernBert",
     .names = "modernbert",
     .keys = &kModernBertKeys,
     .activation = "gelu",
     .eps = 1e-5,
     .tokenTypes = 0,
     .rope = RopeLayout::ByLayerType,
     .theta = 160000,
     .localTheta = 10000,
     .gating = Gating::Always,
     .attentionBias = {"attention_bias", false},
     .upBias = {"mlp_bias", false},
     .downBias = {"mlp_bias", false},
     .normBias = {"norm_bias", false},
     .poolingKey = {"classifier_pooling"},
     .poolings = kModernBertPoolings,
     .classifierKeys = true,
     .positionTypes = kModernBertPositions,
     .decision = true},
    {.modelType = "nomic_bert",
     .className = "NomicBert",
     .names = "nomic_bert",
     .whenKey = "n_embd",
     .keys = &kNomicGpt2Keys,
     .activation = "gelu_new",
     .eps = 1e-5,
     .tokenTypesMayBeNone = true,
     .rope = RopeLayout::OneTheta,
     .theta = 1000,
     .ropeFraction = "rotary_emb_fraction",
     .lengthScaling = true,
     .gating = Gating::ByActivation,
     .attentionBias = {"qkv_proj_bias", true},
     .upBias = {"mlp_fc1_bias", true},
     .downBias = {"mlp_fc2_bias", true},
     .positionTypes = kRotary,
     .refused = kNomicRefused},
    {.modelType = "nomic_bert",
     .className = "NomicBert",
     .names = "nomic_bert",
     .keys = &kNomicKeys,
     .activation = "silu",
     .eps = 1e-12,
     .headDim = true,
     .rope = RopeLayout::OneTheta,
     .theta = 1000,
     .lengthScaling = true,
     .gating = Gating::Always,
     .attentionBias = kOff,
     .upBias = kOff,
     .downBias = kOff,
     .positionTypes = kRotary,
     .refused = kNomicRefused},
    gte("gte", "Gte", 160000),
    gte("new", "New", 10000, /*ntkScaling=*/true),
    {.modelType = "eurobert",
     .className = "EuroBert",
     .names = "eurobert",
     .keys = &kEuroBertKeys,
     .activation = "silu",
     .eps = 1e-5,
     .tokenTypes = 0,
     .headDim = true,
     .kvHeads = true,
     .rope = RopeLayout::OneTheta,
     .theta = 10000,
     .gating = Gating::Always,
     .attentionBias = {"attention_bias", false},
     .upBias = {"mlp_bias", false},
     .downBias = {"mlp_bias", false},
     .poolingKey = {"classifier_pooling", "clf_pooling"},
     .poolings = kEuroBertPoolings,
     .positionTypes = kRotary,
     .refused = kEuroBertRefused},
    jina("jina_embeddings_v3", "JinaEmbeddingsV3", "", "", 20000),
};

struct Refusal {
  llvm::StringLiteral modelType;
  llvm::StringLiteral reason;
};

constexpr llvm::StringLiteral kRelative = "it adds a bias by relative position, which is not computed";
constexpr llvm::StringLiteral kDisentangled =
    "its attention has terms of relative positions (disentangled attention), which are not computed";
constexpr llvm::StringLiteral kDecoder = "it is a decoder, and causal attention is not computed";
constexpr llvm::StringLiteral kEncoderDecoder =
    "it has a decoder and biases by relative position, which are not computed";
constexpr llvm::StringLiteral kPreNorm = "it normalises before attention, and its importer is not written";
constexpr llvm::StringLiteral kSparse = "its sparse attention is not computed";

constexpr Refusal kRefusals[] = {
    {"mpnet", kRelative},
    {"t5", kEncoderDecoder},
    {"mt5", kEncoderDecoder},
    {"deberta", kDisentangled},
    {"deberta-v2", kDisentangled},
    {"xlm-roberta-xl", kPreNorm},
    {"roberta-prelayernorm", kPreNorm},
    {"xmod", "its layers have an adapter for each language, which are not computed"},
    {"longformer", kSparse},
    {"big_bird", kSparse},
    {"xlnet", kRelative},
    {"gpt2", kDecoder},
    {"llama", kDecoder},
    {"mistral", kDecoder},
    {"qwen2", kDecoder},
    {"qwen3", kDecoder},
    {"nomic_bert_moe", "its mixtures of experts are not computed"},
};

} // namespace

static bool isFor(const ConfigFamily &family, const llvm::json::Object &config) {
  if (family.whenKey.empty())
    return true;
  const llvm::json::Value *value = config.get(family.whenKey);
  return value && value->kind() != llvm::json::Value::Null &&
         (family.whenText.empty() || value->getAsString() == llvm::StringRef(family.whenText));
}

const ConfigFamily *findConfigFamily(llvm::StringRef modelType, const llvm::json::Object &config) {
  for (const ConfigFamily &family : kFamilies)
    if (family.modelType == modelType && isFor(family, config))
      return &family;
  return nullptr;
}

const ConfigFamily *configFamilyOfArchitecture(llvm::StringRef architecture, const llvm::json::Object &config) {
  // The whole class name counts: RobertaPreLayerNormModel and BertGenerationEncoder are other families.
  for (const ConfigFamily &family : kFamilies) {
    llvm::StringRef rest = architecture;
    if (rest.consume_front(family.className) && (rest == "Model" || rest.starts_with("For")) && isFor(family, config))
      return &family;
  }
  return nullptr;
}

std::string knownConfigFamilies() {
  std::vector<llvm::StringRef> names;
  for (const ConfigFamily &family : kFamilies)
    if (!llvm::is_contained(names, family.modelType))
      names.push_back(family.modelType);
  return joined(names);
}

llvm::StringRef refusalReason(llvm::StringRef modelType) {
  for (const Refusal &refusal : kRefusals)
    if (refusal.modelType == modelType)
      return refusal.reason;
  return "it is not a family that is known";
}

} // namespace batten
