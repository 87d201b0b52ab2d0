// Every golden directory as a graph: lanes, outputs, weights that the checkpoint has, text that reads back; names with and
// without prefixes; heads told apart; what is noted and what is refused. Families beyond bert: FamilyTest.cpp.
#include "tests/graph/GraphTestSupport.h"

#include "mlir/Parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace batten;
using namespace batten::test;

namespace {

std::string printed(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

} // namespace

using ImportTest = GraphTest;

TEST_F(ImportTest, EveryGoldenHasItsLanes) {
  const std::map<std::string, std::string> wanted = {
      {"bert", "encode(hidden: tokens x 48, pooled: seqs x 48)"},
      {"bert-bf16", "encode(hidden: tokens x 48, pooled: seqs x 48)"},
      {"bert-f16", "encode(hidden: tokens x 56, pooled: seqs x 56)"},
      {"bert-legacy-names", "encode(hidden: tokens x 32, pooled: seqs x 32)"},
      {"bert-masked-lm", "encode(hidden: tokens x 32)"},
      {"bert-module-prefix", "encode(hidden: tokens x 32, pooled: seqs x 32)"},
      {"bert-no-pooler", "encode(hidden: tokens x 36)"},
      {"bert-sequence-classification", "classify(logits: seqs x 3) encode(hidden: tokens x 64, pooled: seqs x 64)"},
      {"bert-sharded", "encode(hidden: tokens x 36, pooled: seqs x 36)"},
      {"bert-token-classification", "classify(logits: tokens x 5) encode(hidden: tokens x 72)"},
      {"sentence-cls-normalize", "embed(embedding: seqs x 36) encode(hidden: tokens x 36, pooled: seqs x 36)"},
      {"sentence-max", "embed(embedding: seqs x 32) encode(hidden: tokens x 32, pooled: seqs x 32)"},
      {"sentence-mean-normalize", "embed(embedding: seqs x 32) encode(hidden: tokens x 32, pooled: seqs x 32)"},
      {"sentence-mean-sqrt-len-dense", "embed(embedding: seqs x 24) encode(hidden: tokens x 32, pooled: seqs x 32)"},
      {"malformed/base", "encode(hidden: tokens x 16)"},
  };
  for (const auto &[name, lanes] : wanted) {
    ImportedModel model = import(goldenPath(name));
    if (model.module)
      EXPECT_EQ(lanesText(model), lanes) << name;
  }
}

TEST_F(ImportTest, R5_EveryWeightOfAGoldenIsStoredWithItsShape) {
  for (const char *name :
       {"bert", "bert-legacy-names", "bert-masked-lm", "bert-module-prefix", "bert-no-pooler",
        "bert-sequence-classification", "bert-sharded", "bert-token-classification", "sentence-mean-sqrt-len-dense"}) {
    ImportedModel model = import(goldenPath(name));
    ASSERT_TRUE(model.module);
    for (WeightOp weight : model.module->getOps<WeightOp>()) {
      const Checkpoint::Tensor *stored = model.checkpoint->lookup(weight.getDir(), weight.getTensor());
      ASSERT_NE(stored, nullptr) << name << ": " << weight.getTensor().str();
      EXPECT_EQ(llvm::ArrayRef<int64_t>(stored->stored->shape),
                mlir::cast<mlir::RankedTensorType>(weight.getType()).getShape())
          << name << ": " << weight.getTensor().str();
    }
  }
}

TEST_F(ImportTest, R5_WhatNoLaneAsksForIsListed) {
  ImportedModel bert = import(goldenPath("bert"));
  EXPECT_EQ(unusedTensors(bert), std::vector<std::string>{});
  ImportedModel legacy = import(goldenPath("bert-legacy-names"));
  EXPECT_EQ(unusedTensors(legacy), std::vector<std::string>{"bert.embeddings.position_ids"});
  ImportedModel masked = import(goldenPath("bert-masked-lm"));
  EXPECT_EQ(unusedTensors(masked).size(), 5u);
  for (const std::string &name : unusedTensors(masked))
    EXPECT_EQ(name.rfind("cls.predictions.", 0), 0u) << name;
}

TEST_F(ImportTest, TextReadsBackAsTheSameGraph) {
  for (const char *name : {"bert-sequence-classification", "sentence-mean-sqrt-len-dense"}) {
    ImportedModel model = import(goldenPath(name));
    ASSERT_TRUE(model.module);
    std::string text = printed(*model.module);
    mlir::OwningOpRef<mlir::ModuleOp> back = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(printed(*back), text);
    EXPECT_EQ(readFacts(*back), model.facts);
    EXPECT_NE(text.find("tensor<?x"), std::string::npos);
    EXPECT_EQ(text.find("/"), std::string::npos) << "no path belongs into a graph";
  }
}

TEST_F(ImportTest, GraphFilesKeepTheNamesOfOps) {
  TempDir dir;
  ImportedModel model = import(goldenPath("sentence-mean-sqrt-len-dense"));
  ASSERT_TRUE(model.module);
  auto labels = [](mlir::ModuleOp module) {
    std::string text;
    module->walk([&](mlir::Operation *op) {
      if (op->getNumResults() == 1)
        if (auto name = mlir::dyn_cast<mlir::NameLoc>(op->getLoc()))
          text += name.getName().str() + " ";
    });
    return text;
  };
  std::string text = printGraph(*model.module);
  expectParts(text, {"%l0.qkv = batten.concat_cols %l0.q, %l0.k, %l0.v"});
  auto back = readGraph(context, dir.write("graph.mlir", text));
  ASSERT_TRUE(static_cast<bool>(back)) << llvm::toString(back.takeError());
  EXPECT_EQ(labels(**back), labels(*model.module));
  EXPECT_TRUE(printGraph(**back) == text);
  EXPECT_EQ(readFacts(**back), model.facts);
}

TEST_F(ImportTest, R58_GraphFilesAreRefusedWithLineAndColumn) {
  TempDir dir;
  ImportedModel model = import(goldenPath("bert"));
  dir.write("graph.mlir", printGraph(*model.module));
  editFile(dir, "graph.mlir", "heads 6", "heads 5");
  expectParts(lastLine(errorText(readGraph(context, dir.path("graph.mlir")))), {"graph.mlir:68:30: ", "%l0.attn"});
  dir.write("graph.mlir", "module {\n  batten.graff @a\n}\n");
  expectParts(lastLine(errorText(readGraph(context, dir.path("graph.mlir")))), {"graph.mlir:2:3: "});
  dir.write("graph.mlir", "");
  EXPECT_EQ(errorText(readGraph(context, dir.path("graph.mlir"))), "(no error)")
      << "an empty module: lanes will be missed";
  expectParts(errorText(readGraph(context, dir.path("gone.mlir"))), {"gone.mlir", "No such file"});
}

TEST_F(ImportTest, R48_TwoImportsGiveTheSameText) {
  mlir::MLIRContext other;
  other.loadDialect<BattenDialect>();
  TempDir dir;
  copyGolden("sentence-mean-sqrt-len-dense", dir);
  ImportedModel a = import(goldenPath("sentence-mean-sqrt-len-dense"));
  llvm::Expected<ImportedModel> b = importGraph(other, dir.path());
  ASSERT_TRUE(a.module && b);
  EXPECT_EQ(printed(*a.module), printed(*b->module));
}

TEST_F(ImportTest, R5_AnyPrefixIsFound) {
  for (const char *prefix : {"", "bert.", "model.", "module.", "module.bert.", "model.bert.", "odd.prefix."}) {
    TempDir dir;
    copyGolden("bert", dir);
    dir.write("model.safetensors", rewritten(goldenPath("bert/model.safetensors"), [&](const std::string &name) {
                                     return prefix + name;
                                   }).bytes());
    ImportedModel model = import(dir.path());
    ASSERT_TRUE(model.module) << prefix;
    EXPECT_EQ(unusedTensors(model), std::vector<std::string>{}) << prefix;
    EXPECT_EQ(fact(model, "names"), "prefix \"" + std::string(prefix) + "\"");
  }
}

TEST_F(ImportTest, R5_TheClassifierStandsBesideThePrefix) {
  for (auto [prefix, head] : {std::pair("module.bert.", "module."), std::pair("bert.", ""), std::pair("", "")}) {
    TempDir dir;
    copyGolden("bert-sequence-classification", dir);
    dir.write("model.safetensors",
              rewritten(goldenPath("bert-sequence-classification/model.safetensors"), [&](const std::string &name) {
                return name.rfind("bert.", 0) == 0 ? prefix + name.substr(5) : head + name;
              }).bytes());
    ImportedModel model = import(dir.path());
    ASSERT_TRUE(model.module) << prefix;
    EXPECT_EQ(unusedTensors(model), std::vector<std::string>{}) << prefix;
  }
}

TEST_F(ImportTest, TwoEncodersAreTakenByKnownPrefixOrRefused) {
  auto twice = [](const char *a, const char *b) {
    SafetensorsFile file = llvm::cantFail(SafetensorsFile::open(goldenPath("bert/model.safetensors")));
    SafetensorsWriter writer;
    for (const char *prefix : {a, b})
      for (const StoredTensor &tensor : file.tensors()) {
        std::string bytes(tensor.bytes, '\0');
        llvm::cantFail(file.read(tensor, 0, tensor.bytes, reinterpret_cast<uint8_t *>(bytes.data())));
        writer.add(prefix + tensor.name, tensor.dtype, tensor.shape, bytes);
      }
    return writer.bytes();
  };
  TempDir dir;
  copyGolden("bert", dir);
  dir.write("model.safetensors", twice("teacher.", "bert."));
  ImportedModel model = import(dir.path());
  EXPECT_EQ(fact(model, "names"), "prefix \"bert.\"");
  ASSERT_EQ(model.notes.size(), 2u); // and cases.safetensors as a stray
  expectParts(model.notes[0], {"several encoders", "\"bert.\""});
  dir.write("model.safetensors", twice("teacher.", "student."));
  expectParts(refusal(dir.path()), {"\"student.\"", "\"teacher.\"", "not clear"});
}

TEST_F(ImportTest, R13_SequenceClassifierHasItsPoolerAlsoWhereItIsMissing) {
  TempDir dir;
  copyGolden("bert-sequence-classification", dir);
  dir.write("model.safetensors",
            rewritten(goldenPath("bert-sequence-classification/model.safetensors"), [&](const std::string &name) {
              return name.find("pooler") == std::string::npos ? name : std::string();
            }).bytes());
  ImportedModel model = import(dir.path());
  ASSERT_TRUE(model.module);
  EXPECT_TRUE(weightTensors(model).count("bert.pooler.dense.weight"));
  EXPECT_EQ(model.checkpoint->lookup("", "bert.pooler.dense.weight"), nullptr);
}

TEST_F(ImportTest, LabelCountComesFromTheClassifierWhereTheConfigLacksIt) {
  TempDir dir;
  copyGolden("bert-sequence-classification", dir);
  editFile(dir, "config.json", "\"id2label\"", "\"other\"");
  ImportedModel model = import(dir.path());
  EXPECT_EQ(lanesText(model).substr(0, 27), "classify(logits: seqs x 3) ");
}

TEST_F(ImportTest, HeadsWithoutArchitecturesAreToldApartOrRefused) {
  TempDir tokens;
  copyGolden("bert-token-classification", tokens);
  editFile(tokens, "config.json", "\"architectures\"", "\"other\"");
  ImportedModel model = import(tokens.path());
  EXPECT_EQ(lanesText(model), "classify(logits: tokens x 5) encode(hidden: tokens x 72)");
  ASSERT_EQ(model.notes.size(), 2u); // and cases.safetensors as a stray
  TempDir both;
  copyGolden("bert-sequence-classification", both);
  editFile(both, "config.json", "\"architectures\"", "\"other\"");
  expectParts(refusal(both.path()), {"config.json", "architectures is missing", "classifier.weight", "not clear"});
  TempDir base;
  copyGolden("bert-sequence-classification", base);
  editFile(base, "config.json", "BertForSequenceClassification", "BertModel");
  ImportedModel encoder = import(base.path());
  EXPECT_EQ(lanesText(encoder), "encode(hidden: tokens x 64, pooled: seqs x 64)");
  ASSERT_EQ(encoder.notes.size(), 2u);
  expectParts(encoder.notes[0], {"BertModel", "left out"});
}

TEST_F(ImportTest, SE05_VocabMismatchIsNotedAndTheTableBounds) {
  TempDir dir;
  copyGolden("bert", dir);
  editFile(dir, "config.json", "\"vocab_size\": 151", "\"vocab_size\": 160");
  ImportedModel model = import(dir.path());
  ASSERT_TRUE(model.module);
  ASSERT_EQ(model.notes.size(), 2u); // and cases.safetensors as a stray
  expectParts(model.notes[0], {"160", "151 rows"});
  auto words = model.module->lookupSymbol<WeightOp>("embed.words.w");
  EXPECT_EQ(mlir::cast<mlir::RankedTensorType>(words.getType()).getDimSize(0), 151);
}

TEST_F(ImportTest, R10_FactsSayWhatFixesTheResult) {
  ImportedModel model = import(goldenPath("sentence-mean-sqrt-len-dense"));
  EXPECT_EQ(fact(model, "family"), "bert");
  EXPECT_EQ(fact(model, "pooling"), "mean_sqrt_len");
  EXPECT_EQ(fact(model, "dense"), "32 to 24, tanh");
  EXPECT_EQ(fact(model, "normalize"), "yes");
  EXPECT_EQ(fact(model, "layer norm eps"), "1e-12");
  EXPECT_EQ(fact(model, "activation"), "gelu (gelu_erf)");
  EXPECT_EQ(fact(model, "positions"), "64, absolute, from 0 in each sequence");
  ImportedModel max = import(goldenPath("sentence-max"));
  EXPECT_EQ(fact(max, "normalize"), "no");
  TempDir dir;
  copyGolden("bert", dir);
  editFile(dir, "config.json", "\"layer_norm_eps\"", "\"other\"");
  ImportedModel defaulted = import(dir.path());
  expectParts(fact(defaulted, "layer norm eps"), {"1e-12", "default of the family", "layer_norm_eps"});
  ImportedModel labels = import(goldenPath("bert-sequence-classification"));
  EXPECT_EQ(fact(labels, "classifier"), "sequences, 3 logits, no softmax or sigmoid");
  EXPECT_EQ(fact(labels, "labels"), "0 = LABEL_0, 1 = LABEL_1, 2 = LABEL_2");
}

TEST_F(ImportTest, R10_EpsReachesEveryNorm) {
  ImportedModel model = import(goldenPath("bert-no-pooler"));
  int norms = 0;
  model.module->walk([&](LayerNormOp op) {
    ++norms;
    EXPECT_EQ(op.getEps().convertToFloat(), 1e-5f);
  });
  EXPECT_EQ(norms, 5);
}

TEST_F(ImportTest, R18_SeveralPoolingsAreJoinedInOrder) {
  TempDir dir;
  copyGolden("sentence-max", dir);
  dir.write("1_Pooling/config.json", R"({"word_embedding_dimension":32,"pooling_mode_mean_tokens":true,
            "pooling_mode_max_tokens":true,"pooling_mode_cls_token":true})");
  ImportedModel model = import(dir.path());
  ASSERT_TRUE(model.module);
  EXPECT_EQ(lanesText(model).substr(0, 29), "embed(embedding: seqs x 96) e");
  std::string kinds;
  model.module->lookupSymbol("embed")->walk([&](PoolOp op) { kinds += stringifyPooling(op.getKind()).str() + " "; });
  EXPECT_EQ(kinds, "cls max mean ");
  dir.write("1_Pooling/config.json", R"({"word_embedding_dimension":48})");
  expectParts(refusal(dir.path()), {"1_Pooling/config.json", "48", "hidden_size is 32"});
}

