// The pipelines on imported models: what lit can't hold, since it starts at a directory. Each golden directory in scope is
// imported, planned and verified; one of them goes on to code, packs and bytes.
#include "compiler/artifact/PackEntries.h"
#include "compiler/artifact/PlanBytes.h"
#include "compiler/graph/Import.h"
#include "compiler/passes/EmitKernels.h"
#include "compiler/passes/Pipeline.h"
#include "compiler/passes/PlanKeys.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

using namespace batten;

namespace {

class PlanTest : public testing::Test {
protected:
  PlanTest() { context.loadDialect<BattenDialect, plan::PlanDialect>(); }

  /// The golden as programs with layouts; verify-plan has passed.
  mlir::OwningOpRef<mlir::ModuleOp> plan(const std::string &golden) {
    llvm::Expected<ImportedModel> model = importGraph(context, BATTEN_TEST_DATA "/goldens/" + golden);
    if (!model) {
      ADD_FAILURE() << golden << ": " << llvm::toString(model.takeError());
      return {};
    }
    addStored(*model->module, *model->checkpoint);
    Spec spec = specFor(*model, "graph.mlir", "model");
    if (llvm::Error error = addStages(*model->module, spec.stages, spec.lanes)) {
      ADD_FAILURE() << golden << ": " << llvm::toString(std::move(error));
      return {};
    }
    mlir::PassManager manager(&context);
    buildGraphPipeline(manager);
    buildPlanPipeline(manager);
    EXPECT_TRUE(mlir::succeeded(manager.run(*model->module))) << golden;
    return std::move(model->module);
  }

  mlir::MLIRContext context;
};

std::vector<std::string> goldens() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(BATTEN_TEST_DATA "/goldens")) {
    std::string name = entry.path().filename().string();
    for (llvm::StringRef family :
         {"albert", "bert", "camembert", "distilbert", "electra", "roberta", "sentence-", "xlm-roberta"})
      if (llvm::StringRef(name).starts_with(family))
        names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Layers have seven steps: qkv, attention, projection and norm, up, down and norm; embeddings two. Whatever is added after
// the last layer comes on top. A pattern that stops to match shows here.
TEST_F(PlanTest, EncodersFuseToSevenStepsALayer) {
  auto module = plan("bert");
  ASSERT_TRUE(module);
  auto program = mlir::SymbolTable(*module).lookup<plan::ProgramOp>("encode");
  ASSERT_TRUE(program);
  std::vector<std::string> labels;
  int64_t layers = 0;
  for (auto step : program.getOps<plan::StepOp>()) {
    labels.push_back(step.getLabel().str());
    layers += step.getDomain() == WorkDomain::tasks;
  }
  ASSERT_GE(layers, 1);
  ASSERT_GE(labels.size(), static_cast<size_t>(2 + 7 * layers));
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::string prefix = "l" + std::to_string(layer) + ".";
    EXPECT_EQ(labels[2 + 7 * layer], prefix + "qkv");
    for (int64_t at = 0; at < 7; ++at)
      EXPECT_TRUE(llvm::StringRef(labels[2 + 7 * layer + at]).starts_with(prefix)) << labels[2 + 7 * layer + at];
  }
  EXPECT_FALSE(llvm::StringRef(labels[1]).starts_with("l0.")) << labels[1];
}

// Other families fuse as well: embeddings two steps and their projection one, then layers of seven; a pooler or a head with
// a dense layer is one row's pooling and one step a linear layer.
TEST_F(PlanTest, FamiliesFuseAlike) {
  for (auto [golden, lane, steps] :
       {std::tuple("distilbert", "encode", 2 + 2 * 7), std::tuple("roberta", "encode", 2 + 2 * 7 + 2),
        std::tuple("electra", "encode", 2 + 1 + 2 * 7), std::tuple("albert", "encode", 2 + 1 + 3 * 7 + 2),
        std::tuple("xlm-roberta-cross-encoder", "classify", 2 + 2 * 7 + 3),
        std::tuple("distilbert-sequence-classification", "classify", 2 + 2 * 7 + 3),
        std::tuple("electra-sequence-classification", "classify", 2 + 1 + 2 * 7 + 3)}) {
    auto module = plan(golden);
    ASSERT_TRUE(module);
    auto program = mlir::SymbolTable(*module).lookup<plan::ProgramOp>(lane);
    ASSERT_TRUE(program);
    auto all = program.getOps<plan::StepOp>();
    EXPECT_EQ(std::distance(all.begin(), all.end()), steps) << golden;
  }
}

