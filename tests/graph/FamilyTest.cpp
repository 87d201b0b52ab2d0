// Families beyond bert as graphs: lanes, names with and without prefixes, heads told apart, shared and projected parts,
// defaults that facts state, refusals.
#include "tests/graph/GraphTestSupport.h"

#include <map>

using namespace batten;
using namespace batten::test;

using FamilyTest = GraphTest;

namespace {

const char *const kGoldens[] = {"roberta",
                                "xlm-roberta-cross-encoder",
                                "camembert",
                                "distilbert",
                                "distilbert-sequence-classification",
                                "electra",
                                "electra-sequence-classification",
                                "albert",
                                "modernbert",
                                "modernbert-old-config",
                                "modernbert-sequence-classification-cls",
                                "modernbert-sequence-classification-mean",
                                "modernbert-token-classification",
                                "nomic-bert",
                                "gte",
                                "eurobert",
                                "jina-embeddings-v3"};

/// Activations of a lane in order, without the encoder's own.
std::string headActivations(ImportedModel &model, llvm::StringRef lane) {
  std::string text;
  model.module->lookupSymbol(lane)->walk([&](ActivationOp op) {
    if (auto name = mlir::dyn_cast<mlir::NameLoc>(op.getLoc()); !name.getName().getValue().starts_with("l"))
      text += name.getName().str() + " " + stringifyActivation(op.getAct()).str() + " ";
  });
  return text;
}

} // namespace

TEST_F(FamilyTest, EveryGoldenHasItsLanes) {
  const std::map<std::string, std::string> wanted = {
      {"roberta", "encode(hidden: tokens x 40, pooled: seqs x 40)"},
      {"camembert", "encode(hidden: tokens x 32, pooled: seqs x 32)"},
      {"xlm-roberta-cross-encoder", "classify(logits: seqs x 1) encode(hidden: tokens x 40)"},
      {"distilbert", "encode(hidden: tokens x 48)"},
      {"distilbert-sequence-classification", "classify(logits: seqs x 2) encode(hidden: tokens x 32)"},
      {"electra", "encode(hidden: tokens x 40)"},
      {"electra-sequence-classification", "classify(logits: seqs x 3) encode(hidden: tokens x 36)"},
      {"albert", "encode(hidden: tokens x 48, pooled: seqs x 48)"},
      {"modernbert", "encode(hidden: tokens x 32)"},
      {"modernbert-old-config", "encode(hidden: tokens x 40)"},
      {"modernbert-sequence-classification-cls", "classify(logits: seqs x 3) encode(hidden: tokens x 32)"},
      {"modernbert-sequence-classification-mean", "classify(logits: seqs x 4) encode(hidden: tokens x 48)"},
      {"modernbert-token-classification", "classify(logits: tokens x 5) encode(hidden: tokens x 40)"},
      {"nomic-bert", "encode(hidden: tokens x 40)"},
      {"gte", "encode(hidden: tokens x 32)"},
      {"eurobert", "encode(hidden: tokens x 48)"},
      {"jina-embeddings-v3", "encode(hidden: tokens x 32, pooled: seqs x 32)"},
  };
  for (const auto &[name, lanes] : wanted) {
    ImportedModel model = import(goldenPath(name));
    ASSERT_TRUE(model.module);
    EXPECT_EQ(lanesText(model), lanes) << name;
  }
}

TEST_F(FamilyTest, R5_EveryWeightIsStoredWithItsShapeAndTheRestIsListed) {
  for (const std::string name : kGoldens) {
    ImportedModel model = import(goldenPath(name));
    ASSERT_TRUE(model.module);
    for (WeightOp weight : model.module->getOps<WeightOp>()) {
      const Checkpoint::Tensor *stored = model.checkpoint->lookup(weight.getDir(), weight.getTensor());
      ASSERT_NE(stored, nullptr) << name << ": " << weight.getTensor().str();
      EXPECT_EQ(llvm::ArrayRef<int64_t>(stored->stored->shape),
                mlir::cast<mlir::RankedTensorType>(weight.getType()).getShape())
          << name << ": " << weight.getTensor().str();
    }
    std::vector<std::string> unused = unusedTensors(model);
    EXPECT_EQ(unused.size(), name == "electra" ? 4u : 0u) << name;
    for (const std::string &tensor : unused)
      EXPECT_EQ(tensor.rfind("discriminator_predictions.", 0), 0u) << tensor;
  }
}