TEST_F(ImportTest, DenseWidthsMustFit) {
  TempDir dir;
  copyGolden("sentence-mean-sqrt-len-dense", dir);
  editFile(dir, "2_Dense/config.json", "\"in_features\": 32", "\"in_features\": 30");
  expectParts(refusal(dir.path()), {"2_Dense/config.json", "in_features is 30", "32 columns"});
}

TEST_F(ImportTest, AnOlderEncoderDirectoryIsRead) {
  TempDir dir;
  std::filesystem::create_directory(dir.path("0_Transformer"));
  for (const char *file : {"config.json", "model.safetensors"})
    std::filesystem::copy(goldenPath("sentence-max/") + file, dir.path(std::string("0_Transformer/") + file));
  std::filesystem::copy(goldenPath("sentence-max/1_Pooling"), dir.path("1_Pooling"));
  std::filesystem::copy(goldenPath("sentence-max/modules.json"), dir.path("modules.json"));
  editFile(dir, "modules.json", "\"path\": \"\"", "\"path\": \"0_Transformer\"");
  ImportedModel model = import(dir.path());
  ASSERT_TRUE(model.module);
  EXPECT_EQ(lanesText(model).substr(0, 27), "embed(embedding: seqs x 32)");
  EXPECT_TRUE(weightTensors(model).count("0_Transformer/embeddings.word_embeddings.weight"));
  EXPECT_EQ(unusedTensors(model), std::vector<std::string>{});
  auto again = openCheckpointFor(*model.module, dir.path());
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  EXPECT_EQ((*again)->tensors().size(), model.checkpoint->tensors().size());
}

