// [R35] Rows past 2^31 elements: buffers of many GiB are reserved, not filled, and kernels run on the last few rows. The
// bits must be those of the same rows at the start of a small buffer.
#include "tests/kernels/KernelHarness.h"

#include "compiler/layout/RowStride.h"
#include "tools/bench/MappedImage.h"

#include <sys/mman.h>

#include <algorithm>

using namespace batten;
using namespace batten::test;

namespace {

/// Reserved address space, zeros where untouched.
struct Reserved {
  explicit Reserved(size_t bytes) : bytes(bytes) {
    void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data = mapping == MAP_FAILED ? nullptr : static_cast<float *>(mapping);
  }
  ~Reserved() {
    if (data)
      munmap(data, bytes);
  }
  Reserved(const Reserved &) = delete;
  Reserved &operator=(const Reserved &) = delete;
  float *data;
  size_t bytes;
};

constexpr uint32_t kRows = 1u << 26; // of 64 floats: 2^32 elements
constexpr uint32_t kUsed = 40;
constexpr uint32_t kFirst = kRows - kUsed;
constexpr size_t kStride = 64;

/// Runs the kernel on rows [kFirst, kRows) of a huge buffer, and compares with the same rows in a small one.
void check(const KernelKey &key, const std::vector<Input> &weights, uint32_t inCols, uint32_t outCols) {
  ASSERT_EQ(layout::rowStrideBytes(inCols, 4), static_cast<int64_t>(kStride * 4));
  std::vector<float> x = randomFloats(kUsed * inCols, inCols);
  bool isPool = key.op == KernelOp::Pool;
  // All rows but the last 40 are one sequence that no unit of the call looks at.
  BatchSpec small{{kUsed}, {}, {}};
  std::vector<Input> inputs{Input::ofRows(kUsed, inCols, x)};
  bool weightsFirst = key.op == KernelOp::LayerNorm;
  inputs.insert(weightsFirst ? inputs.begin() : inputs.end(), weights.begin(), weights.end());
  uint32_t outRows = isPool ? 1 : kUsed;

  for (const std::string &target : runnableTargets()) {
    std::vector<float> wanted = runKernel(target, key, inputs, small, outRows, outCols);
    KernelImage image = cantFail(makeKernelImage({key}, cantFail(lookupTarget(target))));
    MappedImage mapped(image.bytes, image.codeOffset, image.codeBytes);
    size_t outStride = layout::rowStrideBytes(outCols, 4) / 4;
    Reserved in(static_cast<size_t>(kRows) * kStride * 4), out(static_cast<size_t>(kRows) * outStride * 4);
    ASSERT_TRUE(in.data && out.data) << "address space for 32 GiB is needed";
    for (uint32_t r = 0; r < kUsed; ++r)
      std::copy_n(&x[r * inCols], inCols, in.data + static_cast<size_t>(kFirst + r) * kStride);
    std::vector<uint32_t> offsets{0, kFirst, kRows};
    uint32_t blocks = kFirst / BATTEN_TASK_ROWS + (kFirst % BATTEN_TASK_ROWS != 0);
    std::vector<uint32_t> tasks{0, blocks, blocks + 1};
    batten_kernel_batch_t batch{};
    batch.rows[BATTEN_ROWS_TOKENS] = kRows;
    batch.rows[BATTEN_ROWS_SEQS] = 2;
    batch.cuSeqlens = offsets.data();
    batch.taskStart = tasks.data();
    batten_kernel_args_t args{};
    std::vector<std::vector<float>> operands;
    std::vector<std::unique_ptr<GuardedFloats>> blocksOfWeights;
    unsigned next = 0;
    auto addWeights = [&] {
      for (const Input &weight : weights) {
        size_t count = weight.kind == Input::Kind::Panels ? (weight.rows + 31) / 32 * 32 * weight.cols
                                                          : layout::roundUp(weight.cols, 16);
        auto block = std::make_unique<GuardedFloats>(count, GuardedFloats::Tight::AtEnd);
        std::fill_n(block->data, count, 0.0f);
        for (size_t n = 0; n < weight.rows; ++n)
          for (size_t k = 0; k < weight.cols; ++k)
            block->data[weight.kind == Input::Kind::Panels ? (n / 32 * weight.cols + k) * 32 + n % 32 : k] =
                weight.values[n * weight.cols + k];
        args.ptr[next++] = block->data;
        blocksOfWeights.push_back(std::move(block));
      }
    };
    if (weightsFirst)
      addWeights();
    args.ptr[next++] = in.data;
    if (!weightsFirst)
      addWeights();
    args.ptr[next] = out.data;
    args.batch = &batch;
    args.rows = &batch.rows[isPool ? BATTEN_ROWS_SEQS : BATTEN_ROWS_TOKENS];
    args.scratchBytes = kernelScratchBytes(key, kUsed);
    GuardedFloats scratch(args.scratchBytes / 4, GuardedFloats::Tight::AtEnd);
    args.scratch = reinterpret_cast<uint8_t *>(scratch.data);

    // The units that hold the last rows.
    KernelFacts facts = kernelFacts(key);
    uint32_t first = kFirst, last = kRows;
    if (facts.domain == BATTEN_DOMAIN_PANELS) {
      uint32_t slabs = (kRows + facts.slabRows - 1) / facts.slabRows;
      first = (slabs - 1) * facts.panels;
      last = slabs * facts.panels;
    } else if (facts.domain == BATTEN_DOMAIN_TASKS) {
      first = tasks[1] * facts.heads;
      last = tasks[2] * facts.heads;
    } else if (isPool) {
      first = 1;
      last = 2;
    }
    mapped.entry(image.entries[0].offset)(&args, first, last, 0);
    std::vector<float> got;
    for (uint32_t r = 0; r < outRows; ++r) {
      const float *row = out.data + static_cast<size_t>(isPool ? 1 : kFirst + r) * outStride;
      got.insert(got.end(), row, row + outCols);
    }
    expectSameBits(got, wanted, outCols, kernelSymbol(key) + " at row 2^26, " + target);
  }
}

} // namespace