TEST_F(FamilyTest, R5_AnyPrefixIsFoundAndTheHeadStandsBesideIt) {
  const std::map<std::string, std::string> prefixes = {{"roberta", "roberta."},
                                                       {"camembert", "roberta."},
                                                       {"distilbert", "distilbert."},
                                                       {"electra", "electra."},
                                                       {"albert", "albert."},
                                                       {"xlm-roberta-cross-encoder", "roberta."},
                                                       {"distilbert-sequence-classification", "distilbert."},
                                                       {"electra-sequence-classification", "electra."},
                                                       {"modernbert", "model."},
                                                       {"modernbert-sequence-classification-cls", "model."},
                                                       {"modernbert-token-classification", "model."},
                                                       {"nomic-bert", "bert."},
                                                       {"gte", "new."},
                                                       {"eurobert", "model."},
                                                       {"jina-embeddings-v3", "roberta."}};
  for (const auto &[golden, own] : prefixes)
    for (const std::string &prefix : {std::string(), own, "module." + own, "model." + own, std::string("odd.")}) {
      TempDir dir;
      copyGolden(golden, dir);
      bool has = readFile(goldenPath(golden + "/model.safetensors")).find("\"" + own) != std::string::npos;
      std::string head = prefix.ends_with(own) ? prefix.substr(0, prefix.size() - own.size()) : prefix;
      rename(dir, golden, [&](const std::string &name) {
        if (!has)
          return prefix + name;
        return name.rfind(own, 0) == 0 ? prefix + name.substr(own.size()) : head + name;
      });
      ImportedModel model = import(dir.path());
      ASSERT_TRUE(model.module) << golden << " " << prefix;
      EXPECT_EQ(unusedTensors(model).size(), golden == "electra" ? 4u : 0u) << golden << " " << prefix;
      EXPECT_EQ(fact(model, "names"), "prefix \"" + prefix + "\"") << golden;
    }
}

TEST_F(FamilyTest, R5_OldNamesOfNormsAreRead) {
  for (const std::string golden : {"roberta", "electra", "albert"}) {
    TempDir dir;
    copyGolden(golden, dir);
    rename(dir, golden, [](const std::string &name) {
      llvm::StringRef old = name;
      if (old.consume_back("LayerNorm.weight"))
        return (old + "LayerNorm.gamma").str();
      return old.consume_back("LayerNorm.bias") ? (old + "LayerNorm.beta").str() : name;
    });
    ImportedModel model = import(dir.path());
    ASSERT_TRUE(model.module) << golden;
    EXPECT_TRUE(weightTensors(model).count((golden == "electra" ? "electra." : "") +
                                           std::string("embeddings.LayerNorm.gamma")));
    EXPECT_EQ(unusedTensors(model).size(), golden == "electra" ? 4u : 0u) << golden;
  }
}

TEST_F(FamilyTest, R13_HeadsHaveTheirFamilysDenseLayerAndActivation) {
  for (auto [golden, activations] : {std::pair("xlm-roberta-cross-encoder", "classifier.act tanh "),
                                     std::pair("distilbert-sequence-classification", "classifier.act relu "),
                                     std::pair("electra-sequence-classification", "classifier.act gelu_erf ")}) {
    ImportedModel model = import(goldenPath(golden));
    ASSERT_TRUE(model.module);
    EXPECT_EQ(headActivations(model, "classify"), activations) << golden;
    EXPECT_EQ(countOps(model, "classify", "batten.pool"), 1) << golden;
  }
}

TEST_F(FamilyTest, R13_ElectrasHeadKeepsItsGeluWhateverTheLayersHave) {
  TempDir dir;
  copyGolden("electra-sequence-classification", dir);
  editFile(dir, "config.json", "\"hidden_act\": \"gelu\"", "\"hidden_act\": \"relu\"");
  ImportedModel model = import(dir.path());
  ASSERT_TRUE(model.module);
  EXPECT_EQ(headActivations(model, "classify"), "classifier.act gelu_erf ");
}

TEST_F(FamilyTest, R13_AMissingHeadIsAskedForByItsName) {
  for (auto [golden, dense, out] :
       {std::tuple("xlm-roberta-cross-encoder", "classifier.dense.weight", "classifier.out_proj.weight"),
        std::tuple("distilbert-sequence-classification", "pre_classifier.weight", "classifier.weight"),
        std::tuple("electra-sequence-classification", "classifier.dense.weight", "classifier.out_proj.weight")}) {
    TempDir dir;
    copyGolden(golden, dir);
    rename(dir, golden,
           [](const std::string &name) { return name.find("classifier") == std::string::npos ? name : std::string(); });
    ImportedModel model = import(dir.path());
    ASSERT_TRUE(model.module) << golden;
    EXPECT_TRUE(weightTensors(model).count(dense)) << golden;
    EXPECT_TRUE(weightTensors(model).count(out)) << golden;
  }
}

