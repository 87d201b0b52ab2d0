// Speed of single kernels against this machine's own FMA peak, measured in the same run: the linears and the attention of
// all-MiniLM-L6-v2, the kernels between them, and what families with rotary positions and windows have. One thread; its
// processor time, and the best of many rounds, since on a shared machine anything else measures the neighbours. Operands
// are in cache; with --stream N a linear's calls go round N MiB of weights, as the layers of a model do.
#include "compiler/kernels/Emit.h"
#include "compiler/layout/RowStride.h"
#include "tools/bench/MappedImage.h"

#include "llvm/Support/CommandLine.h"

#include <immintrin.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

using namespace batten;

namespace {

/// This thread's processor time: what other processes take meanwhile doesn't count.
double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// 24 chains of fma hide the latency on every core known; on 256-bit vectors 12 do, in 16 registers.
__attribute__((target("avx512f"), noinline)) double peakOf512() {
  __m512 sums[24];
  for (int i = 0; i < 24; ++i)
    sums[i] = _mm512_set1_ps(1.0f + i);
  __m512 factor = _mm512_set1_ps(0.999f), addend = _mm512_set1_ps(1e-3f);
  constexpr int kTurns = 100000;
  double begin = seconds();
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma unroll
    for (int i = 0; i < 24; ++i)
      sums[i] = _mm512_fmadd_ps(sums[i], factor, addend);
    __asm__ volatile("" : "+v"(factor), "+v"(addend));
  }
  double time = seconds() - begin;
  for (__m512 &sum : sums)
    __asm__ volatile("" : : "v"(sum));
  return kTurns * 24.0 * 32 / time;
}

__attribute__((target("avx2,fma"), noinline)) double peakOf256() {
  __m256 sums[12];
  for (int i = 0; i < 12; ++i)
    sums[i] = _mm256_set1_ps(1.0f + i);
  __m256 factor = _mm256_set1_ps(0.999f), addend = _mm256_set1_ps(1e-3f);
  constexpr int kTurns = 100000;
  double begin = seconds();
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma unroll
    for (int i = 0; i < 12; ++i)
      sums[i] = _mm256_fmadd_ps(sums[i], factor, addend);
    __asm__ volatile("" : "+x"(factor), "+x"(addend));
  }
  double time = seconds() - begin;
  for (__m256 &sum : sums)
    __asm__ volatile("" : : "x"(sum));
  return kTurns * 12.0 * 16 / time;
}

/// 64-byte aligned floats, touched, with values of about one.
struct Floats {
  explicit Floats(size_t count)
      : data(static_cast<float *>(std::aligned_alloc(4096, (count * 4 + 4095) / 4096 * 4096))) {
    for (size_t i = 0; i < count; ++i)
      data[i] = 0.01f * static_cast<float>(static_cast<int>(i * 7919 % 201) - 100);
  }
  ~Floats() { std::free(data); }
  Floats(const Floats &) = delete;
  Floats &operator=(const Floats &) = delete;
  float *data;
};

