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
    {"x86-64-v3", BATTEN_ARCH_X86_64, BATTEN_X86_V3, "x86_64-unknown-linux-gnu", "x86-64-v3", 8, 6, 2},
    {"x86-64-v4", BATTEN_ARCH_X86_64, BATTEN_X86_V4, "x86_64-unknown-linux-gnu", "x86-64-v4", 16, 14, 2},
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
    "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16",    "sahf",     "avx",      "avx2",     "bmi",
    "bmi2", "f16c",  "fma",    "lzcnt",  "movbe",  "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};
static_assert(BATTEN_X86_V4 == (1ull << std::size(kX86Features)) - 1);

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

llvm::Expected<Target> batten::hostTarget() {
  std::string reasons;
  for (const Target &target : llvm::reverse(kTargets)) {
    llvm::Error error = checkHostRuns(target);
    if (!error)
      return target;
    reasons += (reasons.empty() ? "" : "; ") + llvm::toString(std::move(error));
  }
  return llvm::createStringError("no target runs on this machine: " + reasons);
}

std::vector<std::string> batten::knownTargetNames() {
  std::vector<std::string> names;
  for (const Target &target : kTargets)
    names.push_back(target.name);
  return names;
}
