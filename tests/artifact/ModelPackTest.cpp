// From a model directory to its packs: import, passes, packer. Every golden packs, twice the same; faults that only weights
// against tensors show are named as malformed.json wants them.
#include "compiler/artifact/CheckpointSource.h"
#include "compiler/artifact/PackEntries.h"
#include "compiler/artifact/PackWriter.h"
#include "compiler/graph/Import.h"
#include "compiler/layout/WeightStorage.h"
#include "compiler/passes/Pipeline.h"
#include "dialect/PlanDialect.h"
#include "tests/ErrorText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/STLExtras.h"

using namespace batten;
using namespace batten::test;

namespace {

std::string goldenPath(const std::string &name) { return BATTEN_TEST_DATA "/goldens/" + name; }

/// The two packs of a model, or the text of what went wrong, as a user sees it.
struct Packed {
  std::string error;
  std::vector<layout::PackEntry> entries[2];
  layout::PackLayout placed[2];
  std::vector<uint8_t> bytes[2];
  std::vector<std::string> unused;
};

std::string runPasses(mlir::ModuleOp module) {
  std::string text;
  mlir::ScopedDiagnosticHandler handler(module.getContext(), [&](mlir::Diagnostic &diagnostic) {
    text += (text.empty() ? "" : "\n") + diagnostic.str();
    return mlir::success();
  });
  mlir::PassManager manager(module.getContext());
  buildGraphPipeline(manager);
  buildPlanPipeline(manager);
  return mlir::succeeded(manager.run(module)) ? "" : text;
}

Packed pack(const std::string &dir) {
  Packed packed;
  mlir::MLIRContext context;
  context.disableMultithreading();
  context.loadDialect<BattenDialect, plan::PlanDialect>();
  llvm::Expected<ImportedModel> model = importGraph(context, dir);
  if (!model) {
    packed.error = llvm::toString(model.takeError());
    return packed;
  }
  addStored(*model->module, *model->checkpoint);
  Spec spec = specFor(*model, "graph.mlir", dir);
  packed.error = errorText(addStages(*model->module, spec.stages, spec.lanes));
  if (packed.error != "(no error)")
    return packed;
  packed.error = runPasses(*model->module);
  if (!packed.error.empty())
    return packed;
  if (auto unused = (*model->module)->getAttrOfType<mlir::ArrayAttr>("batten.unused"))
    for (auto name : unused.getAsRange<mlir::StringAttr>())
      packed.unused.push_back(name.getValue().str());
  CheckpointSource source(*model->checkpoint);
  layout::splitByPack(packEntries(*model->module), packed.entries[0], packed.entries[1]);
  for (int i = 0; i < 2; ++i) {
    MemoryBundle memory;
    if (!layout::layoutPack(packed.entries[i], packed.placed[i], packed.error))
      return packed;
    llvm::Expected<WrittenFile> written = writePack(memory, static_cast<batten_pack_index>(i), packed.entries[i],
                                                    packed.placed[i], source, [](uint64_t, uint64_t) {});
    if (!written) {
      packed.error = llvm::toString(written.takeError());
      return packed;
    }
    packed.bytes[i] = std::move(memory.take().front()->bytes);
  }
  return packed;
}

/// Element (row, col) of a packed entry.
float valueAt(const Packed &packed, int pack, size_t index, int64_t row, int64_t col) {
  const layout::PackEntry &entry = packed.entries[pack][index];
  int64_t at =
      entry.layout == layout::Layout::Panels ? ((row / 32) * entry.cols + col) * 32 + row % 32 : row * entry.cols + col;
  float value;
  std::memcpy(&value, packed.bytes[pack].data() + packed.placed[pack].offset[index] + at * 4, 4);
  return value;
}

} // namespace

TEST(ModelPackTest, R48_EveryGoldenPacksAndTwiceTheSame) {
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
                           "sentence-cls-normalize",
                           "sentence-max",
                           "sentence-mean-normalize",
                           "sentence-mean-sqrt-len-dense",
                           "malformed/base",
                           "roberta",
                           "xlm-roberta-cross-encoder",
                           "camembert",
                           "distilbert",
                           "distilbert-sequence-classification",
                           "electra",
                           "electra-sequence-classification",
                           "albert"}) {
    Packed a = pack(goldenPath(name)), b = pack(goldenPath(name));
    EXPECT_EQ(a.error, "") << name;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(a.bytes[i], b.bytes[i]) << name;
      EXPECT_FALSE(a.entries[i].empty()) << name;
    }
  }
}

TEST(ModelPackTest, R5_UnusedTensorsAreListed) {
  EXPECT_EQ(pack(goldenPath("bert")).unused, std::vector<std::string>{});
  EXPECT_EQ(pack(goldenPath("bert-legacy-names")).unused, std::vector<std::string>{"bert.embeddings.position_ids"});
  EXPECT_EQ(pack(goldenPath("bert-masked-lm")).unused.size(), 5u);
}

