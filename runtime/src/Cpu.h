// What this CPU can do and the operating system lets it do (cpuid and xgetbv), as the feature bits of format.h; and the
// floating point state of a run. Asked once per open: cpuid is dear in a virtual machine and nothing here is cached.
#ifndef BATTEN_RT_CPU_H
#define BATTEN_RT_CPU_H

#include "Support.h"

namespace batten::rt {

struct CpuInfo {
  u32 arch = 0;     // batten_arch
  u64 features = 0; // BATTEN_X86_*
  bool hasSha = false;

  [[nodiscard]] static CpuInfo detect() noexcept;
};

/// True where code of a target with this architecture and these features runs here.
[[nodiscard]] bool targetRuns(const CpuInfo &cpu, u32 arch, u64 features) noexcept;
/// Writes the names of the feature bits, separated by spaces, cut to size. A bit without a name is "bit<N>".
void featureNames(u64 features, char *text, size_t size) noexcept;

/// Round to nearest, denormals flushed both ways, every exception masked, for as long as the object lives; then the
/// caller's own state, sticky flags too, is back.
class FpState {
public:
  FpState() noexcept {
#if defined(__x86_64__)
    saved_ = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(kRunState);
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
    __asm__ volatile("msr fpcr, %0" ::"r"(kRunState) : "memory");
#endif
  }
  ~FpState() {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(saved_);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(saved_) : "memory");
#endif
  }
  FpState(const FpState &) = delete;
  FpState &operator=(const FpState &) = delete;

private:
#if defined(__aarch64__)
  static constexpr u64 kRunState = u64{1} << 24; // FZ
  u64 saved_;
#else
  static constexpr u32 kRunState = 0x9FC0; // FTZ, DAZ, all masked
  u32 saved_;
#endif
};

} // namespace batten::rt

#endif // BATTEN_RT_CPU_H