TEST(LargeOffsetTest, Linear) {
  check(KernelKey::linear(64, 50, true),
        {Input::panels(50, 64, randomFloats(50 * 64, 1)), Input::vector(randomFloats(50, 2))}, 64, 50);
}
TEST(LargeOffsetTest, LayerNorm) {
  check(KernelKey::layerNorm(50, 1e-5f), {Input::vector(randomFloats(50, 1)), Input::vector(randomFloats(50, 2))}, 50,
        50);
}
TEST(LargeOffsetTest, L2Normalize) { check(KernelKey::l2Normalize(64, 1e-12f), {}, 64, 64); }
TEST(LargeOffsetTest, Activation) { check(KernelKey::activation(64, ActivationKind::Relu), {}, 64, 64); }
TEST(LargeOffsetTest, Slice) { check(KernelKey::slice(64, 3, 50), {}, 64, 50); }
TEST(LargeOffsetTest, Pool) { check(KernelKey::pooling(64, PoolKind::Mean), {}, 64, 64); }
TEST(LargeOffsetTest, Attention) { check(KernelKey::attention(2, 10, 0.3f), {}, 60, 20); }

// A table of more than 2^31 elements.
TEST(LargeOffsetTest, Embed) {
  KernelKey key = KernelKey::embed(64, true, false, false);
  Reserved table(static_cast<size_t>(kRows) * kStride * 4), out(4096);
  ASSERT_TRUE(table.data && out.data);
  std::vector<float> row = randomFloats(64, 1);
  std::copy(row.begin(), row.end(), table.data + static_cast<size_t>(kRows - 1) * kStride);
  uint32_t id = kRows - 1, position = 0;
  batten_kernel_batch_t batch{};
  batch.rows[BATTEN_ROWS_TOKENS] = 1;
  batch.ids = &id;
  batch.position = &position;
  batten_kernel_args_t args{};
  args.ptr[0] = table.data;
  args.ptr[1] = out.data;
  args.batch = &batch;
  args.rows = batch.rows;
  for (const std::string &target : runnableTargets()) {
    KernelImage image = cantFail(makeKernelImage({key}, cantFail(lookupTarget(target))));
    MappedImage mapped(image.bytes, image.codeOffset, image.codeBytes);
    mapped.entry(image.entries[0].offset)(&args, 0, 1, 0);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), out.data)) << target;
  }
}
