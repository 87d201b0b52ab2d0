// The table of targets.
#include "compiler/target/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace batten;

/// Tiles: 14 x 32 in 28 of 32 registers of 512 bits, 6 x 16 in 12 of 16 registers of 256 bits. Taller ones spill.
static const Target kTargets[] = {
    {"x86-64-v3", BATTEN_ARCH_X86_64, BATTEN_X86_V3, "x86_64-unknown-linux-gnu", "x86-64-v3", "", 8, 6, 2, 192, 0},
    {"x86-64-v4", BATTEN_ARCH_X86_64, BATTEN_X86_V4, "x86_64-unknown-linux-gnu", "x86-64-v4", "", 16, 14, 2, 768, 128},
    {"x86-64-v4+avx512_bf16", BATTEN_ARCH_X86_64, BATTEN_X86_V4 | BATTEN_X86_AVX512_BF16, "x86_64-unknown-linux-gnu",
     "x86-64-v4", "+avx512bf16", 16, 14, 2, 768, 128},
    {"x86-64-v4+avx512_vnni", BATTEN_ARCH_X86_64, BATTEN_X86_V4 | BATTEN_X86_AVX512_VNNI, "x86_64-unknown-linux-gnu",
     "x86-64-v4", "+avx512vnni", 16, 14, 2, 768, 128},
};

llvm::Expected<Target> batten::lookupTarget(llvm::StringRef name) {
  for (const Target &target : kTargets)
    if (target.name == name)
      return target;
  std::string known = llvm::join(knownTargetNames(), ", ");
  if (name == "aarch64")
    return llvm::createStringError("target 'aarch64' has no code generator yet; known targets: " + known);
  return llvm::createStringError("unknown target '" + name + "'; known targets: " + known);
}

/// LLVM's names of BATTEN_X86_*, by bit.
static const llvm::StringLiteral kX86Features[] = {
    "sse3",     "ssse3",    "sse4.1",   "sse4.2",   "popcnt",     "cx16",      "sahf",  "avx",
    "avx2",     "bmi",      "bmi2",     "f16c",     "fma",        "lzcnt",     "movbe", "avx512f",
    "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512bf16", "avx512vnni"};
static_assert(BATTEN_X86_AVX512_VNNI == 1ull << (std::size(kX86Features) - 1));

llvm::Error batten::checkHostRuns(const Target &target) {
  llvm::Triple host(llvm::sys::getProcessTriple()), wanted(target.triple);
  if (host.getArch() != wanted.getArch())
    return llvm::createStringError("target '" + target.name + "' needs " + wanted.getArchName() + ", this machine is " +
                                   host.getArchName());
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  std::vector<llvm::StringRef> missing;
  if (host.isX86())
    for (auto [bit, name] : llvm::enumerate(kX86Features))
      if (target.features >> bit & 1 && !features.lookup(name))
        missing.push_back(name);
  if (missing.empty())
    return llvm::Error::success();
  return llvm::createStringError("target '" + target.name + "' needs " + llvm::join(missing, " ") +
                                 ", which this machine lacks");
}

llvm::Expected<Target> batten::hostTarget(batten_elem math) {
  std::string reasons;
  std::vector<std::string> names = defaultTargetNames(math);
  for (const std::string &name : llvm::reverse(names)) {
    Target target = llvm::cantFail(lookupTarget(name));
    llvm::Error error = checkHostRuns(target);
    if (!error)
      return target;
    reasons += (reasons.empty() ? "" : "; ") + llvm::toString(std::move(error));
  }
  return llvm::createStringError("no target runs on this machine: " + reasons);
}

std::vector<std::string> batten::defaultTargetNames(batten_elem math) {
  uint64_t extra = math == BATTEN_ELEM_BF16 ? BATTEN_X86_AVX512_BF16
                   : math == BATTEN_ELEM_I8 ? BATTEN_X86_AVX512_VNNI
                                            : 0;
  std::vector<std::string> names;
  for (const Target &target : kTargets)
    if (uint64_t beyond = target.features & ~BATTEN_X86_V4;
        math == BATTEN_ELEM_BF16 ? beyond == extra : (beyond & ~extra) == 0)
      names.push_back(target.name);
  return names;
}

llvm::Error batten::checkMath(const Target &target, batten_elem math) {
  if (math != BATTEN_ELEM_BF16 || target.features & BATTEN_X86_AVX512_BF16)
    return llvm::Error::success();
  return llvm::createStringError("target '" + target.name + "': math bf16 needs avx512_bf16; targets that have it: " +
                                 llvm::join(defaultTargetNames(math), ", "));
}

std::vector<std::string> batten::knownTargetNames() {
  std::vector<std::string> names;
  for (const Target &target : kTargets)
    names.push_back(target.name);
  return names;
}
