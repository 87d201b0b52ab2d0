// Storage and math of whole models: storage of a checkpoint's own type gives the bits of f32 at half the size; f16 and bf16 of an
// f32 checkpoint give those of the rounded numbers; i8 stays close. Outputs are compared with those of the f32 bundle.
#include "tests/ErrorText.h"
#include "tests/golden/Cases.h"
#include "tests/golden/RandomModel.h"
#include "tests/golden/Running.h"

#include "batten/format.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace batten;
using namespace batten::test;

namespace {

using Blobs = std::shared_ptr<const std::vector<CompiledBlob>>;

size_t bytesOf(const Blobs &blobs, llvm::StringRef pack) {
  size_t bytes = 0;
  for (const CompiledBlob &blob : *blobs)
    if (llvm::StringRef(blob.path()).starts_with(("packs/" + pack).str()))
      bytes += blob.size();
  return bytes;
}

/// Compiles for the most demanding target that runs here.
Blobs compileHere(const std::string &directory, const char *weights, const char *math) {
  CompileRequest request;
  request.input = goldenPath(directory);
  request.weights = weights;
  request.math = math;
  request.targets = {runnableTargets(math).back()};
  auto blobs = compileToMemory(request);
  if (blobs)
    return std::make_shared<const std::vector<CompiledBlob>>(std::move(*blobs));
  ADD_FAILURE() << llvm::toString(blobs.takeError());
  return nullptr;
}

/// Calls compare(output, a, b) for every output of a lane of two bundles over a golden's cases.
void compareBundles(const Blobs &a, const Blobs &b, const std::string &targetA, const std::string &targetB,
                    const Golden &golden, const std::string &lane,
                    llvm::function_ref<void(const std::string &, const Rows &, const Rows &)> compare) {
  auto first = TestBundle::open(a, targetA), second = TestBundle::open(b, targetB);
  ASSERT_TRUE(first && second);
  TestExecutor runFirst(*first, 1), runSecond(*second, 2);
  for (const GoldenCase &test : golden.cases) {
    Outputs want = runFirst.run(first->lane(lane), test.batch), got = runSecond.run(second->lane(lane), test.batch);
    for (const auto &[name, rows] : want)
      compare(name, rows, got[name]);
  }
}

double leastCosine(const Rows &a, const Rows &b) {
  double least = 1;
  for (int64_t row = 0; row < a.rows; ++row) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = row * a.width; i < (row + 1) * a.width; ++i) {
      ab += double(a.values[i]) * b.values[i];
      aa += double(a.values[i]) * a.values[i];
      bb += double(b.values[i]) * b.values[i];
    }
    if (aa > 0 && bb > 0)
      least = std::min(least, ab / std::sqrt(aa * bb));
  }
  return least;
}

} // namespace

TEST(PrecisionTest, StorageOfTheCheckpointsTypeChangesNoBit) {
  for (auto [directory, weights] : {std::pair("bert-bf16", "bf16"), {"bert-f16", "f16"}}) {
    llvm::Expected<Golden> golden = loadGolden(directory);
    ASSERT_TRUE(bool(golden)) << llvm::toString(golden.takeError());
    Blobs plain = TestBundle::compile(goldenPath(directory));
    Blobs stored = TestBundle::compile(goldenPath(directory), "", weights);
    ASSERT_TRUE(plain && stored);
    EXPECT_LT(bytesOf(stored, "panels"), bytesOf(plain, "panels") * 0.52);
    EXPECT_LT(bytesOf(stored, "common"), bytesOf(plain, "common") * 0.7); // norms and biases stay f32
    int compared = 0;
    for (const std::string &target : runnableTargets())
      compareBundles(plain, stored, target, target, *golden, "encode",
                     [&](const std::string &name, const Rows &want, const Rows &got) {
                       ++compared;
                       ASSERT_EQ(want.values.size(), got.values.size());
                       EXPECT_EQ(std::memcmp(want.values.data(), got.values.data(), want.values.size() * 4), 0)
                           << directory << " " << target << " " << name;
                     });
    EXPECT_GT(compared, 0);
  }
}

