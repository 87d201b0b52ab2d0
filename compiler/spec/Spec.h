// The spec of a bundle: batten.toml, the four-column bucket table, and the defaults of the short form. What is written here
// is checked here, with file, line and column; whether graphs, stages and tables agree with the model is checked by the
// pipeline through checkLimits and the names.
#ifndef BATTEN_COMPILER_SPEC_SPEC_H
#define BATTEN_COMPILER_SPEC_SPEC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace batten {

/// Most bytes of a spec, of nesting and of parts of a dotted key: checked before the parser, whose recursion needs some
/// 3.3 kB of stack a level. Most stages, buckets of a stage, lanes and targets.
inline constexpr uint64_t kMostSpecBytes = 1u << 20;
inline constexpr unsigned kMostSpecDepth = 16;
inline constexpr size_t kMostSpecEntries = 256;
/// Most tokens, sequences or markers of a bucket.
inline constexpr int64_t kMostBucketCount = int64_t(1) << 30;

/// "file:line:column" of something in a spec; empty for defaults.
using SpecPlace = std::string;

/// The largest batch of a plan.
struct Bucket {
  uint32_t tokens = 0, seqs = 0, markers = 0;
  auto operator<=>(const Bucket &) const = default; ///< by tokens, then seqs, then markers
};

struct StageSpec {
  std::string name;
  std::vector<Bucket> buckets; ///< smallest first, none twice, at least one
  SpecPlace place;
};

/// A lane, and the limits that the spec asserts for it. Limits come from the model's tables; these only check them.
struct LaneSpec {
  std::string name;
  std::string graph; ///< symbol without '@'
  std::string stage;
  std::optional<int64_t> idCount, typeCount, seqTypeCount, maxSeqTokens;
  SpecPlace place;
};

/// How weights are stored and what linears multiply in.
struct Precision {
  std::string weights = "f32"; ///< f32, f16, bf16 or i8
  std::string math = "f32";    ///< f32, bf16 or i8
  bool operator==(const Precision &) const = default;
};

/// The precision of that storage and math, where empty means: of weights what math takes (bf16 and i8 take their own), of math
/// f32, or i8 with weights of i8.
///
/// Errors: a name that is not known; a math that doesn't take the weights; both names.
llvm::Expected<Precision> choosePrecision(llvm::StringRef weights, llvm::StringRef math);

struct TargetSpec {
  std::string cpu;
  std::string weights, math; ///< as written; empty: not written
  SpecPlace place;
};

/// How far outputs may be from those of f32 weights and f32 math: [gate], or the options of the same names. A threshold that
/// is absent is not held. Units: margin and the two differences are in the outputs' own unit.
struct GateSpec {
  std::vector<std::string> batches; ///< safetensors files, joined to the spec's directory
  std::string lane;                 ///< the one that is measured; empty: every lane
  std::optional<double> maxAbs, maxMean, maxRel, minCosine, minArgmax, margin;
  SpecPlace place;

  bool isGiven() const {
    return !batches.empty() || !lane.empty() || maxAbs || maxMean || maxRel || minCosine || minArgmax || margin ||
           !place.empty();
  }
  /// What `stronger` says, and this where it says nothing.
  GateSpec overriddenBy(const GateSpec &stronger) const;
};

/// The thresholds of a gate by the names that the spec gives them, with the largest value that makes sense.
struct GateThreshold {
  llvm::StringLiteral key;
  std::optional<double> GateSpec::*value;
  double most;
};
llvm::ArrayRef<GateThreshold> gateThresholds();

struct Spec {
  std::string path;                ///< of the spec file, "" for the short form
  std::string graph;               ///< path of the graph, joined to the spec's directory
  std::string checkpoint;          ///< path, likewise
  std::vector<LaneSpec> lanes;     ///< main one first
  std::vector<StageSpec> stages;   ///< in the order of the file
  std::vector<TargetSpec> targets; ///< empty: the caller's default; all of one precision
  Precision precision;             ///< of all targets
  GateSpec gate;                   ///< as [gate] has it
};

/// Parses the text of a spec; paths in it are joined to the directory of `path` unless absolute.
///
/// Errors, as path:line:column: text: syntax; size and nesting beyond the limits; unknown keys (with a near name), wrong
/// types; missing [model], graph, checkpoint or lanes; names that are not [A-Za-z0-9_.-]; lanes, stages or buckets that are
/// there twice; a stage without buckets; counts that are impossible; a lane whose stage is not there; a stage that no lane
/// uses; a precision that choosePrecision refuses, or that is not the first target's; a threshold that is no number within its
/// bounds.
llvm::Expected<Spec> parseSpec(llvm::StringRef text, llvm::StringRef path);

/// The same from a file. Errors: also that it can't be read.
llvm::Expected<Spec> readSpec(llvm::StringRef path);

/// Parses the table `stage tokens seqs markers`, one bucket a line, blanks or tabs between, # for comments; a header line of
/// these four words is taken. Stages keep the order in which they first appear. Errors: as parseSpec.
llvm::Expected<std::vector<StageSpec>> parseBucketTable(llvm::StringRef text, llvm::StringRef path);
llvm::Expected<std::vector<StageSpec>> readBucketTable(llvm::StringRef path);

/// Replaces the spec's stages by those of a bucket table (none: they stay) and lets lanes use the stages that `assignments`
/// name, each "LANE=STAGE". A lane without an assignment keeps the stage of its stage's name, else takes the one of its own
/// name, else the only one. Stages that no lane uses are left out, with a note.
///
/// Errors: an assignment of another form, of an unknown lane, of an unknown stage, or a second one of a lane; a lane that
/// finds no stage. `where` is the table's path for error texts.
llvm::Error assignStages(Spec &spec, std::optional<std::vector<StageSpec>> table, llvm::StringRef where,
                         const std::vector<std::string> &assignments, std::vector<std::string> &notes);

/// The stage of the short form, `text`, for a model whose sequences have at most maxSeqTokens tokens (0: no limit).
///
/// 32 x 8, 128 x 32, 512 x 64 and 2048 x 256 (tokens x sequences). On a CPU a bucket costs memory, not time, so few are
/// enough: they are a factor of 4 apart, which bounds what an executor made for small batches only has to hold. The largest
/// takes at least four sequences of 512; for models with longer sequences one more bucket holds a single longest one.
/// Sequences are allowed generously (8 tokens each at most): the index tables they cost are small.
StageSpec defaultStage(int64_t maxSeqTokens);
/// The same buckets as two stages, for a model with lanes that read markers: `state` without any, `question` with as many
/// as tokens. These are the reference system's names (examples/decision.buckets).
std::vector<StageSpec> markerStages(const StageSpec &stage);

/// Checks a lane's name and a stage that no file gave, and sorts the stage's buckets. Errors: as parseSpec, place in front.
llvm::Error checkLaneName(llvm::StringRef name, const SpecPlace &place);
llvm::Error checkStage(StageSpec &stage);

/// Checks what a lane asserts against the model's tables (0: no such limit). Errors: both numbers, and the place.
llvm::Error checkLimits(const LaneSpec &lane, int64_t idCount, int64_t typeCount, int64_t seqTypeCount,
                        int64_t maxSeqTokens);

/// The text of a spec with what `batten import` knows: one stage, lanes that use it, no targets (so that the compiler's
/// default holds). Strings are quoted as TOML wants.
std::string printSpec(const Spec &spec);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_SPEC_H
