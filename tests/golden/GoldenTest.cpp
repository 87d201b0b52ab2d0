// Every golden directory in scope, every case and output, on every target that runs here. The error is printed beside
// PyTorch's own f32 noise, because a fault can hide below the tolerance but not below ten times the noise.
#include "tests/golden/Running.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace batten;
using namespace batten::test;

namespace {

/// Largest |got - want|, largest |want|, and largest share of 1e-5 |want| + 5e-6 that a |got - want| takes.
struct Difference {
  double error = 0, magnitude = 0, share = 0;
};

Difference difference(const Rows &got, const Rows &want) {
  Difference out;
  EXPECT_EQ(got.rows, want.rows);
  EXPECT_EQ(got.width, want.width);
  if (got.rows != want.rows || got.width != want.width)
    return {INFINITY, 0, INFINITY};
  for (size_t i = 0; i < want.values.size(); ++i) {
    double error = std::fabs(double(got.values[i]) - double(want.values[i]));
    error = std::isnan(error) ? INFINITY : error;
    double magnitude = std::fabs(double(want.values[i]));
    out.error = std::fmax(out.error, error);
    out.magnitude = std::fmax(out.magnitude, magnitude);
    out.share = std::fmax(out.share, error / (1e-5 * magnitude + 5e-6));
  }
  return out;
}

class GoldenTest : public testing::TestWithParam<std::string> {};

/// Where the model of a golden directory is: beside its cases, but for the real checkpoint, which is too large to keep.
std::string modelPath(const std::string &directory) {
  return directory == "minilm-real" ? BATTEN_TEST_MINILM : goldenPath(directory);
}

/// The lane that gives an output: the first in the bundle's order that names it.
std::map<std::string, uint32_t> laneOfOutput(const TestBundle &bundle) {
  std::map<std::string, uint32_t> out;
  for (uint32_t lane = 0; lane < bundle.laneNames().size(); ++lane) {
    batten_lane_info_t info;
    EXPECT_EQ(batten_bundle_get_lane(bundle.get(), lane, &info), BATTEN_OK);
    for (uint32_t i = 0; i < info.outputCount; ++i) {
      batten_output_info_t output;
      EXPECT_EQ(batten_bundle_get_output(bundle.get(), lane, i, &output), BATTEN_OK);
      out.emplace(std::string(output.name.data, output.name.bytes), lane);
    }
  }
  return out;
}

/// A batch as a lane's stage takes it: without markers where the lane reads none, since its buckets have no room for them.
PackedBatch batchFor(const TestBundle &bundle, uint32_t lane, PackedBatch batch) {
  batten_lane_info_t info;
  EXPECT_EQ(batten_bundle_get_lane(bundle.get(), lane, &info), BATTEN_OK);
  if (!info.readsMarkers) {
    batch.markers.clear();
    batch.cuMarkers = {0};
  }
  return batch;
}

/// The RoBERTa family's optional case: transformers gives a padding id inside a sequence the padding's position and doesn't
/// count it. A packed batch has no padding and every token counts (the fact "positions" says so): FamilyTest.cpp.
bool isOptional(const GoldenCase &entry) { return entry.name == "pad_inside"; }

bool isDecision(const std::string &directory) { return directory.rfind("laya-", 0) == 0; }

TEST_P(GoldenTest, EveryCaseAndOutputIsWithinTheTolerance) {
  llvm::Expected<Golden> golden = loadGolden(GetParam());
  ASSERT_TRUE(bool(golden)) << llvm::toString(golden.takeError());
  ASSERT_FALSE(golden->cases.empty());
  auto blobs = TestBundle::compile(modelPath(GetParam()));
  ASSERT_TRUE(blobs) << "minilm-real needs `tools/minilm.py fetch " BATTEN_TEST_MINILM "`";
  std::vector<std::string> targets = runnableTargets();
  ASSERT_FALSE(targets.empty());
  for (const std::string &target : targets) {
    auto bundle = TestBundle::open(blobs, target);
    ASSERT_TRUE(bundle);
    std::map<std::string, uint32_t> lanes = laneOfOutput(*bundle);
    TestExecutor executor(*bundle, 1);
    std::map<std::string, Difference> worst;
    for (const GoldenCase &entry : golden->cases) {
      if (isOptional(entry))
        continue;
      for (const auto &[name, want] : entry.outputs) {
        ASSERT_TRUE(lanes.count(name)) << "no lane gives " << name;
        Outputs got = executor.run(lanes[name], batchFor(*bundle, lanes[name], entry.batch));
        Difference d = difference(got[name], want);
        // Goldens of decision checkpoints state their tolerance number by number.
        if (isDecision(GetParam()))
          EXPECT_LE(d.share, 1) << target << " case " << entry.name << " " << name;
        else
          EXPECT_LE(d.error, 1e-5 * std::fmax(1.0, d.magnitude)) << target << " case " << entry.name << " " << name;
        worst[name].share = std::fmax(worst[name].share, d.share);
        worst[name].error = std::fmax(worst[name].error, d.error);
        worst[name].magnitude = std::fmax(worst[name].magnitude, d.magnitude);
      }
    }
    for (const auto &[name, d] : worst) {
      if (isDecision(GetParam())) {
        std::printf("%-32s %-10s %-9s error %.2e  %.2f of the tolerance  largest value %.3g\n", GetParam().c_str(),
                    target.c_str(), name.c_str(), d.error, d.share, d.magnitude);
        continue;
      }
      double noise = golden->noise.count(name) ? golden->noise[name] : 0;
      std::printf("%-32s %-10s %-9s error %.2e  torch f32 noise %.2e  (%.1f times)  largest value %.3g\n",
                  GetParam().c_str(), target.c_str(), name.c_str(), d.error, noise, noise > 0 ? d.error / noise : 0,
                  d.magnitude);
    }
  }
}

/// `repeat` holds one sequence first and last: the same bits.
class RepeatTest : public GoldenTest {};
TEST_P(RepeatTest, TheSameSequenceGivesTheSameBits) {
  llvm::Expected<Golden> golden = loadGolden(GetParam());
  ASSERT_TRUE(bool(golden)) << llvm::toString(golden.takeError());
  auto blobs = TestBundle::compile(goldenPath(GetParam()));
  ASSERT_TRUE(blobs);
  bool found = false;
  for (const std::string &target : runnableTargets()) {
    auto bundle = TestBundle::open(blobs, target);
    ASSERT_TRUE(bundle);
    TestExecutor executor(*bundle, 1);
    for (const GoldenCase &entry : golden->cases) {
      if (entry.name != "repeat")
        continue;
      found = true;
      int64_t length = entry.batch.cu[1], last = entry.batch.seqs() - 1;
      for (uint32_t lane = 0; lane < bundle->laneNames().size(); ++lane)
        for (const auto &[name, rows] : executor.run(lane, entry.batch)) {
          bool tokens = rows.rows == entry.batch.cu.back();
          int64_t first = tokens ? entry.batch.cu[last] : last, count = tokens ? length : 1;
          EXPECT_EQ(0, std::memcmp(rows.values.data(), rows.values.data() + first * rows.width,
                                   count * rows.width * sizeof(float)))
              << target << " " << name;
        }
    }
  }
  EXPECT_TRUE(found);
}

/// Rows of `together` that belong to the sequences of `single` and `long` have their bits.
class TogetherTest : public GoldenTest {};
TEST_P(TogetherTest, ASequenceGivesItsBitsAmidOthers) {
  llvm::Expected<Golden> golden = loadGolden(GetParam());
  ASSERT_TRUE(bool(golden)) << llvm::toString(golden.takeError());
  std::map<std::string, const PackedBatch *> batches;
  for (const GoldenCase &entry : golden->cases)
    batches[entry.name] = &entry.batch;
  ASSERT_TRUE(batches.count("together") && batches.count("single") && batches.count("long"));
  const PackedBatch &together = *batches["together"];
  auto blobs = TestBundle::compile(goldenPath(GetParam()));
  ASSERT_TRUE(blobs);
  for (const std::string &target : runnableTargets()) {
    auto bundle = TestBundle::open(blobs, target);
    ASSERT_TRUE(bundle);
    TestExecutor executor(*bundle, 1);
    for (const char *name : {"single", "long"}) {
      const PackedBatch &alone = *batches[name];
      unsigned found = 0;
      for (uint32_t seq = 0; seq < together.seqs(); ++seq) {
        PackedBatch one;
        one.append(together, seq);
        if (one.ids != alone.ids || one.markers != alone.markers || one.seqTypes != alone.seqTypes)
          continue;
        ++found;
        for (uint32_t lane = 0; lane < bundle->laneNames().size(); ++lane) {
          Outputs all = executor.run(lane, batchFor(*bundle, lane, together));
          for (const auto &[output, rows] : executor.run(lane, batchFor(*bundle, lane, alone))) {
            auto [first, last] = together.rowsOf(rows.kind, seq);
            ASSERT_EQ(last - first, rows.rows) << name << " " << output;
            EXPECT_EQ(0, std::memcmp(rows.values.data(), all[output].values.data() + first * rows.width,
                                     rows.values.size() * sizeof(float)))
                << target << " " << name << " " << output;
          }
        }
      }
      EXPECT_GE(found, 1u) << name;
    }
  }
}

std::string testName(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  for (char &c : name)
    c = c == '-' ? '_' : c;
  return name;
}

const auto kBert = testing::Values("bert", "bert-bf16", "bert-f16", "bert-legacy-names", "bert-masked-lm",
                                   "bert-module-prefix", "bert-no-pooler", "bert-sequence-classification",
                                   "bert-sharded", "bert-token-classification", "sentence-cls-normalize",
                                   "sentence-max", "sentence-mean-normalize", "sentence-mean-sqrt-len-dense");

const auto kRoberta = testing::Values("roberta", "xlm-roberta-cross-encoder", "camembert");
const auto kDistilBert = testing::Values("distilbert", "distilbert-sequence-classification");
const auto kElectra = testing::Values("electra", "electra-sequence-classification");
const auto kAlbert = testing::Values("albert");
const auto kModernBert =
    testing::Values("modernbert", "modernbert-old-config", "modernbert-sequence-classification-cls",
                    "modernbert-sequence-classification-mean", "modernbert-token-classification");
const auto kRotary = testing::Values("nomic-bert", "gte", "eurobert", "jina-embeddings-v3");
const auto kDecision = testing::Values("laya-tiny-a", "laya-tiny-b", "laya-tiny-c");

INSTANTIATE_TEST_SUITE_P(Bert, GoldenTest, kBert, testName);
INSTANTIATE_TEST_SUITE_P(Roberta, GoldenTest, kRoberta, testName);
INSTANTIATE_TEST_SUITE_P(DistilBert, GoldenTest, kDistilBert, testName);
INSTANTIATE_TEST_SUITE_P(Electra, GoldenTest, kElectra, testName);
INSTANTIATE_TEST_SUITE_P(Albert, GoldenTest, kAlbert, testName);
INSTANTIATE_TEST_SUITE_P(ModernBert, GoldenTest, kModernBert, testName);
INSTANTIATE_TEST_SUITE_P(Rotary, GoldenTest, kRotary, testName);
INSTANTIATE_TEST_SUITE_P(Decision, GoldenTest, kDecision, testName);
INSTANTIATE_TEST_SUITE_P(Real, GoldenTest, testing::Values("minilm-real"), testName);
INSTANTIATE_TEST_SUITE_P(Bert, RepeatTest, kBert, testName);
INSTANTIATE_TEST_SUITE_P(Roberta, RepeatTest, kRoberta, testName);
INSTANTIATE_TEST_SUITE_P(DistilBert, RepeatTest, kDistilBert, testName);
INSTANTIATE_TEST_SUITE_P(Electra, RepeatTest, kElectra, testName);
INSTANTIATE_TEST_SUITE_P(Albert, RepeatTest, kAlbert, testName);
INSTANTIATE_TEST_SUITE_P(ModernBert, RepeatTest, kModernBert, testName);
INSTANTIATE_TEST_SUITE_P(Rotary, RepeatTest, kRotary, testName);
INSTANTIATE_TEST_SUITE_P(Decision, TogetherTest, kDecision, testName);

} // namespace