TEST(PrecisionTest, NarrowNumbersStayClose) {
  struct Choice {
    const char *weights, *math;
    double cosine;
  };
  std::vector<Choice> choices{{"bf16", "f32", 0.9995}, {"f16", "f32", 0.999999}, {"i8", "i8", 0.995}};
  if (!runnableTargets("bf16").empty())
    choices.push_back({"bf16", "bf16", 0.999});
  for (auto [directory, lane] : {std::pair("sentence-mean-normalize", "embed"), {"laya-tiny-a", "decide"}}) {
    llvm::Expected<Golden> golden = loadGolden(directory);
    ASSERT_TRUE(bool(golden)) << llvm::toString(golden.takeError());
    Blobs plain = compileHere(directory, "f32", "f32");
    for (const Choice &choice : choices) {
      Blobs narrow = compileHere(directory, choice.weights, choice.math);
      ASSERT_TRUE(plain && narrow);
      double least = 1;
      bool differs = false;
      compareBundles(plain, narrow, runnableTargets().back(), runnableTargets(choice.math).back(), *golden, lane,
                     [&](const std::string &, const Rows &want, const Rows &got) {
                       differs |= want.values != got.values;
                       if (want.width >= 16) // a cosine of one or two numbers says nothing
                         least = std::min(least, leastCosine(want, got));
                       for (size_t i = 0; i < want.values.size() && want.width < 16; ++i)
                         EXPECT_NEAR(got.values[i], want.values[i], 0.25 + 0.1 * std::fabs(want.values[i]));
                     });
      EXPECT_TRUE(differs) << "the precision was not used";
      EXPECT_GE(least, choice.cosine) << directory << " " << choice.weights << "/" << choice.math;
      std::printf("%s, weights %s, math %s: least cosine %.6f\n", directory, choice.weights, choice.math, least);
    }
  }
}

TEST(PrecisionTest, BundlesSayTheirPrecision) {
  Blobs blobs = TestBundle::compile(goldenPath("sentence-max"), "", "", "i8");
  auto bundle = TestBundle::open(blobs, "x86-64-v3");
  ASSERT_TRUE(bundle);
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle->get(), &info);
  EXPECT_EQ(info.targetCount, 3u); // all that gain by i8
  for (uint32_t i = 0; i < info.targetCount; ++i) {
    batten_target_info_t target;
    ASSERT_EQ(batten_bundle_get_target(bundle->get(), i, &target), BATTEN_OK);
    EXPECT_EQ(target.weights, BATTEN_ELEM_I8);
    EXPECT_EQ(target.math, BATTEN_ELEM_I8);
  }
}

TEST(PrecisionTest, RefusesWhatCannotBe) {
  auto refusal = [](auto change) {
    CompileRequest request;
    request.input = goldenPath("sentence-max");
    change(request);
    auto blobs = compileToMemory(request);
    return blobs ? "compiled" : llvm::toString(blobs.takeError());
  };
  expectParts(refusal([](CompileRequest &r) { r.math = "bf16", r.targets = {"x86-64-v4"}; }),
              {"--target: target 'x86-64-v4': math bf16 needs avx512_bf16", "x86-64-v4+avx512_bf16"});
  expectParts(refusal([](CompileRequest &r) { r.math = "bf16", r.weights = "f16"; }),
              {"math \"bf16\" does not take weights \"f16\", \"bf16\" wanted"});
  expectParts(refusal([](CompileRequest &r) { r.weights = "i8", r.math = "f32"; }),
              {"math \"f32\" does not take weights \"i8\", \"f32\", \"f16\" or \"bf16\" wanted"});
  expectParts(refusal([](CompileRequest &r) { r.weights = "int4"; }), {"weights \"int4\" is unknown"});
}

// What f16 can't hold is named with its tensor and place; nothing becomes an infinity.
TEST(PrecisionTest, RefusesWeightsBeyondF16) {
  TempDir dir;
  RandomBert model;
  model.words = 1e6;
  CompileRequest request;
  request.input = model.write(dir, "large");
  request.weights = "f16";
  auto blobs = compileToMemory(request);
  ASSERT_FALSE(bool(blobs));
  expectParts(llvm::toString(blobs.takeError()), {" as f16 is not finite at row ", ", column "});
  request.weights = "bf16";
  EXPECT_TRUE(bool(compileToMemory(request)));
}
