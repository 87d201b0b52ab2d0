// Every rule of manifest, packs and plans has a bundle here that breaks it and nothing else: digests are right, so that the
// structural verifier meets the fault and must name file, section, record, value and bound.
#include "DecisionModel.h"

#include "Cpu.h"

#include <gtest/gtest.h>

#include <functional>

namespace batten::test {
namespace {

using Refs = std::vector<batten_plan_ref_t>;

struct Case {
  const char *name;
  std::function<void(BundleSpec &)> bend;
  const char *where;
  const char *section;
  uint64_t index, found, limit;
  batten_status_t status = BATTEN_CORRUPT;
};

/// Where a figure is the size of the strings, which says nothing.
constexpr uint64_t kAny = 0x5EEDED;

void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

std::string caseName(const ::testing::TestParamInfo<Case> &info) { return info.param.name; }

class VerifierTest : public ::testing::TestWithParam<Case> {};

TEST_P(VerifierTest, Refuses) {
  const Case &c = GetParam();
  BundleSpec spec = modelSpec();
  c.bend(spec);
  const Blobs blobs(serialize(spec));
  batten_error_t error;
  const BundlePtr bundle = openBlobs(blobs, &error);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(error.status, c.status) << error.message;
  EXPECT_STREQ(error.where, c.where) << error.message;
  EXPECT_STREQ(error.section, c.section) << error.message;
  EXPECT_EQ(error.index, c.index) << error.message;
  EXPECT_EQ(error.found, c.found) << error.message;
  if (c.limit != kAny) {
    EXPECT_EQ(error.limit, c.limit) << error.message;
  }
  EXPECT_TRUE(std::string(error.message).starts_with(std::string(c.where) + ": ")) << error.message;
}

constexpr const char *kManifest = "manifest.bin", *kPack = "packs/common.pack", *kPlan = "plans/base/embed-8x4x0.plan";

/// Changes the manifest's own records once files and plans are known.
std::function<void(BundleSpec &)> late(std::function<void(BundleSpec &, Refs &)> bend) {
  return [bend](BundleSpec &spec) { spec.bend = bend; };
}
/// Changes the plan of lane embed, bucket 8x4.
std::function<void(BundleSpec &)> plan(std::function<void(PlanSpec &)> bend) {
  return [bend](BundleSpec &spec) { bend(spec.plans[planOf(spec, 0, 0)]); };
}

// FILES of the model: 0, 1 packs, 2 image, 3 to 8 plans. Buckets 8x4, 32x8, 200x64.
const Case kManifestCases[] = {
    {"ProducerAbi", [](BundleSpec &s) { s.producer.kernelAbi = 2; }, kManifest, "PRODUCER", 0, 2, 1, BATTEN_VERSION},
    {"ProducerString", [](BundleSpec &s) { s.producer.name = {0xFFFFFFFF, 2}; }, kManifest, "PRODUCER", 0, 0xFFFFFFFF, kAny},
    {"ProducerReserved", [](BundleSpec &s) { s.producer.reserved = 1; }, kManifest, "PRODUCER", 0, 1, 0},
    {"FileKind", late([](BundleSpec &s, Refs &) { s.files[4].kind = 5; }), kManifest, "FILES", 4, 5, 4},
    {"FileKindManifest", late([](BundleSpec &s, Refs &) { s.files[4].kind = 1; }), kManifest, "FILES", 4, 1, 4},
    {"FileReserved", late([](BundleSpec &s, Refs &) { s.files[4].reserved = 9; }), kManifest, "FILES", 4, 9, 0},
    {"FilePathTwice", late([](BundleSpec &s, Refs &) { s.files[5].path = s.files[4].path; }), kManifest, "FILES", 5, 4, 0},
    {"FilePathUp", late([](BundleSpec &s, Refs &) { s.files[3].path = s.strings.add("../x"); }), kManifest, "FILES", 3, 4, 240},
    {"FilePathUpInside", late([](BundleSpec &s, Refs &) { s.files[3].path = s.strings.add("a/../b"); }), kManifest, "FILES", 3, 6, 240},
    {"FilePathAbsolute", late([](BundleSpec &s, Refs &) { s.files[3].path = s.strings.add("/etc/passwd"); }), kManifest, "FILES", 3, 11, 240},
    {"FilePathFlat", late([](BundleSpec &s, Refs &) { s.files[3].path = s.strings.add("flat"); }), kManifest, "FILES", 3, 4, 240},
    {"FilePathDeep", late([](BundleSpec &s, Refs &) { s.files[3].path = s.strings.add("a/b/c/d"); }), kManifest, "FILES", 3, 7, 240},
    {"FilePathEmptyPart", late([](BundleSpec &s, Refs &) { s.files[3].path = s.strings.add("a//b"); }), kManifest, "FILES", 3, 4, 240},
    {"FilePathDot", late([](BundleSpec &s, Refs &) { s.files[3].path = s.strings.add("a/."); }), kManifest, "FILES", 3, 3, 240},
    {"FilePathControl", late([](BundleSpec &s, Refs &) { s.files[3].path = s.strings.add("a/b\n"); }), kManifest, "FILES", 3, 4, 240},
    {"FilePathLong", late([](BundleSpec &s, Refs &) { s.files[3].path = s.strings.add("a/" + std::string(239, 'b')); }), kManifest, "FILES", 3, 241, 240},
    {"FileEmpty", late([](BundleSpec &s, Refs &) { s.files[3].bytes = 0; }), kManifest, "FILES", 3, 0, INT64_MAX},
    {"FileHuge", late([](BundleSpec &s, Refs &) { s.files[3].bytes = UINT64_MAX; }), kManifest, "FILES", 3, UINT64_MAX, INT64_MAX},
    {"FileHeadOdd", late([](BundleSpec &s, Refs &) { s.files[0].headBytes = 4095; s.files[0].bytes = 9000; }), kManifest, "FILES", 0, 4095, 9000},
    {"FileHeadPast", late([](BundleSpec &s, Refs &) { s.files[0].headBytes = 1 << 30; s.files[0].bytes = 9000; }), kManifest, "FILES", 0, 1 << 30, 9000},
    {"FileHeadOfPlan", late([](BundleSpec &s, Refs &) { s.files[3].headBytes = 4096; s.files[3].bytes = 9000; }), kManifest, "FILES", 3, 4096, 9000},
    {"TargetArch", [](BundleSpec &s) { s.targets[0].arch = 3; }, kManifest, "TARGETS", 0, 3, 2},
    {"TargetWeights", [](BundleSpec &s) { s.targets[0].weights = 9; }, kManifest, "TARGETS", 0, 9, 4},
    {"TargetMath", [](BundleSpec &s) { s.targets[0].math = 0; }, kManifest, "TARGETS", 0, 0, 4},
    {"TargetImageIndex", [](BundleSpec &s) { s.targets[0].image = 99; }, kManifest, "TARGETS", 0, 99, 9},
    {"TargetImageKind", [](BundleSpec &s) { s.targets[0].image = 0; }, kManifest, "TARGETS", 0, 0, 9},
    {"TargetPackKind", [](BundleSpec &s) { s.targets[0].panelsPack = 2; }, kManifest, "TARGETS", 0, 2, 9},
    {"TargetSamePack", [](BundleSpec &s) { s.targets[0].panelsPack = 0; }, kManifest, "TARGETS", 0, 0, 0},
    {"TargetCodeEmpty", late([](BundleSpec &s, Refs &) { s.targets[0].codeBytes = 0; s.files[2].bytes = 8192; }), kManifest, "TARGETS", 0, 0, 8192},
    {"TargetCodePast", late([](BundleSpec &s, Refs &) { s.targets[0].codeBytes = 8193; s.files[2].bytes = 8192; }), kManifest, "TARGETS", 0, 0, 8192},
    {"TargetCodeWraps", late([](BundleSpec &s, Refs &) { s.targets[0].codeOffset = 4096; s.targets[0].codeBytes = UINT64_MAX - 4095; s.files[2].bytes = 8192; }), kManifest, "TARGETS", 0, 4096, 8192},
    {"TargetCodeUnaligned", late([](BundleSpec &s, Refs &) { s.targets[0].codeOffset = 64; s.files[2].bytes = 1 << 20; }), kManifest, "TARGETS", 0, 64, 1 << 20},
    {"BucketNoTokens", [](BundleSpec &s) { s.buckets[0].tokens = 0; }, kManifest, "BUCKETS", 0, 4, INT32_MAX},
    {"BucketNoSeqs", [](BundleSpec &s) { s.buckets[1].seqs = 0; }, kManifest, "BUCKETS", 1, 32, INT32_MAX},
    {"BucketTooLarge", [](BundleSpec &s) { s.buckets[2].markers = 1u << 31; }, kManifest, "BUCKETS", 2, 1u << 31, INT32_MAX},
    {"BucketReserved", [](BundleSpec &s) { s.buckets[2].reserved = 5; }, kManifest, "BUCKETS", 2, 5, 0},
    {"BucketOrder", [](BundleSpec &s) { std::swap(s.buckets[0], s.buckets[1]); }, kManifest, "BUCKETS", 1, 1, 3},
    {"BucketTwice", [](BundleSpec &s) { s.buckets[1] = s.buckets[0]; }, kManifest, "BUCKETS", 1, 1, 3},
    {"BucketOrderSeqs", [](BundleSpec &s) { s.buckets[1] = {8, 3, 9, 0}; }, kManifest, "BUCKETS", 1, 1, 3},
    {"StageEmpty", [](BundleSpec &s) { s.stages[0].bucketCount = 0; }, kManifest, "STAGES", 0, 0, 3},
    {"StagePast", [](BundleSpec &s) { s.stages[0].firstBucket = 1; }, kManifest, "STAGES", 0, 1, 3},
    {"StageWraps", [](BundleSpec &s) { s.stages[0].firstBucket = UINT32_MAX; }, kManifest, "STAGES", 0, UINT32_MAX, 3},
    {"StagesShareBuckets", [](BundleSpec &s) { s.stages.push_back({s.strings.add("other"), 0, 3}); }, kManifest, "STAGES", 1, 6, 3},
    {"StageNameTwice", [](BundleSpec &s) { s.stages.push_back(s.stages[0]); }, kManifest, "STAGES", 1, 0, 0},
    {"LaneStage", [](BundleSpec &s) { s.lanes[1].stage = 1; }, kManifest, "LANES", 1, 1, 1},
    {"LaneNameTwice", [](BundleSpec &s) { s.lanes[1].name = s.lanes[0].name; }, kManifest, "LANES", 1, 0, 0},
    {"LaneNameEmpty", [](BundleSpec &s) { s.lanes[1].name = {0, 0}; s.strings.bytes.resize(1 << 10, 'x'); }, kManifest, "LANES", 1, 0, kAny},
    {"LaneNoOutputs", [](BundleSpec &s) { s.lanes[0].outputCount = 0; }, kManifest, "LANES", 0, 0, 3},
    {"LaneOutputsPast", [](BundleSpec &s) { s.lanes[1].firstOutput = 2; }, kManifest, "LANES", 1, 2, 3},
    {"LanesShareOutputs", [](BundleSpec &s) { s.lanes[0].firstOutput = 1; s.lanes[0].outputCount = 2; }, kManifest, "LANES", 1, 1, 3},
    {"LaneInputs", [](BundleSpec &s) { s.lanes[0].inputs |= 8; }, kManifest, "LANES", 0, 9, 7},
    {"LaneNoIds", [](BundleSpec &s) { s.lanes[0].idCount = 0; }, kManifest, "LANES", 0, 0, INT32_MAX},
    {"LaneManyIds", [](BundleSpec &s) { s.lanes[0].idCount = 1u << 31; }, kManifest, "LANES", 0, 1u << 31, INT32_MAX},
    {"LaneTypesWithoutCount", [](BundleSpec &s) { s.lanes[0].typeCount = 0; }, kManifest, "LANES", 0, 1, 7},
    {"LaneSeqTypesWithoutFlag", [](BundleSpec &s) { s.lanes[1].seqTypeCount = 2; }, kManifest, "LANES", 1, 1, 7},
    {"OutputRowKind", [](BundleSpec &s) { s.outputs[2].rowKind = 4; }, kManifest, "OUTPUTS", 2, 4, 3},
    {"OutputWidth", [](BundleSpec &s) { s.outputs[2].width = 0; }, kManifest, "OUTPUTS", 2, 1, 3},
    {"OutputElem", [](BundleSpec &s) { s.outputs[2].elem = 5; }, kManifest, "OUTPUTS", 2, 1, 3},
    {"OutputReserved", [](BundleSpec &s) { s.outputs[1].reserved = 5; }, kManifest, "OUTPUTS", 1, 5, 0},
    {"OutputNameTwiceInLane", [](BundleSpec &s) { s.outputs[2].name = s.outputs[1].name; }, kManifest, "OUTPUTS", 2, 1, 0},
    {"PlanMissing", late([](BundleSpec &, Refs &r) { r.pop_back(); }), kManifest, "PLANS", 0, 5, 6},
    {"PlanTooMany", late([](BundleSpec &, Refs &r) { r.push_back(r[0]); }), kManifest, "PLANS", 0, 7, 6},
    {"PlanTwice", late([](BundleSpec &, Refs &r) { r[4].bucket = 0; }), kManifest, "PLANS", 4, 6, 0},
    {"PlanLane", late([](BundleSpec &, Refs &r) { r[2].lane = 2; }), kManifest, "PLANS", 2, 2, 2},
    {"PlanTarget", late([](BundleSpec &, Refs &r) { r[2].target = 1; }), kManifest, "PLANS", 2, 1, 1},
    {"PlanBucket", late([](BundleSpec &, Refs &r) { r[2].bucket = 3; }), kManifest, "PLANS", 2, 3, 3},
    {"PlanFile", late([](BundleSpec &, Refs &r) { r[2].file = 9; }), kManifest, "PLANS", 2, 9, 9},
    {"PlanFileKind", late([](BundleSpec &, Refs &r) { r[2].file = 1; }), kManifest, "PLANS", 2, 1, 9},
    {"NoteString", [](BundleSpec &s) { s.notes[0].value = {0xFFFF0000, 1}; s.notes[0].key = {5, 0}; s.strings.bytes.resize(1 << 10, 'x'); }, kManifest, "NOTES", 0, 5, kAny},
    {"SelfTestLane", [](BundleSpec &s) { s.selfTests[0].lane = 2; }, kManifest, "SELF_TESTS", 0, 2, 2},
    {"SelfTestWords", [](BundleSpec &s) { s.selfTests[0].tokens = 9; }, kManifest, "SELF_TESTS", 0, 9, 8},
    {"SelfTestPrefix", [](BundleSpec &s) { s.selfTests[0].cuSeqlens = 6; }, kManifest, "SELF_TESTS", 0, 5, 8},
    {"SelfTestNoIds", [](BundleSpec &s) { s.selfTests[0].ids = UINT32_MAX; }, kManifest, "SELF_TESTS", 0, 5, 8},
    {"SelfTestMarkers", [](BundleSpec &s) { s.selfTests[0].markers = 1; }, kManifest, "SELF_TESTS", 0, 5, 8},
    {"NoLanes", [](BundleSpec &s) { s.lanes.clear(); }, kManifest, "LANES", 0, 0, 1},
    {"NoStages", [](BundleSpec &s) { s.stages.clear(); }, kManifest, "STAGES", 0, 0, 1},
    {"NoTargets", [](BundleSpec &s) { s.targets.clear(); }, kManifest, "TARGETS", 0, 0, 1},
};

const Case kPackCases[] = {
    {"Index", [](BundleSpec &s) { s.packs[0].pack.pack = 1; }, kPack, "PACK", 0, 1, 0},
    {"Alignment", [](BundleSpec &s) { s.packs[0].pack.alignment = 32; }, kPack, "PACK", 0, 0, 0},
    {"Elem", [](BundleSpec &s) { s.packs[0].tensors[1].elem = 7; }, kPack, "TENSORS", 1, 256, 0},
    {"Layout", [](BundleSpec &s) { s.packs[0].tensors[1].layout = 0; }, kPack, "TENSORS", 1, 256, 0},
    {"VectorOfTwoRows", [](BundleSpec &s) { s.packs[0].tensors[3].rows = 2; }, kPack, "TENSORS", 3, 192, 0},
    {"NoRows", [](BundleSpec &s) { s.packs[0].tensors[1].rows = 0; }, kPack, "TENSORS", 1, 256, 0},
    {"Bytes", [](BundleSpec &s) { s.packs[0].tensors[1].bytes += 64; }, kPack, "TENSORS", 1, 320, 256},
    {"Shape",
     [](BundleSpec &s) {
       s.packs[0].tensors[1].rows = UINT32_MAX;
       s.packs[0].tensors[1].cols = UINT32_MAX;
     },
     kPack, "TENSORS", 1, 256, 0},
    {"NameTwice", [](BundleSpec &s) { s.packs[0].tensors[2].name = s.packs[0].tensors[1].name; }, kPack, "TENSORS", 2,
     1, 0},
};

// Buffers of embed 8x4: 0 x at 0, 1 e at 1024, 2 y at 2048, 3 z at 3584, 4 p at 2048; arena 5120.
const Case kPlanCases[] = {
    {"Lane", plan([](PlanSpec &p) { p.plan.lane = p.strings.add("encode"); }), kPlan, "PLAN", 0, 0, 0},
    {"Target", plan([](PlanSpec &p) { p.plan.target = p.strings.add("other"); }), kPlan, "PLAN", 0, 0, 0},
    {"Abi", plan([](PlanSpec &p) { p.plan.kernelAbi = 0; }), kPlan, "PLAN", 0, 0, 1, BATTEN_VERSION},
    {"Tokens", plan([](PlanSpec &p) { p.plan.tokens = 9; }), kPlan, "PLAN", 0, 9, 8},
    {"Seqs", plan([](PlanSpec &p) { p.plan.seqs = 9; }), kPlan, "PLAN", 0, 8, 8},
    {"ImageDigest", plan([](PlanSpec &p) { p.ownDigests = true; }), kPlan, "PLAN", 0, 2, 0},
    {"ArenaUnaligned", plan([](PlanSpec &p) { p.plan.arenaBytes += 1; }), kPlan, "PLAN", 0, 5121, uint64_t{1} << 46},
    {"ArenaHuge", plan([](PlanSpec &p) { p.plan.arenaBytes = uint64_t{1} << 47; }), kPlan, "PLAN", 0, uint64_t{1} << 47,
     uint64_t{1} << 46},
    {"ScratchUnaligned", plan([](PlanSpec &p) { p.plan.scratchBytes += 4; }), kPlan, "PLAN", 0, 5120,
     uint64_t{1} << 46},
    {"LowerBound", plan([](PlanSpec &p) { p.plan.lowerBoundBytes -= 64; }), kPlan, "PLAN", 0, 5056, 5120},
    {"BufferRowKind", plan([](PlanSpec &p) { p.buffers[1].rowKind = 4; }), kPlan, "BUFFERS", 1, 4, 3},
    {"BufferElem", plan([](PlanSpec &p) { p.buffers[1].elem = 0; }), kPlan, "BUFFERS", 1, 0, 3},
    {"BufferWidth", plan([](PlanSpec &p) { p.buffers[1].width = 0; }), kPlan, "BUFFERS", 1, 0, 3},
    {"BufferReserved", plan([](PlanSpec &p) { p.buffers[1].reserved = 3; }), kPlan, "BUFFERS", 1, 3, 0},
    {"BufferStrideSmall", plan([](PlanSpec &p) { p.buffers[1].strideBytes = 64; }), kPlan, "BUFFERS", 1, 64, 128},
    {"BufferStrideLarge", plan([](PlanSpec &p) { p.buffers[1].strideBytes = 192; }), kPlan, "BUFFERS", 1, 192, 128},
    {"BufferUnaligned", plan([](PlanSpec &p) { p.buffers[1].offset = 1032; }), kPlan, "BUFFERS", 1, 1032, 5120},
    {"BufferPast", plan([](PlanSpec &p) { p.buffers[3].offset = 3648; }), kPlan, "BUFFERS", 3, 3648, 5120},
    {"BufferWraps", plan([](PlanSpec &p) { p.buffers[3].offset = UINT64_MAX - 63; }), kPlan, "BUFFERS", 3,
     UINT64_MAX - 63, 5120},
    {"BufferOverlapsLive", plan([](PlanSpec &p) { p.buffers[1].offset = 960; }), kPlan, "BUFFERS", 1, 960, 0},
    {"BufferOverlapsNext", plan([](PlanSpec &p) {
       p.buffers[3].offset = 1984;
       p.buffers[3].width = 20;
       p.buffers[3].strideBytes = 128;
     }),
     kPlan, "BUFFERS", 3, 1984, 1},
    {"BufferInsideLive", plan([](PlanSpec &p) { p.buffers[4].offset = 64; }), kPlan, "BUFFERS", 4, 64, 0},
    {"WeightPack", plan([](PlanSpec &p) { p.weights[2].pack = 2; }), kPlan, "WEIGHTS", 2, 2, 1},
    {"WeightReserved", plan([](PlanSpec &p) { p.weights[2].reserved = 2; }), kPlan, "WEIGHTS", 2, 2, 0},
    {"KernelNameTwice", plan([](PlanSpec &p) { p.kernels[3].name = p.kernels[1].name; }), kPlan, "KERNELS", 3, 1, 0},
    {"KernelDomain", plan([](PlanSpec &p) { p.kernels[3].domain = 4; }), kPlan, "KERNELS", 3, 4, 3},
    {"KernelPanelsWithoutSlabs", plan([](PlanSpec &p) { p.kernels[2].slabRows = 0; }), kPlan, "KERNELS", 2, 0, 3},
    {"KernelPanelsOfRows", plan([](PlanSpec &p) { p.kernels[0].panels = 1; }), kPlan, "KERNELS", 0, 1, 3},
    {"KernelNoHeads", plan([](PlanSpec &p) { p.kernels[3].heads = 0; }), kPlan, "KERNELS", 3, 2, 3},
    {"KernelNoOperands", plan([](PlanSpec &p) { p.kernels[3].operandCount = 0; }), kPlan, "KERNELS", 3, 0, 8},
    {"KernelManyOperands", plan([](PlanSpec &p) { p.kernels[3].operandCount = 9; }), kPlan, "KERNELS", 3, 9, 8},
    {"KernelMayOverwrite", plan([](PlanSpec &p) { p.kernels[3].mayOverwrite = 2; }), kPlan, "KERNELS", 3, 2, 8},
    {"KernelUnits", plan([](PlanSpec &p) { p.kernels[3].heads = UINT32_MAX; }), kPlan, "KERNELS", 3,
     uint64_t{5} * UINT32_MAX, UINT32_MAX},
    {"KernelPanelUnits", plan([](PlanSpec &p) {
       p.kernels[2].panels = UINT32_MAX;
       p.kernels[2].slabRows = 4;
     }),
     kPlan, "KERNELS", 2, uint64_t{2} * UINT32_MAX, UINT32_MAX},
    {"OperandKind", plan([](PlanSpec &p) { p.operands[3].kind = 2; }), kPlan, "OPERANDS", 3, 0, 9},
    {"OperandIndex", plan([](PlanSpec &p) { p.operands[3].index = 5; }), kPlan, "OPERANDS", 3, 5, 5},
    {"OperandWeightIndex", plan([](PlanSpec &p) { p.operands[0].index = 9; }), kPlan, "OPERANDS", 0, 9, 9},
    {"OperandAccess", plan([](PlanSpec &p) { p.operands[3].access = 0; }), kPlan, "OPERANDS", 3, 0, 3},
    {"OperandWeightWritten", plan([](PlanSpec &p) { p.operands[0].access = 2; }), kPlan, "OPERANDS", 0, 2, 3},
    {"OperandReserved", plan([](PlanSpec &p) { p.operands[0].reserved = 2; }), kPlan, "OPERANDS", 0, 2, 0},
    {"StepKernel", plan([](PlanSpec &p) { p.steps[4].kernel = 8; }), kPlan, "STEPS", 4, 8, 8},
    {"StepRowKind", plan([](PlanSpec &p) { p.steps[4].rowKind = 4; }), kPlan, "STEPS", 4, 4, 8},
    {"StepOperandsPast", plan([](PlanSpec &p) { p.steps[7].firstOperand = 22; }), kPlan, "STEPS", 7, 22, 23},
    {"StepOperandsWrap", plan([](PlanSpec &p) { p.steps[7].firstOperand = UINT32_MAX; }), kPlan, "STEPS", 7, UINT32_MAX,
     23},
    {"StepNoOperands", plan([](PlanSpec &p) { p.steps[7].operandCount = 0; }), kPlan, "STEPS", 7, 21, 23},
    {"StepOperandCount", plan([](PlanSpec &p) { p.kernels[7].operandCount = 3; }), kPlan, "STEPS", 7, 2, 3},
    {"StepInPlaceCountsTwice", plan([](PlanSpec &p) { p.kernels[6].operandCount = 2; }), kPlan, "STEPS", 6, 3, 2},
    {"StepScratch", plan([](PlanSpec &p) { p.steps[3].scratchBytes += 64; }), kPlan, "STEPS", 3, 896, 832},
    {"StepScratchUnaligned", plan([](PlanSpec &p) { p.steps[3].scratchBytes = 60; }), kPlan, "STEPS", 3, 60, 832},
    {"StepInPlaceNotAllowed", plan([](PlanSpec &p) { p.kernels[4].mayOverwrite = 0; }), kPlan, "STEPS", 4, 15, 23},
    {"StepLastOperandRead", plan([](PlanSpec &p) { p.operands[22].access = 1; }), kPlan, "STEPS", 7, 22, 23},
    {"StepInputWritten", plan([](PlanSpec &p) { p.operands[21].access = 2; }), kPlan, "STEPS", 7, 21, 22},
    {"StepTasksOverSeqs", plan([](PlanSpec &p) { p.steps[3].rowKind = 1; }), kPlan, "STEPS", 3, 1, 0},
    {"StepWindow", plan([](PlanSpec &p) { p.steps[3].pairWindow = BATTEN_MAX_PAIR_WINDOW + 1; }), kPlan, "STEPS", 3,
     BATTEN_MAX_PAIR_WINDOW + 1, BATTEN_MAX_PAIR_WINDOW},
    {"StepWindowOfRows", plan([](PlanSpec &p) { p.steps[4].pairWindow = 1; }), kPlan, "STEPS", 4, 1, 0},
    {"StepReserved", plan([](PlanSpec &p) { p.steps[4].reserved = 2; }), kPlan, "STEPS", 4, 2, 0},
    {"StepOutputRowKind", plan([](PlanSpec &p) { p.steps[7].rowKind = 0; }), kPlan, "STEPS", 7, 1, 0},
    {"StepInputRowKind", plan([](PlanSpec &p) {
       p.buffers[1].rowKind = 1;
       p.steps[1].rowKind = 1;
     }),
     kPlan, "STEPS", 6, 1, 0},
    {"StepReadsWhatItOverwrites", plan([](PlanSpec &p) { p.operands[19].index = 0; }), kPlan, "STEPS", 6, 0, 5},
    {"StepPanelsOfOutput", plan([](PlanSpec &p) { p.kernels[2].panels = 3; }), kPlan, "STEPS", 2, 2, 3},
    {"StepPanelsOfWeight", plan([](PlanSpec &p) { p.operands[7].index = 8; }), kPlan, "STEPS", 2, 1, 2},
    {"StepReadsBeforeWrite", plan([](PlanSpec &p) {
       p.operands[6].index = 3;
       p.buffers[3].width = 20;
       p.buffers[3].strideBytes = 128;
     }),
     kPlan, "STEPS", 2, 3, 5},
    {"StepFirstAccessInPlace", plan([](PlanSpec &p) {
       p.buffers.push_back(p.buffers[1]);
       p.operands[18].index = 5;
     }),
     kPlan, "STEPS", 5, 5, 6},
    {"OutputCount", plan([](PlanSpec &p) { p.outputs.push_back(p.outputs[0]); }), kPlan, "PLAN_OUTPUTS", 0, 2, 1},
    {"OutputBuffer", plan([](PlanSpec &p) { p.outputs[0].buffer = 5; }), kPlan, "PLAN_OUTPUTS", 0, 5, 5},
    {"OutputName", plan([](PlanSpec &p) { p.outputs[0].name = p.strings.add("other"); }), kPlan, "PLAN_OUTPUTS", 0, 20,
     20},
    {"OutputWidth", plan([](PlanSpec &p) { p.outputs[0].buffer = 2; }), kPlan, "PLAN_OUTPUTS", 0, 40, 20},
    {"OutputUnwritten", plan([](PlanSpec &p) {
       p.buffers.push_back(p.buffers[4]);
       p.outputs[0].buffer = 5;
     }),
     kPlan, "PLAN_OUTPUTS", 0, 5, 6},
    {"NoSteps", plan([](PlanSpec &p) { p.steps.clear(); }), kPlan, "STEPS", 0, 0, 16384},
};

INSTANTIATE_TEST_SUITE_P(Manifest, VerifierTest, ::testing::ValuesIn(kManifestCases), caseName);
INSTANTIATE_TEST_SUITE_P(Pack, VerifierTest, ::testing::ValuesIn(kPackCases), caseName);
INSTANTIATE_TEST_SUITE_P(Plan, VerifierTest, ::testing::ValuesIn(kPlanCases), caseName);

/// Opens a bundle bent by a function and returns the error.
batten_error_t refusalOf(const std::function<void(BundleSpec &)> &bend) {
  BundleSpec spec = modelSpec();
  bend(spec);
  const Blobs blobs(serialize(spec));
  batten_error_t error;
  EXPECT_FALSE(openBlobs(blobs, &error));
  return error;
}

TEST(PlanVerifierTest, KernelEntriesAreInTheCodeAndAligned) {
  const batten_target_t target = modelSpec().targets[0];
  const uint64_t end = target.codeOffset + target.codeBytes;
  for (uint64_t entry : {end, end - 8, uint64_t{UINT64_MAX - 15}, target.codeOffset + 8}) {
    const batten_error_t error = refusalOf(plan([&](PlanSpec &p) {
      p.kernels[5].entry = entry;
      p.kernels[5].entryBytes = 64;
    }));
    EXPECT_STREQ(error.section, "KERNELS");
    EXPECT_EQ(error.index, 5u);
    EXPECT_EQ(error.found, entry);
    EXPECT_EQ(error.limit, end);
  }
  EXPECT_STREQ(refusalOf(plan([&](PlanSpec &p) { p.kernels[5].entryBytes = target.codeBytes + 1; })).section,
               "KERNELS");
  EXPECT_STREQ(refusalOf(plan([&](PlanSpec &p) { p.kernels[5].entryBytes = 0; })).section, "KERNELS");
}

TEST(PlanVerifierTest, WeightsEqualTheirTensorInEveryField) {
  const std::function<void(batten_weight_t &)> bends[] = {
      [](batten_weight_t &w) { w.rows += 1; },   [](batten_weight_t &w) { w.cols += 1; },
      [](batten_weight_t &w) { w.elem = 2; },    [](batten_weight_t &w) { w.layout = 2; },
      [](batten_weight_t &w) { w.bytes -= 64; }, [](batten_weight_t &w) { w.offset += 64; },
      [](batten_weight_t &w) { w.pack = 1; }};
  for (const auto &bend : bends) {
    const batten_error_t error = refusalOf(plan([&](PlanSpec &p) { bend(p.weights[1]); }));
    EXPECT_STREQ(error.section, "WEIGHTS") << error.message;
    EXPECT_EQ(error.index, 1u);
  }
  const batten_error_t error = refusalOf(plan([](PlanSpec &p) { // another tensor's name and shape, this one's place
    std::swap(p.weights[5].name, p.weights[6].name);
    p.weights[5].offset += 128, p.weights[6].offset -= 128;
  }));
  EXPECT_STREQ(error.section, "WEIGHTS") << error.message;
}

TEST(PlanVerifierTest, OutputsLiveToTheEnd) {
  // "hidden" of lane encode is buffer 0; p may not take its place, though no step reads x afterwards.
  const batten_error_t error = refusalOf([](BundleSpec &spec) {
    PlanSpec &plan = spec.plans[planOf(spec, 1, 0)];
    batten_operand_t in{BATTEN_OPERAND_BUFFER, 4, BATTEN_ACCESS_READ, 0},
        out{BATTEN_OPERAND_BUFFER, 5, BATTEN_ACCESS_WRITE, 0};
    plan.buffers.push_back({BATTEN_ROWS_SEQS, kWidth, BATTEN_ELEM_F32, 0, 128, 0});
    plan.addStep("again", 7, BATTEN_ROWS_SEQS, {in, out});
  });
  EXPECT_STREQ(error.section, "BUFFERS") << error.message;
  EXPECT_EQ(error.index, 5u);
  EXPECT_EQ(error.limit, 0u);
}

TEST(PlanVerifierTest, StepsReadRowsOfTheirOwnOrAFinerKindOnly) {
  // Of lane decide: step 8 gathers markers from tokens (operands 23, 24), step 9 sequences from tokens and markers
  // (words 25, 26, 27, output 28); buffers 0 x tokens, 1 e tokens, 4 p seqs, 5 gathered markers, 6 decision seqs.
  batten_error_t error;
  EXPECT_TRUE(openBlobs(Blobs(serialize(decisionSpec())), &error)) << error.message;
  struct Refusal {
    const char *what;
    size_t operand;
    uint32_t buffer;
    uint64_t step, found, counted;
  };
  const Refusal refusals[] = {{"markers read sequences", 23, 4, 8, BATTEN_ROWS_SEQS, BATTEN_ROWS_MARKERS},
                              {"tokens read markers", 19, 5, 6, BATTEN_ROWS_MARKERS, BATTEN_ROWS_TOKENS},
                              {"tokens read sequences", 19, 4, 6, BATTEN_ROWS_SEQS, BATTEN_ROWS_TOKENS},
                              {"markers write sequences", 24, 6, 8, BATTEN_ROWS_SEQS, BATTEN_ROWS_MARKERS},
                              {"sequences write tokens", 28, 1, 9, BATTEN_ROWS_TOKENS, BATTEN_ROWS_SEQS},
                              {"sequences write markers", 28, 5, 9, BATTEN_ROWS_MARKERS, BATTEN_ROWS_SEQS}};
  for (const Refusal &c : refusals) {
    BundleSpec spec = decisionSpec();
    PlanSpec &bent = spec.plans[planOf(spec, 0, 0)];
    bent.operands[c.operand].index = c.buffer;
    if (c.operand == 28 && c.buffer == 5)
      bent.operands[27].index = 0; // else it would read what it overwrites
    EXPECT_FALSE(openBlobs(Blobs(serialize(spec)), &error)) << c.what;
    EXPECT_STREQ(error.section, "STEPS") << c.what << ": " << error.message;
    EXPECT_EQ(error.index, c.step) << c.what << ": " << error.message;
    EXPECT_EQ(error.found, c.found) << c.what << ": " << error.message;
    EXPECT_EQ(error.limit, c.counted) << c.what << ": " << error.message;
  }
}

TEST(PlanVerifierTest, AcceptsLongerRecordsUnknownSectionsAndLaterMinorVersions) {
  Files files = serialize(modelSpec());
  const Files original = files;
  FileBytes &manifest = files["manifest.bin"];
  batten_file_header_t header;
  std::memcpy(&header, manifest.data(), sizeof header);
  header.minor = 7;
  header.reserved[3] = 1; // a later minor version may use it
  std::memcpy(manifest.data(), &header, sizeof header);
  reseal(files, original);
  batten_error_t error;
  EXPECT_TRUE(openBlobs(Blobs(files), &error)) << error.message;
}

TEST(TargetChoiceTest, TakesTheSupportedOneWithMostFeatures) {
  const rt::CpuInfo cpu = rt::CpuInfo::detect();
  BundleSpec spec = modelSpec();
  addTarget(spec, "some", kArch, cpu.features & 3);
  addTarget(spec, "best", kArch, cpu.features);
  addTarget(spec, "future", kArch, cpu.features | uint64_t{1} << 60);
  addTarget(spec, "elsewhere", 3 - kArch, 0);
  const Blobs blobs(serialize(spec));
  batten_error_t error;
  const BundlePtr bundle = openBlobs(blobs, &error);
  ASSERT_TRUE(bundle) << error.message;
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle.get(), &info);
  EXPECT_EQ(info.targetCount, 5u);
  EXPECT_EQ(info.target, cpu.features == (cpu.features & 3) ? 1u : 2u);
  const bool supported[] = {true, true, true, false, false};
  for (uint32_t i = 0; i < 5; ++i) {
    batten_target_info_t target;
    ASSERT_EQ(batten_bundle_get_target(bundle.get(), i, &target), BATTEN_OK);
    EXPECT_EQ(target.supported, supported[i]) << i;
  }
  const ExecutorPtr executor = makeExecutor(bundle.get());
  const Batch batch = makeBatch({4}, 1);
  EXPECT_TRUE(sameBits(runModel(executor.get(), batch).hidden, reference(batch).hidden));
  EXPECT_EQ(batten_bundle_verify_full(bundle.get(), &error), BATTEN_OK) << error.message; // all targets' plans too

