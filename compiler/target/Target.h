// What machine code is made for: names, features, and the shape of vectors and tiles that emitters take as parameters.
// Plain data; makes no code.
#ifndef BATTEN_COMPILER_TARGET_TARGET_H
#define BATTEN_COMPILER_TARGET_TARGET_H

#include "batten/format.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace batten {

/// A CPU target.
struct Target {
  std::string name;     ///< "x86-64-v4"
  batten_arch arch;     ///< of format.h
  uint64_t features;    ///< BATTEN_X86_* that a machine must have
  std::string triple;   ///< LLVM's
  std::string cpu;      ///< LLVM's
  std::string extras;   ///< LLVM's features beyond the cpu's: "+avx512vnni", or ""
  unsigned vectorLanes; ///< f32 lanes of a native vector: 8 or 16
  unsigned tileRows;    ///< most rows of a matrix tile
  unsigned tileVectors; ///< native vectors of a tile's row
  unsigned chunkRows;   ///< rows of a weight panel that a linear of few rows goes through at a time
  unsigned nearRows;    ///< rows of a weight panel that a single row block prefetches ahead; 0: left to the machine
  unsigned tileCols() const { return vectorLanes * tileVectors; }
};

/// The target of that name.
///
/// Errors: an unknown name, with the known ones; a name that is planned but has no code yet, as such.
llvm::Expected<Target> lookupTarget(llvm::StringRef name);

/// The most demanding target that this machine runs among those of defaultTargetNames. Errors: there is none; what each lacks.
llvm::Expected<Target> hostTarget(batten_elem math = BATTEN_ELEM_F32);

/// Whether this machine, and its operating system, run a target's code. Errors: the features that are missing.
llvm::Error checkHostRuns(const Target &target);

/// All targets that code can be made for, least demanding first.
std::vector<std::string> knownTargetNames();

/// Those of them that a bundle has where none is named: all that gain by what they demand in that math.
std::vector<std::string> defaultTargetNames(batten_elem math);

/// Whether a target's code can compute in that math. Errors: target, math, and the feature that is missing.
llvm::Error checkMath(const Target &target, batten_elem math);

} // namespace batten

#endif // BATTEN_COMPILER_TARGET_TARGET_H
