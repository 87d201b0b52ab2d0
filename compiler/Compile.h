// The whole pipeline as one function: model directory or spec in, bundle out. The one file that knows every room of the
// compiler. No command line, no printing: progress and the summary go to the caller, errors are returned.
#ifndef BATTEN_COMPILER_COMPILE_H
#define BATTEN_COMPILER_COMPILE_H

#include "compiler/spec/Spec.h"

#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace batten {

/// A step of a compile, told as it begins and as it moves on.
struct CompileProgress {
  std::string stage;  ///< "read checkpoint", "lower", "emit x86-64-v4", "pack weights", "write"
  std::string detail; ///< what is at hand, or ""
  uint64_t done = 0;  ///< of total, in the stage's own unit; 0 of 0 where it can't be told
  uint64_t total = 0;
};

/// Facts for people, as the manifest's NOTES have them: key and value.
using CompileNotes = std::vector<std::pair<std::string, std::string>>;

/// What to compile, and where to.
struct CompileRequest {
  std::string input;                ///< a model directory, or a spec file (batten.toml)
  std::string output;               ///< NAME.batten; not read by compileToMemory
  std::vector<std::string> targets; ///< "x86-64-v3", ..; empty: the spec's, or all that gain in the math
  std::string bucketsFile;          ///< four-column table; empty: the spec's, or the default table
  std::vector<std::string> stages;  ///< "LANE=STAGE": the stage that a lane uses; otherwise the spec's, or by its name
  std::string weights;              ///< storage: f32, f16, bf16, i8; empty: the spec's, or what the math takes
  std::string math;                 ///< f32, bf16, i8; empty: the spec's, or f32 (i8 with weights of i8)
  unsigned threads = 0;             ///< for the compiler itself; 0: one a target, at most the CPUs allowed
  bool selfTest = true;             ///< run the new bundle here once, to store its self-test
  std::function<void(const CompileProgress &)> progress; ///< may be empty; called on the caller's thread
  GateSpec gate; ///< taken before the spec's; compileToMemory, importModel and the jit hold no gate

  /// Measures a bundle that is whole, in `directory`, but not in the output's place yet, where the request or the spec has a
  /// gate: with its batches, at least one. What it returns goes into the manifest; its error leaves the output as it is. The
  /// compiler reads no batches, so the tools bring it (tools/batten-compile/Gate.h); a gate without it is refused.
  std::function<llvm::Expected<CompileNotes>(const std::string &directory, const GateSpec &gate)> measure;
};

/// What was done, for the closing summary.
struct CompileSummary {
  struct Stage {
    std::string name;
    double seconds;
  };
  struct File {
    std::string path; ///< below the bundle
    uint64_t bytes;
  };
  std::vector<Stage> stages;
  std::vector<File> files;
  uint64_t bytes = 0;                     ///< of all files
  std::string manifestDigest;             ///< SHA-256 of manifest.bin, hexadecimal
  std::vector<std::string> lanes;         ///< main one first
  std::vector<std::string> targets;       ///< with code in the bundle
  std::vector<std::string> unusedTensors; ///< stored, but asked for by no lane
  std::vector<std::string> notes;         ///< for people: strays ignored, defaults taken, no self-test because ..
};

/// A file of a bundle in memory. Data is 64-byte aligned.
class CompiledBlob {
public:
  CompiledBlob(std::string path, std::vector<uint8_t> bytes);
  const std::string &path() const { return filePath; }
  const uint8_t *data() const { return storage.data() + shift; }
  size_t size() const { return byteCount; }

private:
  std::string filePath;
  std::vector<uint8_t> storage;
  size_t shift = 0, byteCount = 0;
};

/// Compiles and replaces request.output atomically: a failure or a kill leaves what was there.
///
/// Errors: one or more lines; the last holds the first cause, with file, tensor or key, found and wanted.
llvm::Expected<CompileSummary> compile(const CompileRequest &request);

/// Compiles into memory; the blobs open with batten_bundle_open_blobs.
llvm::Expected<std::vector<CompiledBlob>> compileToMemory(const CompileRequest &request,
                                                          CompileSummary *summary = nullptr);

/// Writes graph.mlir and batten.toml for a model directory into outputDir, which is made where it is missing and must not
/// hold either file unless overwrite is set. The checkpoint stays where it is; the spec names it.
llvm::Expected<CompileSummary> importModel(const std::string &modelDir, const std::string &outputDir,
                                           bool overwrite = false);

/// Names of the targets that this build makes code for.
std::vector<std::string> knownTargets();

} // namespace batten

#endif // BATTEN_COMPILER_COMPILE_H