/// A kernel ready to be called on a batch of equal sequences.
class Bench {
public:
  Bench(const Target &target, const KernelKey &key, uint32_t sequences, uint32_t length) : key(key) {
    double begin = seconds();
    llvm::Expected<KernelImage> image = makeKernelImage({key}, target);
    compileSeconds = seconds() - begin;
    if (!image) {
      std::fprintf(stderr, "kernel_bench: %s\n", toString(image.takeError()).c_str());
      std::exit(1);
    }
    codeBytes = image->codeBytes;
    mapped = std::make_unique<MappedImage>(image->bytes, image->codeOffset, image->codeBytes);
    if (!*mapped) {
      std::fprintf(stderr, "kernel_bench: the system maps no executable memory\n");
      std::exit(1);
    }
    function = mapped->entry(image->entries[0].offset);

    uint32_t tokens = sequences * length;
    for (uint32_t s = 0; s <= sequences; ++s) {
      offsets.push_back(s * length);
      tasks.push_back(s * ((length + BATTEN_TASK_ROWS - 1) / BATTEN_TASK_ROWS));
    }
    for (uint32_t t = 0; t < tokens; ++t) {
      ids.push_back(t * 31 % 1000);
      positions.push_back(t % length);
    }
    batch.rows[BATTEN_ROWS_TOKENS] = tokens;
    batch.rows[BATTEN_ROWS_SEQS] = sequences;
    batch.ids = ids.data();
    batch.position = positions.data();
    batch.cuSeqlens = offsets.data();
    batch.taskStart = tasks.data();
    args.batch = &batch;
    args.rows = &batch.rows[key.op == KernelOp::Pool ? BATTEN_ROWS_SEQS : BATTEN_ROWS_TOKENS];
    KernelFacts facts = kernelFacts(key);
    rows = *args.rows;
    units = rows;
    if (facts.domain == BATTEN_DOMAIN_PANELS)
      units = (rows + facts.slabRows - 1) / facts.slabRows * facts.panels;
    if (facts.domain == BATTEN_DOMAIN_TASKS)
      units = facts.heads * tasks.back();
    args.scratchBytes = kernelScratchBytes(key, length);
    if (args.scratchBytes) {
      buffers.push_back(std::make_unique<Floats>(args.scratchBytes / 4));
      args.scratch = reinterpret_cast<uint8_t *>(buffers.back()->data);
    }
    addOperands(tokens);
  }

  /// Makes the calls of a linear go round this many bytes of weights.
  void stream(size_t bytes) {
    size_t one = layout::panelCount(key.n) * 32 * key.k;
    weights.push_back(args.ptr[1]);
    while ((weights.size() + 1) * one * 4 <= bytes) {
      buffers.push_back(std::make_unique<Floats>(one));
      weights.push_back(buffers.back()->data);
    }
  }

  /// The best time of a call over the whole batch, and the best FMA rate, measured by turns so that both see the same
  /// clock and the same neighbours.
  struct Result {
    double seconds = 1e9, peak = 0;
  };
  Result best(const Target &target, double budgetSeconds) {
    Result result;
    if (weights.empty())
      weights.push_back(args.ptr[1]);
    for (double begin = seconds(); seconds() - begin < budgetSeconds;) {
      result.peak = std::max(result.peak, target.vectorLanes == 16 ? peakOf512() : peakOf256());
      double turn = seconds();
      do
        result.seconds = std::min(result.seconds, timeOnce());
      while (seconds() - turn < kTurnSeconds);
    }
    return result;
  }

  KernelKey key;
  double compileSeconds = 0;
  uint64_t codeBytes = 0;
  uint32_t rows = 0;

private:
  static constexpr double kTurnSeconds = 2e-3;

  /// Time of a call, over all copies of the weights.
  double timeOnce() {
    double start = seconds();
    for (size_t copy = 0; copy < weights.size(); ++copy) {
      args.ptr[1] = weights[copy];
      if (weights.size() > 1) {
        args.next = weights[(copy + 1) % weights.size()];
        args.nextBytes = 32 * 4 * static_cast<uint64_t>(key.k);
      }
      function(&args, 0, units, 0);
    }
    return (seconds() - start) / static_cast<double>(weights.size());
  }