TEST_F(ImportTest, OpenCheckpointForFindsModuleDirectories) {
  ImportedModel model = import(goldenPath("sentence-mean-sqrt-len-dense"));
  ASSERT_TRUE(model.module);
  for (const char *path : {"", "/model.safetensors"}) {
    auto checkpoint = openCheckpointFor(*model.module, goldenPath("sentence-mean-sqrt-len-dense") + path);
    ASSERT_TRUE(static_cast<bool>(checkpoint)) << llvm::toString(checkpoint.takeError());
    EXPECT_NE((*checkpoint)->lookup("2_Dense", "linear.weight"), nullptr);
    EXPECT_EQ((*checkpoint)->tensors().size(), model.checkpoint->tensors().size());
  }
}

TEST_F(ImportTest, StoredAndStagesAreAdded) {
  ImportedModel model = import(goldenPath("bert-legacy-names"));
  ASSERT_TRUE(model.module);
  addStored(*model.module, *model.checkpoint);
  Spec spec = specFor(model, "graph.mlir", ".");
  EXPECT_EQ(spec.lanes.size(), 1u);
  EXPECT_EQ(errorText(addStages(*model.module, spec.stages, spec.lanes)), "(no error)");
  std::string text = printed(*model.module);
  expectParts(text,
              {"batten.stored \"bert.embeddings.position_ids\" in \"\" file \"model.safetensors\" : tensor<1x72xi64>",
               "batten.stage @text [[32, 8, 0], [128, 32, 0], [512, 64, 0], [2048, 256, 0]]", "stage = @text"});
  EXPECT_TRUE(mlir::parseSourceString<mlir::ModuleOp>(text, &context)) << text;
  LaneSpec lane{"embed", "encodd", "text", {}, {}, {}, {}, "b.toml:3:1"};
  expectParts(errorText(addStages(*model.module, {}, lane)), {"b.toml:3:1", "no graph @encodd", "'encode'"});
  StageSpec stage{"encode", {{1, 1, 0}}, "b.toml:9:1"};
  expectParts(errorText(addStages(*model.module, stage, {})), {"b.toml:9:1", "\"encode\"", "name of a graph"});
}

TEST_F(ImportTest, StraysAreNoted) {
  ImportedModel model = import(goldenPath("bert"));
  ASSERT_EQ(model.notes.size(), 1u); // cases.safetensors beside it
  expectParts(model.notes[0], {"cases.safetensors", "not part of the checkpoint"});
}