TEST_F(FamilyTest, HeadsWithoutArchitecturesAreToldApartByTheirNames) {
  for (auto [golden, dense] : {std::pair("xlm-roberta-cross-encoder", "classifier.dense"),
                               std::pair("distilbert-sequence-classification", "pre_classifier"),
                               std::pair("electra-sequence-classification", "classifier.dense")}) {
    std::string lanes = "classify(logits: seqs x ";
    TempDir dir;
    copyGolden(golden, dir);
    editFile(dir, "config.json", "\"architectures\"", "\"other\"");
    ImportedModel sequences = import(dir.path());
    ASSERT_TRUE(sequences.module) << golden;
    EXPECT_EQ(lanesText(sequences).substr(0, lanes.size()), lanes) << golden;
    expectParts(sequences.notes.at(0), {"architectures is missing", dense, "classifies sequences"});

    // The same without the dense layer, the last one under the name that token classifiers have.
    rename(dir, golden, [&, denseName = std::string(dense)](const std::string &name) {
      llvm::StringRef rest = name;
      if (rest.starts_with(denseName + "."))
        return std::string();
      return rest.consume_front("classifier.out_proj.") ? ("classifier." + rest).str() : name;
    });
    ImportedModel tokens = import(dir.path());
    ASSERT_TRUE(tokens.module) << golden;
    lanes = "classify(logits: tokens x ";
    EXPECT_EQ(lanesText(tokens).substr(0, lanes.size()), lanes) << golden;
    expectParts(tokens.notes.at(0), {"architectures is missing", "classifies tokens"});
  }
}

TEST_F(FamilyTest, AClassifierOnAlbertsPoolerIsNotClearWithoutArchitectures) {
  TempDir dir;
  copyGolden("albert", dir);
  SafetensorsWriter writer = rewritten(goldenPath("albert/model.safetensors"), [](const std::string &n) { return n; });
  writer.addF32("classifier.weight", {1, 48}, std::vector<float>(48)).addF32("classifier.bias", {1}, {0});
  dir.write("model.safetensors", writer.bytes());
  ImportedModel left = import(dir.path());
  ASSERT_TRUE(left.module);
  expectParts(left.notes.at(0), {"architectures is AlbertModel", "left out"});
  EXPECT_EQ(unusedTensors(left), (std::vector<std::string>{"classifier.bias", "classifier.weight"}));
  editFile(dir, "config.json", "\"architectures\"", "\"other\"");
  expectParts(refusal(dir.path()), {"not clear", "AlbertForSequenceClassification", "AlbertForTokenClassification"});
}

TEST_F(FamilyTest, R12_SomeFamiliesReadNoTokenTypes) {
  for (const std::string name : kGoldens) {
    ImportedModel model = import(goldenPath(name));
    ASSERT_TRUE(model.module);
    bool types = name.rfind("distilbert", 0) != 0 && name.rfind("modernbert", 0) != 0 && name != "eurobert";
    EXPECT_EQ(countOps(model, "encode", "batten.embed_types"), types) << name;
    EXPECT_EQ(model.module->lookupSymbol<GraphOp>("encode").getBody().front().getNumArguments(), types ? 3u : 2u)
        << name;
  }
}

TEST_F(FamilyTest, R11_PositionsBeginAfterThePadding) {
  for (auto [name, rows, first] :
       {std::tuple("roberta", 66, 2), std::tuple("xlm-roberta-cross-encoder", 82, 2), std::tuple("camembert", 66, 2),
        std::tuple("distilbert", 64, 0), std::tuple("electra", 64, 0), std::tuple("albert", 64, 0)}) {
    ImportedModel model = import(goldenPath(name));
    ASSERT_TRUE(model.module);
    EXPECT_EQ(model.maxSeqTokens, rows - first) << name;
    model.module->walk([&, offset = first](EmbedPositionsOp op) { EXPECT_EQ(op.getOffset(), offset); });
  }
  ImportedModel model = import(goldenPath("roberta"));
  EXPECT_EQ(fact(model, "positions"),
            "64 of 66 rows, absolute, from 2 (pad_token_id 1 + 1) in each sequence; every token "
            "counts, also one with the padding's id");
}

