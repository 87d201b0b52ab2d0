// Any bytes are an acceptable input to the reader of plan files: seeded mutations of a sound one, with the digest made right
// again so that they get past it. What is read must be sound IR, and must write again.
#include "compiler/artifact/PlanBytes.h"

#include "batten/format.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/SHA256.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace batten;

namespace {

const char *const kPlan = R"(
  plan.packed @t : !plan.table<4x16xf32> {offset = 4096 : i64, bytes = 256 : i64}
  plan.packed @w.panels : !plan.panels<48x16xf32> {offset = 4096 : i64, bytes = 4096 : i64}
  plan.kernel @embed embed {width = 16, words, offset = 0} {entry = 4096 : i64, entry_bytes = 64 : i64}
  plan.kernel @linear linear {k = 16, n = 48, act = "none"} {entry = 4160 : i64, entry_bytes = 64 : i64, slab_rows = 672 : i64}
  plan.kernel @attn attention {heads = 2, head_width = 8, scale = 0.5 : f32} {entry = 4224 : i64, entry_bytes = 64 : i64}
  plan.kernel @norm layer_norm {width = 16, eps = 1.0e-5 : f32} overwrite {entry = 4288 : i64, entry_bytes = 64 : i64}
  plan.program @p attributes {target = "x86-64-v3",
      image_digest = "1111111111111111111111111111111111111111111111111111111111111111",
      common_digest = "2222222222222222222222222222222222222222222222222222222222222222",
      panels_digest = "3333333333333333333333333333333333333333333333333333333333333333"} {
    %t = plan.weight @t : !plan.table<4x16xf32>
    %w = plan.weight @w.panels : !plan.panels<48x16xf32>
    %x = plan.buffer : !plan.buf<tokens, 16 x f32>
    %q = plan.buffer : !plan.buf<tokens, 48 x f32>
    plan.step "embed" @embed domain(rows) ins(%t : !plan.table<4x16xf32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    plan.step "qkv" @linear domain(panels) ins(%x, %w : !plan.buf<tokens, 16 x f32>, !plan.panels<48x16xf32>)
      outs(%q : !plan.buf<tokens, 48 x f32>)
    plan.step "attn" @attn domain(tasks) ins(%q : !plan.buf<tokens, 48 x f32>) outs(%x : !plan.buf<tokens, 16 x f32>)
    plan.step "norm" @norm domain(rows) inout(%x : !plan.buf<tokens, 16 x f32>)
    plan.output "x" %x : !plan.buf<tokens, 16 x f32>
    plan.layout @b10x1x0 bucket [10, 1, 0] offsets [0, 640]
      {arena = 2560 : i64, lower_bound = 2560 : i64, scratch = 4096 : i64}
  }
)";

plan::LayoutOp onlyLayout(mlir::ModuleOp module) {
  return *(*module.getOps<plan::ProgramOp>().begin()).getOps<plan::LayoutOp>().begin();
}

class PlanBytesTest : public testing::Test {
protected:
  PlanBytesTest() {
    context.loadDialect<BattenDialect, plan::PlanDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(kPlan, mlir::ParserConfig(&context));
    if (module)
      bytes = std::move(*writePlanBytes(onlyLayout(*module)));
  }

  /// Reads bytes; counts diagnostics.
  bool opens(const std::vector<uint8_t> &candidate) {
    unsigned errors = 0;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &) {
      ++errors;
      return mlir::success();
    });
    auto read = readPlanBytes(candidate, "mutated.plan", &context);
    EXPECT_EQ(!read, errors > 0) << "refused without a word, or opened with one";
    if (!read)
      return false;
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*read)));
    EXPECT_TRUE(mlir::succeeded(writePlanBytes(onlyLayout(*read))));
    return true;
  }

  static void seal(std::vector<uint8_t> &file) {
    if (file.size() < sizeof(batten_file_header_t))
      return;
    uint8_t *digest = file.data() + offsetof(batten_file_header_t, digest);
    std::memset(digest, 0, 32);
    auto hash = llvm::SHA256::hash(file);
    std::memcpy(digest, hash.data(), hash.size());
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<uint8_t> bytes;
};

TEST_F(PlanBytesTest, OpensWhatWasWritten) {
  ASSERT_FALSE(bytes.empty());
  EXPECT_TRUE(opens(bytes));
}

TEST_F(PlanBytesTest, RefusesEveryCut) {
  for (size_t size = 0; size < bytes.size(); size += size < 256 ? 1 : 37)
    EXPECT_FALSE(opens({bytes.begin(), bytes.begin() + size})) << size;
}

TEST_F(PlanBytesTest, SurvivesMutations) {
  constexpr unsigned kSeed = 77, kRounds = 4000;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const uint32_t kValues[] = {0, 1, 2, 3, 7, 63, 64, 0x7fffffff, 0x80000000, 0xffffffff};
  unsigned opened = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    std::vector<uint8_t> file = bytes;
    for (unsigned edits = 1 + random() % 3; edits; --edits) {
      size_t at = random() % file.size();
      if (random() % 2) {
        file[at] ^= 1u << random() % 8;
      } else {
        uint32_t value = kValues[random() % std::size(kValues)];
        at = std::min(at & ~size_t(3), file.size() - sizeof(value));
        std::memcpy(file.data() + at, &value, sizeof(value));
      }
    }
    seal(file);
    opened += opens(file);
    if (HasFailure())
      FAIL() << "in round " << round;
  }
  EXPECT_GT(opened, 0u); // names, costs and offsets may be anything
  EXPECT_LT(opened, kRounds);
}

} // namespace
