// The table of targets.
#include "compiler/target/Target.h"

#include "llvm/ADT/StringExtras.h"

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

std::vector<std::string> batten::knownTargetNames() {
  std::vector<std::string> names;
  for (const Target &target : kTargets)
    names.push_back(target.name);
  return names;
}