// On every model in scope the arena is as small as it can be, and the packs can be laid out.
TEST_F(PlanTest, EveryGoldenMeetsTheLowerBound) {
  ASSERT_GE(goldens().size(), 22u);
  for (const std::string &golden : goldens()) {
    SCOPED_TRACE(golden);
    auto module = plan(golden);
    ASSERT_TRUE(module);
    size_t layouts = 0;
    for (auto program : module->getOps<plan::ProgramOp>())
      for (auto layout : program.getOps<plan::LayoutOp>()) {
        ++layouts;
        EXPECT_EQ(layout.getArena(), layout.getLowerBound()) << program.getSymName().str();
      }
    EXPECT_GE(layouts, 1u);
    std::vector<layout::PackEntry> common, panels;
    layout::splitByPack(packEntries(*module), common, panels);
    layout::PackLayout placed;
    std::string error;
    EXPECT_TRUE(layout::layoutPack(common, placed, error)) << error;
    EXPECT_TRUE(layout::layoutPack(panels, placed, error)) << error;
  }
}

// Work and traffic are counted twice, by ops and by kernel keys: both say the same.
TEST_F(PlanTest, OpsCountWorkAsKernelsDo) {
  for (const std::string golden : {"bert", "sentence-mean-sqrt-len-dense", "bert-sequence-classification"}) {
    auto module = plan(golden);
    ASSERT_TRUE(module);
    mlir::SymbolTable symbols(*module);
    for (auto program : module->getOps<plan::ProgramOp>())
      for (auto step : program.getOps<plan::StepOp>()) {
        llvm::Expected<KernelKey> key = kernelKeyOf(step, symbols);
        ASSERT_TRUE(!!key);
        KernelCost cost = kernelCost(*key);
        EXPECT_EQ(step.getFlopsPerRow(), cost.flopsPerRow) << step.getLabel().str();
        EXPECT_EQ(step.getFlopsPerPair(), cost.flopsPerPair) << step.getLabel().str();
        EXPECT_EQ(step.getBytesPerRow(), cost.bytesPerRow) << step.getLabel().str();
      }
  }
}

// Weight expressions arrive at the packer with their shapes: q, k and v below each other, biases end to end.
TEST_F(PlanTest, PackEntriesKeepExpressions) {
  auto module = plan("bert");
  ASSERT_TRUE(module);
  bool matrix = false, vector = false;
  for (const layout::PackEntry &entry : packEntries(*module)) {
    EXPECT_EQ(entry.rows, entry.expr.rows) << entry.name;
    EXPECT_EQ(entry.cols, entry.expr.cols) << entry.name;
    if (entry.name == "l0.qkv.panels") {
      matrix = true;
      ASSERT_EQ(entry.expr.kind, layout::WeightExpr::Kind::Concat);
      ASSERT_EQ(entry.expr.operands.size(), 3u);
      EXPECT_EQ(entry.rows, 3 * entry.cols);
      EXPECT_EQ(entry.expr.operands[1].rows, entry.cols);
      EXPECT_NE(entry.expr.operands[1].tensor.find("key.weight"), std::string::npos) << entry.expr.operands[1].tensor;
    }
    if (entry.name == "l0.qkv.vector") {
      vector = true;
      EXPECT_EQ(entry.rows, 1);
      EXPECT_EQ(entry.cols, 3 * entry.expr.operands[0].cols);
      EXPECT_EQ(entry.expr.operands[0].rows, 1);
    }
  }
  EXPECT_TRUE(matrix);
  EXPECT_TRUE(vector);
}

// Plan, code, packs, bytes, and back: what a compile does with one target.
TEST_F(PlanTest, GoesAllTheWayToBytes) {
  auto module = plan("sentence-mean-sqrt-len-dense");
  ASSERT_TRUE(module);
  std::vector<layout::PackEntry> common, panels;
  layout::splitByPack(packEntries(*module), common, panels);
  std::string error;
  for (const auto &entries : {common, panels}) {
    layout::PackLayout placed;
    ASSERT_TRUE(layout::layoutPack(entries, placed, error)) << error;
    setPackOffsets(*module, entries, placed);
  }
  setPackDigests(*module, std::string(64, 'a'), std::string(64, 'b'));
  llvm::Expected<Target> target = lookupTarget("x86-64-v3");
  ASSERT_TRUE(!!target);
  mlir::FailureOr<llvm::SmallVector<KernelKey>> keys = planKernelKeys(*module);
  ASSERT_TRUE(mlir::succeeded(keys));
  llvm::Expected<KernelImage> image = makeKernelImage(*keys, *target);
  ASSERT_TRUE(!!image);
  setKernelEntries(*module, *target, *image);
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*module)));
  size_t plans = 0;
  for (auto program : module->getOps<plan::ProgramOp>())
    for (auto layout : program.getOps<plan::LayoutOp>()) {
      mlir::FailureOr<std::vector<uint8_t>> bytes = writePlanBytes(layout);
      ASSERT_TRUE(mlir::succeeded(bytes));
      auto read = readPlanBytes(*bytes, "test.plan", &context);
      ASSERT_TRUE(read);
      auto again = writePlanBytes(*(*read->getOps<plan::ProgramOp>().begin()).getOps<plan::LayoutOp>().begin());
      ASSERT_TRUE(mlir::succeeded(again));
      EXPECT_EQ(*again, *bytes);
      ++plans;
    }
  EXPECT_GE(plans, 2u);
}

} // namespace
