// The table of families and that of refusals; see the header.
#include "compiler/spec/ConfigFamily.h"
#include "compiler/spec/Text.h"

#include <vector>

namespace batten {

namespace {

constexpr ConfigKeys kBertKeys = {
    {"hidden_size"}, {"num_hidden_layers"}, {"num_attention_heads"}, {"intermediate_size"}, {"hidden_act"}};

constexpr ConfigKeys kDistilBertKeys = {{"dim", "hidden_size"},
                                        {"n_layers", "num_hidden_layers"},
                                        {"n_heads", "num_attention_heads"},
                                        {"hidden_dim"},
                                        {"activation"}};

/// The RoBERTa family's classes are each other's copies; its default eps is 1e-12 although every published config has 1e-5.
constexpr ConfigFamily roberta(llvm::StringLiteral modelType, llvm::StringLiteral className) {
  return {.modelType = modelType,
          .className = className,
          .keys = &kBertKeys,
          .activation = "gelu",
          .eps = 1e-12,
          .positionPad = 1};
}

const ConfigFamily kFamilies[] = {
    {.modelType = "bert", .className = "Bert", .keys = &kBertKeys, .activation = "gelu", .eps = 1e-12},
    roberta("roberta", "Roberta"),
    roberta("xlm-roberta", "XLMRoberta"),
    roberta("camembert", "Camembert"),
    {.modelType = "distilbert",
     .className = "DistilBert",
     .keys = &kDistilBertKeys,
     .activation = "gelu",
     .eps = 1e-12,
     .epsIsFixed = true,
     .tokenTypes = false},
    {.modelType = "electra",
     .className = "Electra",
     .keys = &kBertKeys,
     .activation = "gelu",
     .eps = 1e-12,
     .embeddingSize = 128},
    {.modelType = "albert",
     .className = "Albert",
     .keys = &kBertKeys,
     .activation = "gelu_new",
     .eps = 1e-12,
     .embeddingSize = 128,
     .layerGroups = true},
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
constexpr llvm::StringLiteral kLater = "its family is not compiled yet";

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
    {"modernbert", kLater},
    {"eurobert", kLater},
    {"nomic_bert", kLater},
    {"new", "it is the GTE family with code of its own, which is not compiled yet"},
    {"jina-embeddings-v3", kLater},
};

} // namespace

const ConfigFamily *findConfigFamily(llvm::StringRef modelType) {
  for (const ConfigFamily &family : kFamilies)
    if (family.modelType == modelType)
      return &family;
  return nullptr;
}

const ConfigFamily *configFamilyOfArchitecture(llvm::StringRef architecture) {
  // The whole class name counts: RobertaPreLayerNormModel and BertGenerationEncoder are other families.
  for (const ConfigFamily &family : kFamilies) {
    llvm::StringRef rest = architecture;
    if (rest.consume_front(family.className) && (rest == "Model" || rest.starts_with("For")))
      return &family;
  }
  return nullptr;
}

std::string knownConfigFamilies() {
  std::vector<llvm::StringRef> names;
  for (const ConfigFamily &family : kFamilies)
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
