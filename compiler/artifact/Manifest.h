// The manifest as plain structs, and its bytes. It knows no graph: the pipeline fills in what passes and targets found.
#ifndef BATTEN_COMPILER_ARTIFACT_MANIFEST_H
#define BATTEN_COMPILER_ARTIFACT_MANIFEST_H

#include "compiler/artifact/BundleSink.h"
#include "compiler/spec/Spec.h"

#include "batten/format.h"
#include "batten/kernel.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace batten {

inline constexpr llvm::StringLiteral kManifestPath = "manifest.bin";

/// "images/<target>.img"
std::string imagePath(llvm::StringRef target);
/// "plans/<target>/<lane>-<tokens>x<seqs>x<markers>.plan"
std::string planPath(llvm::StringRef target, llvm::StringRef lane, const Bucket &bucket);

struct ManifestFile {
  WrittenFile file;
  batten_file_kind kind;
};

/// A target; image and packs are indices into Manifest::files.
struct ManifestTarget {
  std::string name;
  batten_arch arch;
  batten_elem weights = BATTEN_ELEM_F32, math = BATTEN_ELEM_F32;
  uint32_t image = 0, commonPack = 0, panelsPack = 0;
  uint64_t features = 0, codeOffset = 0, codeBytes = 0;
};

struct ManifestOutput {
  std::string name;
  batten_row_kind rowKind;
  uint32_t width;
  batten_elem elem = BATTEN_ELEM_F32;
};

/// A lane; limits of 0 mean what batten_lane_t says.
struct ManifestLane {
  std::string name;
  uint32_t stage = 0; ///< index into Manifest::stages
  std::vector<ManifestOutput> outputs;
  uint32_t inputs = 0; ///< BATTEN_INPUT_*
  uint32_t idCount = 0, typeCount = 0, seqTypeCount = 0, maxSeqTokens = 0;
};

/// A plan file; bucket counts within the lane's stage.
struct ManifestPlan {
  uint32_t lane, bucket, target, file;
};

/// Inputs of a lane and the digest of its outputs (batten_self_test_t). An array that the lane doesn't read is absent.
struct ManifestSelfTest {
  uint32_t lane = 0;
  std::vector<uint32_t> ids, cuSeqlens;
  std::optional<std::vector<uint32_t>> types;
  Digest digest = {};
  std::vector<uint32_t> markers = {};
  std::optional<std::vector<uint32_t>> cuMarkers = {}, seqTypes = {};
};

struct Manifest {
  std::string producerVersion, llvmVersion;
  std::vector<ManifestFile> files;
  std::vector<ManifestTarget> targets;
  std::vector<StageSpec> stages;
  std::vector<ManifestLane> lanes;
  std::vector<ManifestPlan> plans;
  std::vector<std::pair<std::string, std::string>> notes;
  std::vector<ManifestSelfTest> selfTests;
};

/// The bytes of manifest.bin. Plans may come in any order; they are written by target, lane, bucket.
///
/// Errors: an index that is out of range, a plan that is missing or there twice: our own mistakes, refused here so that no
/// broken bundle is written.
llvm::Expected<std::vector<uint8_t>> manifestBytes(const Manifest &manifest);

} // namespace batten

#endif // BATTEN_COMPILER_ARTIFACT_MANIFEST_H
