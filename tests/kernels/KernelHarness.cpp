// Compiled kernels are kept for the whole process, by target and symbol.
#include "tests/kernels/KernelHarness.h"

#include "compiler/layout/PackLayout.h"
#include "compiler/layout/RowStride.h"
#include "compiler/layout/WeightStorage.h"
#include "tools/bench/MappedImage.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

using namespace batten;
using namespace batten::test;

namespace {

constexpr size_t kPage = 4096;
constexpr uint32_t kCanary = 0xDEADBEEFu;
/// Rows of a buffer past the ones in use.
constexpr size_t kSlackRows = 3;
constexpr uint32_t kWorkers = 3;

struct Compiled {
  std::unique_ptr<MappedImage> image;
  batten_kernel_fn *function = nullptr;
};

constexpr const char *kWideOnV3 = "16 lanes on x86-64-v3";

Target targetOf(const std::string &name) {
  if (name != kWideOnV3)
    return cantFail(lookupTarget(name));
  Target target = cantFail(lookupTarget("x86-64-v3"));
  target.name = name;
  target.vectorLanes = 16;
  target.tileRows = 2;
  return target;
}

batten_kernel_fn *compiled(const std::string &targetName, const KernelKey &key) {
  static std::map<std::string, Compiled> kernels;
  auto [place, isNew] = kernels.try_emplace(targetName + "/" + kernelSymbol(key));
  Compiled &kernel = place->second;
  if (!isNew)
    return kernel.function;
  llvm::Expected<KernelImage> image = makeKernelImage({key}, targetOf(targetName));
  if (!image) {
    ADD_FAILURE() << targetName << ": " << toString(image.takeError());
    return nullptr;
  }
  kernel.image = std::make_unique<MappedImage>(image->bytes, image->codeOffset, image->codeBytes);
  if (*kernel.image)
    kernel.function = kernel.image->entry(image->entries[0].offset);
  else
    ADD_FAILURE() << "the system maps no executable memory";
  return kernel.function;
}

float nanOf(uint32_t payload) {
  uint32_t bits = 0x7FC00000u | (payload & 0xFFFF);
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

size_t strideFloats(size_t cols) {
  return static_cast<size_t>(layout::rowStrideBytes(static_cast<int64_t>(cols), 4)) / 4;
}

/// Lays an operand out in guarded memory; everything that isn't data is NaN, but for the zeros that a pack promises.
std::unique_ptr<GuardedFloats> place(const Input &input, GuardedFloats::Tight tight) {
  auto block = [&](size_t count) { return std::make_unique<GuardedFloats>(count, tight); };
  switch (input.kind) {
  case Input::Kind::Rows: {
    size_t stride = strideFloats(input.cols);
    auto result = block((input.rows + kSlackRows) * stride);
    for (size_t i = 0; i < result->count; ++i)
      result->data[i] = nanOf(static_cast<uint32_t>(i));
    for (size_t r = 0; r < input.rows; ++r)
      std::copy_n(&input.values[r * input.cols], input.cols, result->data + r * stride);
    return result;
  }
  case Input::Kind::Table:
  case Input::Kind::Vector:
  case Input::Kind::Panels:
  case Input::Kind::DotPanels: {
    auto rows = static_cast<int64_t>(input.rows), cols = static_cast<int64_t>(input.cols);
    layout::Layout form = input.kind == Input::Kind::Table    ? layout::Layout::Table
                          : input.kind == Input::Kind::Vector ? layout::Layout::Vector
                          : input.kind == Input::Kind::Panels ? layout::Layout::Panels
                                                              : layout::Layout::DotPanels;
    std::vector<uint8_t> stored;
    layout::appendStored(form, input.elem, input.values.data(), rows, cols, stored);
    auto result = block(static_cast<size_t>(*layout::entryBytes(form, input.elem, rows, cols)) / 4);
    std::fill_n(result->data, result->count, 0.0f);
    std::memcpy(result->data, stored.data(), stored.size());
    return result;
  }
  }
  return nullptr;
}

/// Sets the floating point state of a run, and what was there before at the end.
struct RunState {
  RunState() : before(_mm_getcsr()) { _mm_setcsr(0x9FC0); }
  ~RunState() { _mm_setcsr(before); }
  unsigned before;
};

} // namespace

std::vector<std::string> test::runnableTargets(layout::Elem math) {
  auto runnable = [](const std::vector<std::string> &wanted) {
    std::vector<std::string> names;
    for (const std::string &name : wanted)
      if (llvm::Error error = checkHostRuns(cantFail(lookupTarget(name))))
        std::printf("NOTE: %s; its code is compiled and checked only\n", toString(std::move(error)).c_str());
      else
        names.push_back(name);
    return names;
  };
  std::vector<std::string> names = runnable(defaultTargetNames(static_cast<batten_elem>(math)));
  return names.empty() ? runnable(defaultTargetNames(BATTEN_ELEM_F32)) : names;
}

std::vector<std::string> test::targetsOf(const KernelKey &key) {
  std::vector<std::string> names = runnableTargets(key.math);
  if (names.size() == 1 && key.op != KernelOp::Linear)
    names.push_back(kWideOnV3);
  return names;
}

GuardedFloats::GuardedFloats(size_t count, Tight tight) : count(count) {
  size_t bytes = count * 4, pages = (bytes + kPage - 1) / kPage * kPage;
  mappingBytes = pages + 2 * kPage;
  mapping = mmap(nullptr, mappingBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto *begin = static_cast<uint8_t *>(mapping) + kPage;
  mprotect(begin, pages, PROT_READ | PROT_WRITE);
  data = reinterpret_cast<float *>(tight == Tight::AtBegin ? begin : begin + pages - (bytes + 63) / 64 * 64);
}

GuardedFloats::~GuardedFloats() { munmap(mapping, mappingBytes); }

reference::Matrix Input::matrix() const {
  reference::Matrix result(rows, cols);
  std::copy(values.begin(), values.end(), result.values.begin());
  return result;
}

std::vector<Input> test::someRows(std::vector<Input> inputs, size_t first, size_t count) {
  for (Input &input : inputs)
    if (input.kind == Input::Kind::Rows) {
      auto begin = input.values.begin() + static_cast<ptrdiff_t>(first * input.cols);
      input.values = {begin, begin + static_cast<ptrdiff_t>(count * input.cols)};
      input.rows = count;
    }
  return inputs;
}

std::vector<uint32_t> BatchSpec::cuSeqlens() const {
  std::vector<uint32_t> result{0};
  for (uint32_t length : lengths)
    result.push_back(result.back() + length);
  return result;
}

std::vector<uint32_t> BatchSpec::cuMarkers() const {
  std::vector<uint32_t> result{0};
  for (size_t s = 0; s < lengths.size(); ++s)
    result.push_back(result.back() + (markers.empty() ? 0 : static_cast<uint32_t>(markers[s].size())));
  return result;
}

std::vector<uint32_t> BatchSpec::markerRows() const {
  std::vector<uint32_t> result, offsets = cuSeqlens();
  for (size_t s = 0; s < markers.size(); ++s)
    for (uint32_t position : markers[s])
      result.push_back(offsets[s] + position);
  return result;
}

uint32_t BatchSpec::tokens() const { return cuSeqlens().back(); }

BatchSpec test::plainBatch(uint32_t rows) { return {{rows}, {}, {}}; }

uint32_t test::unitCount(const KernelKey &key, const BatchSpec &batch, uint32_t rows) {
  KernelFacts facts = kernelFacts(key);
  switch (facts.domain) {
  case BATTEN_DOMAIN_PANELS:
    return (rows + facts.slabRows - 1) / facts.slabRows * facts.panels;
  case BATTEN_DOMAIN_TASKS: {
    uint32_t blocks = 0;
    for (uint32_t length : batch.lengths)
      blocks += (length + BATTEN_TASK_ROWS - 1) / BATTEN_TASK_ROWS;
    return blocks * facts.heads;
  }
  case BATTEN_DOMAIN_ROWS:
    return rows;
  case BATTEN_DOMAIN_ONE:
    return 1;
  }
  return 0;
}

std::vector<float> test::runKernel(const std::string &target, const KernelKey &key, const std::vector<Input> &inputs,
                                   const BatchSpec &batch, uint32_t outRows, uint32_t outCols,
                                   const RunOptions &options) {
  std::vector<uint32_t> offsets = batch.cuSeqlens(), position, seqOf, tasks{0};
  std::vector<uint32_t> markers = batch.cuMarkers(), markerRows = batch.markerRows();
  uint32_t longest = 1;
  for (uint32_t s = 0; s < batch.lengths.size(); ++s) {
    for (uint32_t t = 0; t < batch.lengths[s]; ++t) {
      position.push_back(t);
      seqOf.push_back(s);
    }
    tasks.push_back(tasks.back() + (batch.lengths[s] + BATTEN_TASK_ROWS - 1) / BATTEN_TASK_ROWS);
    longest = std::max(longest, batch.lengths[s]);
  }
  batten_kernel_batch_t b{};
  b.rows[BATTEN_ROWS_TOKENS] = batch.tokens();
  b.rows[BATTEN_ROWS_SEQS] = static_cast<uint32_t>(batch.lengths.size());
  b.rows[BATTEN_ROWS_MARKERS] = markers.back();
  b.rows[BATTEN_ROWS_ONE] = 1;
  b.ids = batch.ids.data();
  b.types = batch.types.empty() ? nullptr : batch.types.data();
  b.cuSeqlens = offsets.data();
  b.cuMarkers = markers.data();
  b.seqTypes = batch.seqTypes.empty() ? nullptr : batch.seqTypes.data();
  b.position = position.data();
  b.seqOf = seqOf.data();
  b.markerRow = markerRows.data();
  b.taskStart = tasks.data();

  KernelFacts facts = kernelFacts(key);
  EXPECT_EQ(facts.operandCount, inputs.size() + 1);
  std::vector<std::unique_ptr<GuardedFloats>> blocks;
  batten_kernel_args_t args{};
  for (const Input &input : inputs) {
    blocks.push_back(place(input, options.tight));
    args.ptr[blocks.size() - 1] = blocks.back()->data;
  }
  size_t stride = strideFloats(outCols), padded = (outCols + 15) / 16 * 16;
  GuardedFloats *out = nullptr;
  if (options.inPlace) {
    out = blocks.back().get();
  } else {
    blocks.push_back(std::make_unique<GuardedFloats>((outRows + kSlackRows) * stride, options.tight));
    out = blocks.back().get();
    for (size_t i = 0; i < out->count; ++i)
      std::memcpy(out->data + i, &kCanary, 4);
  }
  args.ptr[inputs.size()] = out->data;
  std::vector<float> before(out->data, out->data + out->count);

  args.batch = &b;
  args.rows = &b.rows[facts.rowKind.value_or(BATTEN_ROWS_TOKENS)];
  uint32_t unused = *args.rows;
  if (!facts.rowKind && unused != outRows) { // rows that aren't the batch's tokens
    b.rows[BATTEN_ROWS_MARKERS] = outRows;
    args.rows = &b.rows[BATTEN_ROWS_MARKERS];
  }
  std::vector<float> next(64, 1.0f);
  if (options.withNext) {
    args.next = next.data();
    args.nextBytes = next.size() * 4;
  }
  args.scratchBytes = kernelScratchBytes(key, longest);
  GuardedFloats scratch(args.scratchBytes / 4 * kWorkers, options.tight);
  for (size_t i = 0; i < scratch.count; ++i)
    scratch.data[i] = nanOf(7);
  args.scratch = reinterpret_cast<uint8_t *>(scratch.data);

  batten_kernel_fn *function = compiled(target, key);
  if (!function)
    return std::vector<float>(outRows * outCols);
  std::vector<Part> parts = options.parts;
  if (parts.empty())
    parts.push_back({0, unitCount(key, batch, outRows), 0});
  {
    RunState state;
    for (const Part &part : parts)
      if (part.first < part.last)
        function(&args, part.first, part.last, part.worker);
    EXPECT_EQ(_mm_getcsr() & ~0x3Fu, 0x9FC0u) << "the kernel changed the floating point state";
  }
  std::vector<float> result;
  bool broken = false;
  for (size_t i = 0; i < out->count; ++i) {
    size_t row = i / stride, col = i % stride;
    bool mayWrite = row < outRows && col < padded;
    if (!mayWrite && std::memcmp(&before[i], out->data + i, 4) != 0 && !broken) {
      ADD_FAILURE() << target << " " << kernelSymbol(key) << " wrote row " << row << " column " << col << " of a "
                    << outRows << " x " << outCols << " output";
      broken = true;
    }
    if (row < outRows && col < outCols)
      result.push_back(out->data[i]);
  }
  return result;
}

std::vector<float> test::runEveryWay(const KernelKey &key, const std::vector<Input> &inputs, const BatchSpec &batch,
                                     uint32_t outRows, uint32_t outCols) {
  std::string what = kernelSymbol(key) + ", " + std::to_string(outRows) + " rows, ";
  std::vector<float> first;
  uint32_t units = unitCount(key, batch, outRows);
  for (const std::string &target : targetsOf(key)) {
    auto same = [&](const RunOptions &options, const char *way) {
      std::vector<float> got = runKernel(target, key, inputs, batch, outRows, outCols, options);
      if (first.empty())
        first = got;
      expectSameBits(got, first, outCols, what + target + ", " + way);
    };
    RunOptions options;
    same(options, "whole");
    options.tight = GuardedFloats::Tight::AtBegin;
    options.withNext = true;
    same(options, "whole, guarded at the beginning");
    if (kernelFacts(key).mayOverwrite) {
      options.inPlace = true;
      same(options, "in place");
      options.inPlace = false;
    }
    for (uint32_t unit = units; unit-- > 0;)
      options.parts.push_back({unit, unit + 1, unit % kWorkers});
    same(options, "unit by unit, backwards");
    std::minstd_rand random(units + outCols);
    for (int round = 0; round < 3; ++round) {
      options.parts.clear();
      for (uint32_t unit = 0; unit < units;) {
        uint32_t end = unit + 1 + static_cast<uint32_t>(random()) % std::max(1u, units / 2);
        options.parts.push_back({unit, std::min(end, units), static_cast<uint32_t>(options.parts.size()) % kWorkers});
        unit = end;
      }
      std::shuffle(options.parts.begin(), options.parts.end(), random);
      options.inPlace = round == 1 && kernelFacts(key).mayOverwrite;
      same(options, "in parts");
    }
  }
  return first;
}

void test::expectSameBits(const std::vector<float> &got, const std::vector<float> &wanted, size_t cols,
                          const std::string &what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(std::memcmp(&got[i], &wanted[i], 4) == 0 || (std::isnan(got[i]) && std::isnan(wanted[i])))
        << what << ": row " << i / cols << " column " << i % cols << " is " << got[i] << ", " << wanted[i] << " before";
}

void test::expectClose(const std::vector<float> &got, const reference::Matrix &wanted,
                       const reference::Matrix &magnitude, double ulps, const std::string &what, double absolute) {
  ASSERT_EQ(got.size(), wanted.values.size()) << what;
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(wanted.values[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << what << ": element " << i << " is " << got[i] << ", NaN wanted";
      continue;
    }
    ASSERT_FALSE(std::isnan(got[i])) << what << ": element " << i << " is NaN, " << wanted.values[i] << " wanted";
    double allowed = ulps * 0x1p-24 * std::fabs(magnitude.values[i]) + absolute;
    double share = std::fabs(got[i] - wanted.values[i]) / std::max(allowed, 1e-300);
    if (share > worst) {
      worst = share;
      where = i;
    }
  }
  EXPECT_LE(worst, 1.0) << what << ": row " << where / wanted.cols << " column " << where % wanted.cols << " is "
                        << got[where] << ", " << wanted.values[where] << " wanted, magnitude "
                        << magnitude.values[where];
}

std::vector<float> test::randomFloats(size_t count, uint32_t seed, float scale) {
  std::minstd_rand random(seed * 2654435761u + 1);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> result(count);
  for (float &value : result)
    value = normal(random);
  return result;
}