TEST_F(FamilyTest, R17_SharedLayersAreOneSetOfWeightsAndEmbeddingsAreProjected) {
  ImportedModel model = import(goldenPath("albert"));
  ASSERT_TRUE(model.module);
  EXPECT_EQ(countOps(model, "encode", "batten.attention"), 3);
  // 3 tables, a norm, the projection, 16 tensors of the one layer, the pooler.
  EXPECT_EQ(weightTensors(model).size(), 3u + 2 + 2 + 16 + 2);
  EXPECT_TRUE(weightTensors(model).count("encoder.embedding_hidden_mapping_in.weight"));
  EXPECT_EQ(fact(model, "layer groups"), "1; the layers of a group share their weights");
  EXPECT_EQ(fact(model, "embedding size"), "20");
  TempDir dir;
  copyGolden("albert", dir);
  editFile(dir, "config.json", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 6");
  editFile(dir, "config.json", "\"num_hidden_groups\": 1", "\"num_hidden_groups\": 2");
  ImportedModel two = import(dir.path());
  std::string groups;
  two.module->lookupSymbol("encode")->walk([&](LinearOp op) {
    if (auto name = mlir::dyn_cast<mlir::NameLoc>(op.getLoc()); name.getName().getValue().ends_with(".up"))
      groups += op.getWeight().getDefiningOp<ParamOp>().getWeight().str() + " ";
  });
  EXPECT_EQ(groups, "g0.up.w g0.up.w g0.up.w g1.up.w g1.up.w g1.up.w ");
  EXPECT_TRUE(weightTensors(two).count("encoder.albert_layer_groups.1.albert_layers.0.ffn.weight"));
}

TEST_F(FamilyTest, ElectraProjectsOnlyEmbeddingsOfAnotherWidth) {
  ImportedModel narrow = import(goldenPath("electra"));
  ASSERT_TRUE(narrow.module);
  EXPECT_TRUE(weightTensors(narrow).count("electra.embeddings_project.weight"));
  TempDir dir;
  copyGolden("electra", dir);
  editFile(dir, "config.json", "\"embedding_size\": 24", "\"embedding_size\": 40");
  ImportedModel equal = import(dir.path());
  ASSERT_TRUE(equal.module);
  EXPECT_FALSE(weightTensors(equal).count("electra.embeddings_project.weight"));
}

TEST_F(FamilyTest, R10_FactsStateTheFamilysDefaults) {
  auto without = [&](const char *golden, std::initializer_list<const char *> keys) {
    TempDir dir;
    copyGolden(golden, dir);
    for (const char *key : keys)
      editFile(dir, "config.json", "\"" + std::string(key) + "\"", "\"no_" + std::string(key) + "\"");
    return import(dir.path());
  };
  ImportedModel albert = without("albert", {"hidden_act", "num_hidden_groups", "inner_group_num", "layer_norm_eps"});
  expectParts(fact(albert, "activation"), {"gelu_new (gelu_tanh) (default of the family", "no hidden_act"});
  expectParts(fact(albert, "layer groups"), {"1 (default of the family", "no num_hidden_groups"});
  expectParts(fact(albert, "layers inside a group"), {"1 (default of the family", "no inner_group_num"});
  expectParts(fact(albert, "layer norm eps"), {"1e-12 (default of the family"});
  ImportedModel roberta = without("roberta", {"pad_token_id", "layer_norm_eps", "type_vocab_size"});
  expectParts(fact(roberta, "positions"), {"64 of 66 rows", "no pad_token_id"});
  expectParts(fact(roberta, "layer norm eps"), {"1e-12 (default of the family"});
  expectParts(fact(roberta, "token types"), {"2 (default of the family", "no type_vocab_size"});
  ImportedModel distil = without("distilbert", {"activation"});
  expectParts(fact(distil, "activation"), {"gelu (gelu_erf) (default of the family", "no activation"});
  EXPECT_EQ(fact(distil, "layer norm eps"), "1e-12 (fixed by the family)");
  EXPECT_EQ(fact(distil, "token types"), "none");
  EXPECT_EQ(fact(distil, "own pooler"), "none");
  ImportedModel electra = without("electra", {"embedding_size"});
  expectParts(fact(electra, "embedding size"), {"128 (default of the family", "no embedding_size"});
}

TEST_F(FamilyTest, RefusedFamiliesAreRefusedBeforeAnythingElse) {
  expectParts(refusal(goldenPath("mpnet")), {"model_type \"mpnet\" is refused", "relative position"});
  expectParts(refusal(goldenPath("deberta-v2")), {"model_type \"deberta-v2\" is refused", "disentangled attention"});
  TempDir dir;
  dir.write("config.json", R"({"model_type": "t5"})"); // no weights: the family is judged first
  expectParts(refusal(dir.path()), {"model_type \"t5\" is refused", "decoder"});
}
