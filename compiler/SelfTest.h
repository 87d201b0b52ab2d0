// The self-test of a new bundle: inputs made here, run once on this machine with the bundle as it is, on every target
// that the machine has, and the digest of the outputs. Since bits don't depend on the target, one digest serves them all.
#ifndef BATTEN_COMPILER_SELFTEST_H
#define BATTEN_COMPILER_SELFTEST_H

#include "compiler/Compile.h"
#include "compiler/artifact/Manifest.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace batten {

/// Inputs for a lane's self-test: sequences of mixed length, an empty one among them, as many as the smallest bucket holds
/// (the smallest with markers where the lane reads them); types and markers where it reads them. No digest yet.
ManifestSelfTest makeSelfTestInputs(const Manifest &manifest, uint32_t lane);

/// Opens the bundle in a directory, or in blobs, and adds a self-test for each lane to the manifest. Where this machine
/// runs none of its targets it adds none, and a note that says so.
///
/// Errors: the bundle does not open or run; two targets disagree. Both are our own mistakes, found before anyone ships them.
llvm::Error addSelfTests(const std::string &directory, Manifest &manifest, std::vector<std::string> &notes);
llvm::Error addSelfTests(const std::vector<CompiledBlob> &blobs, Manifest &manifest, std::vector<std::string> &notes);

} // namespace batten

#endif // BATTEN_COMPILER_SELFTEST_H