  void addOperands(uint32_t tokens) {
    unsigned next = 0;
    auto add = [&](size_t floats) {
      buffers.push_back(std::make_unique<Floats>(floats));
      args.ptr[next++] = buffers.back()->data;
    };
    auto matrix = [&](int64_t width) { add(static_cast<size_t>(tokens) * layout::rowStrideBytes(width, 4) / 4); };
    switch (key.op) {
    case KernelOp::Linear:
      matrix(key.k);
      add(layout::panelCount(key.n) * 32 * key.k);
      if (key.bias)
        add(layout::roundUp(key.n, 16));
      if (key.residual)
        matrix(key.n);
      matrix(key.n);
      return;
    case KernelOp::Attention:
      matrix(key.qkvWidth());
      matrix(key.heads * key.headWidth);
      return;
    case KernelOp::Embed:
      for (bool table : {key.words, key.types, key.positions})
        if (table)
          add(1001 * key.width);
      matrix(key.width);
      return;
    case KernelOp::Rope:
      add(tokens * key.headWidth + 16);
      matrix(key.qkvWidth());
      args.ptr[next++] = buffers.back()->data; // in place, as in a plan
      return;
    case KernelOp::Gated:
      matrix(2 * key.width);
      matrix(key.width);
      return;
    case KernelOp::LayerNorm:
    case KernelOp::RmsNorm:
      for (bool vector : {key.weight, key.bias})
        if (vector)
          add(layout::roundUp(key.width, 16));
      [[fallthrough]];
    default:
      matrix(key.width);
      matrix(key.width);
      return;
    }
  }

  std::unique_ptr<MappedImage> mapped;
  batten_kernel_fn *function = nullptr;
  uint32_t units = 0;
  batten_kernel_batch_t batch{};
  batten_kernel_args_t args{};
  std::vector<uint32_t> offsets, tasks, ids, positions;
  std::vector<std::unique_ptr<Floats>> buffers;
  std::vector<void *> weights;
};

void benchMatrix(const Target &target, const KernelKey &key, double budget, size_t streamBytes) {
  for (uint32_t tokens : {1u, 2u, 4u, 8u, 16u, 32u, 128u, 512u}) {
    Bench bench(target, key, 1, tokens);
    if (streamBytes)
      bench.stream(streamBytes);
    auto [time, peak] = bench.best(target, budget);
    double rate = 2.0 * key.k * key.n * tokens / time;
    std::printf("%-10s %-36s tokens %4u  %7.1f GFLOP/s  %5.1f %% of %6.1f  code %5.1f KiB  compile %4.0f ms\n",
                target.name.c_str(), kernelSymbol(key).c_str(), tokens, rate * 1e-9, 100 * rate / peak, peak * 1e-9,
                bench.codeBytes / 1024.0, bench.compileSeconds * 1e3);
  }
}

/// Keys that the queries of a sequence see, all together.
double pairsOf(const KernelKey &key, int64_t length) {
  double pairs = 0;
  for (int64_t row = 0, reach = key.window.value_or(length); row < length; ++row)
    pairs += static_cast<double>(std::min(row + reach + 1, length) - std::max<int64_t>(row - reach, 0));
  return pairs;
}

void benchAttention(const Target &target, const KernelKey &key, double budget) {
  for (uint32_t length : {16u, 32u, 64u, 128u, 256u, 512u, 1024u, 2048u}) {
    Bench bench(target, key, std::max(1u, 512 / length), length);
    auto [time, peak] = bench.best(target, budget);
    double rate = 4.0 * key.heads * key.headWidth * pairsOf(key, length) * (bench.rows / length) / time;
    std::printf("%-10s %-36s length %4u  %7.1f GFLOP/s  %5.1f %% of %6.1f  code %5.1f KiB  compile %4.0f ms\n",
                target.name.c_str(), kernelSymbol(key).c_str(), length, rate * 1e-9, 100 * rate / peak, peak * 1e-9,
                bench.codeBytes / 1024.0, bench.compileSeconds * 1e3);
  }
}

void benchRows(const Target &target, const KernelKey &key, double budget) {
  for (uint32_t tokens : {16u, 512u}) {
    Bench bench(target, key, 1, tokens);
    double time = bench.best(target, budget).seconds;
    std::printf("%-10s %-36s tokens %4u  %7.1f ns/token  code %5.1f KiB  compile %4.0f ms\n", target.name.c_str(),
                kernelSymbol(key).c_str(), tokens, time / tokens * 1e9, bench.codeBytes / 1024.0,
                bench.compileSeconds * 1e3);
  }
}

