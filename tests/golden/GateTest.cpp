// The compiler's side of a gate: when it is asked, what is refused, and that a refusal leaves what was there. What is
// measured is tested in tests/tools.
#include "tests/TempDir.h"
#include "tests/golden/Running.h"

#include <filesystem>
#include <gtest/gtest.h>

using namespace batten;
using namespace batten::test;
namespace fs = std::filesystem;

namespace {

class GateTest : public ::testing::Test {
protected:
  GateTest() {
    request.input = goldenPath("bert");
    request.output = dir.path("x.batten");
    request.targets = {knownTargets().front()};
  }
  std::string refusal() {
    llvm::Expected<CompileSummary> summary = compile(request);
    return summary ? "(none)" : llvm::toString(summary.takeError());
  }
  std::string manifest() { return readFile(dir.path("x.batten/manifest.bin")); }

  TempDir dir;
  CompileRequest request;
};

} // namespace

TEST_F(GateTest, IsNotAskedWithoutAGate) {
  bool asked = false;
  request.measure = [&](const std::string &, const GateSpec &) -> llvm::Expected<CompileNotes> {
    asked = true;
    return CompileNotes{};
  };
  EXPECT_EQ(refusal(), "(none)");
  EXPECT_FALSE(asked);
}

TEST_F(GateTest, SeesAWholeBundleAndItsNotesAreKept) {
  request.gate.batches = {"b"};
  request.gate.maxAbs = 0.5;
  request.measure = [&](const std::string &directory, const GateSpec &gate) -> llvm::Expected<CompileNotes> {
    EXPECT_NE(directory, request.output);
    EXPECT_TRUE(fs::exists(directory + "/manifest.bin"));
    EXPECT_EQ(gate.batches, request.gate.batches);
    EXPECT_EQ(gate.maxAbs, 0.5);
    return CompileNotes{{"measured", "like this"}};
  };
  EXPECT_EQ(refusal(), "(none)");
  EXPECT_NE(manifest().find("like this"), std::string::npos);
  const std::string once = manifest();
  EXPECT_EQ(refusal(), "(none)") << "the same again, over the first";
  EXPECT_EQ(manifest(), once);
}

TEST_F(GateTest, ARefusalLeavesTheOldBundle) {
  ASSERT_EQ(refusal(), "(none)");
  const std::string before = manifest();
  request.gate.batches = {"b"};
  request.measure = [](const std::string &, const GateSpec &) -> llvm::Expected<CompileNotes> {
    return llvm::createStringError("too far");
  };
  EXPECT_EQ(refusal(), "too far");
  EXPECT_EQ(manifest(), before);
  fs::remove_all(request.output);
  EXPECT_EQ(refusal(), "too far");
  EXPECT_FALSE(fs::exists(request.output));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path("")), fs::directory_iterator()), 0)
      << "nothing is left behind";
}

TEST_F(GateTest, CannotPassUnmeasured) {
  request.gate.batches = {"b"};
  EXPECT_EQ(refusal(), "gate: this caller measures none, so the bundle can't pass it");
  request.gate.batches.clear();
  request.gate.minCosine = 0.5;
  request.measure = [](const std::string &, const GateSpec &) -> llvm::Expected<CompileNotes> {
    return CompileNotes{};
  };
  EXPECT_EQ(refusal(), "gate: no batch to measure with: a path as batch in [gate], or --batch, wanted");
  EXPECT_FALSE(fs::exists(request.output));
}
