// Register-only FMA loops, one an instruction set (compiled for it by function attribute, whatever the build is for),
// and a streaming sum. Each round starts all threads at once and counts the slowest.
#include "tools/batten/Peaks.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace batten::tools {

namespace {

constexpr uint64_t kFmaRounds = 400'000;

// More independent chains than latency * issue width, and few enough for the register file. The empty asm statements
// keep the factors opaque and the sums alive.
#if defined(__x86_64__)
__attribute__((target("avx512f"), noinline)) uint64_t fmaAvx512() {
  __m512 sums[24];
  for (__m512 &sum : sums)
    sum = _mm512_setzero_ps();
  __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(0.25f);
  for (uint64_t i = 0; i < kFmaRounds; ++i) {
#pragma clang loop unroll(full)
    for (__m512 &sum : sums)
      sum = _mm512_fmadd_ps(a, b, sum);
    asm volatile("" : "+v"(a), "+v"(b));
  }
  for (__m512 &sum : sums)
    asm volatile("" ::"v"(sum));
  return kFmaRounds * 24 * 32;
}

__attribute__((target("avx2,fma"), noinline)) uint64_t fmaAvx2() {
  __m256 sums[12];
  for (__m256 &sum : sums)
    sum = _mm256_setzero_ps();
  __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);
  for (uint64_t i = 0; i < kFmaRounds; ++i) {
#pragma clang loop unroll(full)
    for (__m256 &sum : sums)
      sum = _mm256_fmadd_ps(a, b, sum);
    asm volatile("" : "+x"(a), "+x"(b));
  }
  for (__m256 &sum : sums)
    asm volatile("" ::"x"(sum));
  return kFmaRounds * 12 * 16;
}
#elif defined(__aarch64__)
__attribute__((noinline)) uint64_t fmaNeon() {
  float32x4_t sums[24];
  for (float32x4_t &sum : sums)
    sum = vdupq_n_f32(0);
  float32x4_t a = vdupq_n_f32(0.5f), b = vdupq_n_f32(0.25f);
  for (uint64_t i = 0; i < kFmaRounds; ++i) {
#pragma clang loop unroll(full)
    for (float32x4_t &sum : sums)
      sum = vfmaq_f32(sum, a, b);
    asm volatile("" : "+w"(a), "+w"(b));
  }
  for (float32x4_t &sum : sums)
    asm volatile("" ::"w"(sum));
  return kFmaRounds * 24 * 8;
}
#endif

uint64_t fmaLoop(Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::kAvx512 ? fmaAvx512() : fmaAvx2();
#else
  return fmaNeon();
#endif
}

/// Sums [data, data + bytes); bytes is a multiple of 512. Leaves reading ahead to the hardware: prefetch
/// instructions showed no steady gain.
uint64_t readLoop(const uint8_t *data, size_t bytes) {
  typedef uint64_t Line __attribute__((vector_size(64)));
  Line sums[4] = {};
  for (size_t i = 0; i < bytes; i += 512) {
    for (size_t line = 0; line < 512; line += 64)
      sums[line / 64 % 4] += *reinterpret_cast<const Line *>(data + i + line);
  }
  for (Line &sum : sums)
    asm volatile("" ::"m"(sum));
  return bytes;
}

/// The largest units a second over the rounds: work(thread) returns units done.
template <typename Work> double bestRate(uint32_t threads, int rounds, Work work) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds(threads);
  std::vector<uint64_t> units(threads);
  double best = 0;
  auto endRound = [&]() noexcept {
    double slowest = *std::max_element(seconds.begin(), seconds.end());
    uint64_t total = 0;
    for (uint64_t unit : units)
      total += unit;
    if (slowest > 0)
      best = std::max(best, double(total) / slowest);
  };
  std::barrier start(threads);
  std::barrier end(threads, endRound);
  auto worker = [&](uint32_t thread) {
    for (int round = 0; round < rounds; ++round) {
      start.arrive_and_wait();
      Clock::time_point begin = Clock::now();
      units[thread] = work(thread);
      seconds[thread] = std::chrono::duration<double>(Clock::now() - begin).count();
      end.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (uint32_t thread = 1; thread < threads; ++thread)
    others.emplace_back(worker, thread);
  worker(0);
  for (std::thread &other : others)
    other.join();
  return best;
}

} // namespace

const char *isaName(Isa isa) { return isa == Isa::kAvx512 ? "AVX-512" : isa == Isa::kAvx2 ? "AVX2" : "NEON"; }

double measureFmaPeak(Isa isa, uint32_t threads) {
  return bestRate(threads, 20, [isa](uint32_t) { return fmaLoop(isa); });
}

double measureReadPeak(uint32_t threads) {
  long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  size_t size = std::clamp<size_t>(2 * size_t(std::max(cache, 0l)), size_t(256) << 20, size_t(1) << 30);
  size_t share = size / threads / 4096 * 4096;
  void *block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED)
    return 0;
  ::madvise(block, size, MADV_HUGEPAGE);
  uint8_t *data = static_cast<uint8_t *>(block);
  for (size_t i = 0; i < size; i += 4096) // untouched pages would all be one page of zeros
    data[i] = 1;
  double rate = bestRate(threads, 12, [=](uint32_t thread) { return readLoop(data + share * thread, share); });
  ::munmap(block, size);
  return rate;
}

} // namespace batten::tools