/// All kernels of all-MiniLM-L6-v2, attention with and without a window over heads twice as wide, and what families with
/// rotary positions have between the linears.
std::vector<KernelKey> benchKeys() {
  const float scale = 1.0f / std::sqrt(32.0f);
  return {KernelKey::linear(384, 1152, true),
          KernelKey::linear(384, 384, true, ActivationKind::None, true),
          KernelKey::linear(384, 1536, true, ActivationKind::GeluErf),
          KernelKey::linear(1536, 384, true, ActivationKind::None, true),
          KernelKey::attention(12, 32, scale),
          KernelKey::attention(12, 64, 0.125f),
          KernelKey::attention(12, 64, 0.125f, 0, 64),
          KernelKey::embed(384, true, true, true),
          KernelKey::layerNorm(384, 1e-12f),
          KernelKey::pooling(384, PoolKind::Mean),
          KernelKey::l2Normalize(384, 1e-12f),
          KernelKey::rope(12, 64),
          KernelKey::rmsNorm(768, 1e-5f),
          KernelKey::gated(1152, ActivationKind::GeluErf),
          KernelKey::gated(2048, ActivationKind::Silu, true)};
}

} // namespace

int main(int argc, char **argv) {
  std::string onlyTarget, filter, dump;
  double budget = 0.2;
  size_t streamBytes = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string flag = argv[i];
    if (flag == "--target")
      onlyTarget = argv[i + 1];
    else if (flag == "--filter")
      filter = argv[i + 1];
    else if (flag == "--seconds")
      budget = std::atof(argv[i + 1]);
    else if (flag == "--stream")
      streamBytes = static_cast<size_t>(std::atof(argv[i + 1]) * (1 << 20));
    else if (flag == "--dump")
      dump = argv[i + 1];
  }
  if (argc % 2 == 0) {
    std::fprintf(stderr,
                 "usage: kernel_bench [--target NAME] [--filter TEXT] [--seconds S] [--stream MIB] [--dump PREFIX]\n");
    return 2;
  }
  _mm_setcsr(0x9FC0); // as in a run: flush denormals both ways, all exceptions masked
  for (const std::string &name : knownTargetNames()) {
    if (!onlyTarget.empty() && name != onlyTarget)
      continue;
    Target target = cantFail(lookupTarget(name));
    if (target.vectorLanes == 16 && !__builtin_cpu_supports("x86-64-v4")) {
      std::printf("%s: not on this machine\n", name.c_str());
      continue;
    }
    std::vector<KernelKey> keys;
    for (const KernelKey &key : benchKeys())
      if (llvm::StringRef(kernelSymbol(key)).contains(filter))
        keys.push_back(key);
    double begin = seconds();
    llvm::Expected<KernelImage> image = makeKernelImage(keys, target);
    if (!image) {
      std::fprintf(stderr, "kernel_bench: %s\n", toString(image.takeError()).c_str());
      return 1;
    }
    std::printf("%s: %zu kernels in one image of %zu bytes, made in %.0f ms\n", name.c_str(), keys.size(),
                image->bytes.size(), (seconds() - begin) * 1e3);
    if (!dump.empty()) {
      std::FILE *file = std::fopen((dump + name + ".img").c_str(), "wb");
      if (!file || std::fwrite(image->bytes.data(), 1, image->bytes.size(), file) != image->bytes.size() ||
          std::fclose(file) != 0) {
        std::perror(dump.c_str());
        return 1;
      }
    }
    for (const KernelKey &key : keys) {
      if (key.op == KernelOp::Linear)
        benchMatrix(target, key, budget, streamBytes);
      else if (key.op == KernelOp::Attention)
        benchAttention(target, key, budget);
      else
        benchRows(target, key, budget);
    }
  }
  return 0;
}