  batten_bundle_options_t options = BATTEN_BUNDLE_OPTIONS_INIT;
  options.target = "some";
  const BundlePtr forced = openBlobs(blobs, &error, &options);
  ASSERT_TRUE(forced) << error.message;
  batten_bundle_get_info(forced.get(), &info);
  EXPECT_EQ(info.target, 1u);
  options.target = "future";
  EXPECT_FALSE(openBlobs(blobs, &error, &options));
  EXPECT_EQ(error.status, BATTEN_UNSUPPORTED);
  EXPECT_NE(std::string(error.message).find("future needs bit60"), std::string::npos) << error.message;
  options.target = "elsewhere";
  EXPECT_FALSE(openBlobs(blobs, &error, &options));
  EXPECT_EQ(error.status, BATTEN_UNSUPPORTED);
  options.target = "nowhere";
  EXPECT_FALSE(openBlobs(blobs, &error, &options));
  EXPECT_EQ(error.status, BATTEN_BAD_ARGUMENT);
}

TEST(TargetChoiceTest, NamesTheFeaturesThatAreMissing) {
  BundleSpec spec = modelSpec();
  spec.targets[0].features = uint64_t{1} << 63;
  batten_error_t error;
  EXPECT_FALSE(openBlobs(Blobs(serialize(spec)), &error));
  EXPECT_EQ(error.status, BATTEN_UNSUPPORTED);
  EXPECT_NE(std::string(error.message).find("base needs bit63"), std::string::npos) << error.message;
  char names[64];
  rt::featureNames(BATTEN_X86_AVX2 | BATTEN_X86_AVX512VL, names, sizeof names);
  EXPECT_STREQ(names, "avx2 avx512vl");
  rt::featureNames(~uint64_t{0}, names, sizeof names); // cut, terminated
  EXPECT_LT(std::string(names).size(), sizeof names);
}

TEST(TargetChoiceTest, FullLevelProvesTheOtherTargetsPlans) {
  BundleSpec spec = modelSpec();
  addTarget(spec, "future", kArch, uint64_t{1} << 60);
  spec.plans.back().buffers[0].width = 21;
  const Blobs blobs(serialize(spec));
  batten_error_t error;
  const BundlePtr bundle = openBlobs(blobs, &error);
  ASSERT_TRUE(bundle) << error.message; // the target in use is right
  EXPECT_EQ(batten_bundle_verify_full(bundle.get(), &error), BATTEN_CORRUPT);
  EXPECT_STREQ(error.where, "plans/future/encode-200x64x16.plan");
}

} // namespace
} // namespace batten::test