TEST(ModelPackTest, R6_WeightsOfAllLanesAreStoredOnce) {
  Packed packed = pack(goldenPath("sentence-mean-sqrt-len-dense")); // two lanes with one encoder
  for (int i = 0; i < 2; ++i)
    for (size_t a = 0; a < packed.entries[i].size(); ++a)
      for (size_t b = 0; b < a; ++b)
        EXPECT_FALSE(packed.entries[i][a].expr == packed.entries[i][b].expr &&
                     packed.entries[i][a].layout == packed.entries[i][b].layout)
            << packed.entries[i][a].name << " and " << packed.entries[i][b].name;
}

TEST(ModelPackTest, R17_SharedLayersAreStoredOnce) {
  Packed packed = pack(goldenPath("albert")); // three layers, one set of weights
  ASSERT_EQ(packed.error, "");
  auto count = [&](int64_t rows, int64_t cols) {
    return llvm::count_if(packed.entries[1],
                          [&](const layout::PackEntry &entry) { return entry.rows == rows && entry.cols == cols; });
  };
  EXPECT_EQ(count(3 * 48, 48), 1); // q, k and v
  EXPECT_EQ(count(74, 48), 1);
  EXPECT_EQ(count(48, 74), 1);
  EXPECT_EQ(count(48, 20), 1); // the embeddings' projection
  EXPECT_EQ(count(48, 48), 2); // the attention's projection, the pooler
  EXPECT_EQ(packed.entries[1].size(), 6u);
}

TEST(ModelPackTest, QueryKeyAndValueBecomeOnePanelledWeight) {
  Packed packed = pack(goldenPath("bert-bf16"));
  ASSERT_EQ(packed.error, "");
  auto it = llvm::find_if(packed.entries[1], [](const layout::PackEntry &entry) { return entry.rows == 3 * 48; });
  ASSERT_NE(it, packed.entries[1].end());
  size_t index = static_cast<size_t>(it - packed.entries[1].begin());
  std::unique_ptr<Checkpoint> checkpoint = llvm::cantFail(Checkpoint::open(goldenPath("bert-bf16")));
  int64_t row = 0;
  for (const char *part : {"query", "key", "value"}) {
    const Checkpoint::Tensor *tensor =
        checkpoint->lookup("", std::string("encoder.layer.0.attention.self.") + part + ".weight");
    ASSERT_NE(tensor, nullptr);
    std::vector<uint8_t> raw(tensor->stored->bytes);
    llvm::cantFail(checkpoint->read(*tensor, 0, raw.size(), raw.data()));
    for (size_t i = 0; i < 48 * 48; ++i) {
      uint16_t bits;
      std::memcpy(&bits, raw.data() + 2 * i, 2);
      ASSERT_EQ(valueAt(packed, 1, index, row + static_cast<int64_t>(i / 48), static_cast<int64_t>(i % 48)),
                layout::widenBF16(bits))
          << part << " at " << i;
    }
    row += 48;
  }
}

TEST(ModelPackTest, R58_FaultsOfWeightsAreNamedInTheLastLine) {
  const std::string layer = "encoder.layer.0.";
  const std::pair<const char *, std::vector<std::string>> faults[] = {
      {"integer-weight",
       {"model.safetensors", layer + "attention.self.query.weight", "I32 found", "F32, F16 or BF16 wanted"}},
      {"config-shape-mismatch",
       {"intermediate_size", layer + "intermediate.dense.weight", "[24, 16] wanted", "[20, 16] found"}},
      {"missing-tensor", {layer + "output.dense.weight", "[16, 20]"}},
      {"nan-weight", {layer + "intermediate.dense.weight", "NaN", "row 0, column 7"}},
  };
  for (const auto &[directory, parts] : faults) {
    std::string error = pack(goldenPath(std::string("malformed/") + directory)).error;
    for (const std::string &part : parts)
      EXPECT_NE(lastLine(error).find(part), std::string::npos) << directory << " lacks '" << part << "': " << error;
  }
}

TEST(ModelPackTest, R13_AClassifierWithoutItsPoolerStops) {
  TempDir dir;
  std::filesystem::copy(goldenPath("bert-token-classification"), dir.path(), std::filesystem::copy_options::recursive);
  std::string config = readFile(dir.path("config.json"));
  const std::string from = "BertForTokenClassification";
  dir.write("config.json", config.replace(config.find(from), from.size(), "BertForSequenceClassification"));
  expectParts(lastLine(pack(dir.path()).error), {"bert.pooler.dense.weight", "missing"});
}
