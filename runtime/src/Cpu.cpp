// See Cpu.h.
#include "Cpu.h"

#include <cstdio>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace batten::rt {

CpuInfo CpuInfo::detect() noexcept {
  CpuInfo cpu;
#if defined(__x86_64__)
  cpu.arch = BATTEN_ARCH_X86_64;
  struct Bit {
    u64 feature;
    int bit;
  };
  auto take = [&cpu](u32 word, const Bit *bits, int count) {
    for (int i = 0; i < count; ++i)
      cpu.features |= word >> bits[i].bit & 1 ? bits[i].feature : 0;
  };
  u32 a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return cpu;
  static constexpr Bit kLeaf1[] = {{BATTEN_X86_SSE3, 0},    {BATTEN_X86_SSSE3, 9},   {BATTEN_X86_SSE4_1, 19},
                                   {BATTEN_X86_SSE4_2, 20}, {BATTEN_X86_POPCNT, 23}, {BATTEN_X86_CX16, 13},
                                   {BATTEN_X86_MOVBE, 22}};
  take(c, kLeaf1, 7);
  const u32 leaf1 = c;
  u32 enabled = 0; // XCR0: which register sets the operating system saves
  if (leaf1 >> 27 & 1) {
    u32 high;
    __asm__ volatile("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
  }
  const bool avx = (enabled & 0x6) == 0x6 && (leaf1 >> 28 & 1);
  const bool avx512 = avx && (enabled & 0xE6) == 0xE6;
  if (avx) {
    static constexpr Bit kAvx[] = {{BATTEN_X86_AVX, 28}, {BATTEN_X86_FMA, 12}, {BATTEN_X86_F16C, 29}};
    take(leaf1, kAvx, 3);
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    static constexpr Bit kLeaf7[] = {{BATTEN_X86_BMI1, 3}, {BATTEN_X86_BMI2, 8}, {BATTEN_X86_AVX2, 5}};
    take(b, kLeaf7, avx ? 3 : 2);
    static constexpr Bit kAvx512[] = {{BATTEN_X86_AVX512F, 16},
                                      {BATTEN_X86_AVX512BW, 30},
                                      {BATTEN_X86_AVX512CD, 28},
                                      {BATTEN_X86_AVX512DQ, 17},
                                      {BATTEN_X86_AVX512VL, 31}};
    cpu.hasSha = (b >> 29 & 1) && (leaf1 >> 9 & 1) && (leaf1 >> 19 & 1);
    static constexpr Bit kVnni[] = {{BATTEN_X86_AVX512_VNNI, 11}}, kBf16[] = {{BATTEN_X86_AVX512_BF16, 5}};
    if (avx512) {
      take(b, kAvx512, 5);
      take(c, kVnni, 1);
      if (u32 more; a >= 1 && __get_cpuid_count(7, 1, &more, &b, &c, &d))
        take(more, kBf16, 1);
    }
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) {
    static constexpr Bit kExtended[] = {{BATTEN_X86_LAHF, 0}, {BATTEN_X86_LZCNT, 5}};
    take(c, kExtended, 2);
  }
#elif defined(__aarch64__)
  cpu.arch = BATTEN_ARCH_AARCH64;
#endif
  return cpu;
}

bool targetRuns(const CpuInfo &cpu, u32 arch, u64 features) noexcept {
  return arch == cpu.arch && (features & ~cpu.features) == 0;
}

void featureNames(u64 features, char *text, size_t size) noexcept {
  static constexpr const char *kNames[] = {"sse3",     "ssse3",    "sse4.1",      "sse4.2",     "popcnt",   "cx16",
                                           "lahf",     "avx",      "avx2",        "bmi1",       "bmi2",     "f16c",
                                           "fma",      "lzcnt",    "movbe",       "avx512f",    "avx512bw", "avx512cd",
                                           "avx512dq", "avx512vl", "avx512_bf16", "avx512_vnni"};
  constexpr unsigned kNameCount = sizeof kNames / sizeof kNames[0];
  static_assert(BATTEN_X86_AVX512_VNNI == 1ull << (kNameCount - 1));
  size_t used = 0;
  text[0] = '\0';
  for (unsigned bit = 0; bit < 64 && used + 1 < size; ++bit) {
    if (!(features >> bit & 1))
      continue;
    const char *space = used ? " " : "";
    int written = bit < kNameCount ? std::snprintf(text + used, size - used, "%s%s", space, kNames[bit])
                                   : std::snprintf(text + used, size - used, "%sbit%u", space, bit);
    used += written > 0 ? static_cast<size_t>(written) : 0;
  }
}

} // namespace batten::rt
