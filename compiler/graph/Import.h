// A model directory as a module of lanes: what `batten import` prints and `batten compile MODEL_DIR` lowers. The one file
// of this room that other rooms include.
#ifndef BATTEN_COMPILER_GRAPH_IMPORT_H
#define BATTEN_COMPILER_GRAPH_IMPORT_H

#include "compiler/spec/Checkpoint.h"
#include "compiler/spec/Spec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace batten {

/// Facts for people, in order: family, pooling, eps, whether a default was taken. `inspect` shows them.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct ImportedModel {
  /// Weights and lanes; verified; without batten.stage and batten.stored. Carries the facts (readFacts).
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<Checkpoint> checkpoint;
  std::vector<std::string> lanes; ///< main one first
  int64_t maxSeqTokens = 0;
  Facts facts;
  std::vector<std::string> notes; ///< strays, mismatches, defaults: one text each
};

/// Imports a Hugging Face or sentence-transformers directory. The context must know the batten dialect.
///
/// Lanes: `embed` (embedding) for a sentence-transformers directory; `classify` (logits, no softmax or sigmoid) for a
/// sequence or token classifier; `decide` (logits, act) and `embed` (pooled) for a decision checkpoint; in every case
/// `encode` (hidden, and pooled where the checkpoint has its pooler). Outputs and lanes are in this order. Weights are named
/// by what the checkpoint should have, also where it lacks them.
///
/// Errors: the last line holds the first cause, with file and key or tensor; see readModelDirConfig, readSentenceModules,
/// Checkpoint::open and Encoder::find.
llvm::Expected<ImportedModel> importGraph(mlir::MLIRContext &context, llvm::StringRef modelDir);

/// The text of graph.mlir. Values bear the names of what makes them (%l0.q), which readGraph reads back: they are the labels
/// of a plan's steps.
std::string printGraph(mlir::ModuleOp module);

/// Reads a graph.mlir. Values that have a name give it to the op that makes them.
///
/// Errors: the file can't be read; whatever the parser and the verifiers say, as file:line:column: text, the first one last.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> readGraph(mlir::MLIRContext &context, llvm::StringRef path);

/// The spec that belongs to an imported model: its lanes over the default stage, or over markerStages where one of
/// them reads markers; no targets.
Spec specFor(const ImportedModel &model, llvm::StringRef graphPath, llvm::StringRef checkpointPath);

/// Opens the checkpoint that a module's weights ask for: the file or directory at path, and the sub-directories that
/// weights name. Errors: as Checkpoint::open.
llvm::Expected<std::unique_ptr<Checkpoint>> openCheckpointFor(mlir::ModuleOp module, llvm::StringRef path);

/// Adds a batten.stored for each tensor of the checkpoint to the end of the module, element types as stored.
void addStored(mlir::ModuleOp module, const Checkpoint &checkpoint);

/// Adds a batten.stage for each stage, and gives each lane a graph of its name with its stage: lanes may share a graph, and
/// graphs of no lane are erased. Errors, with the place in the spec: a lane whose graph is not there, with the graphs that
/// are; a stage or lane with the name of another symbol.
llvm::Error addStages(mlir::ModuleOp module, llvm::ArrayRef<StageSpec> stages, llvm::ArrayRef<LaneSpec> lanes);

/// Copies the stages and lanes of `from`, a module after addStages, into `into`, another one. Weights of one directory,
/// tensor and type become one; weights that no lane of `from` reads stay behind.
///
/// Errors: a stage or lane with the name of another symbol of `into`, which is then half changed.
llvm::Error mergeLanes(mlir::ModuleOp into, mlir::ModuleOp from);

/// The sub-directories of the checkpoint that a module's weights name, "" among them where one is in the model's own.
std::vector<llvm::StringRef> weightDirs(mlir::ModuleOp module);

/// The facts that a module carries as its attribute batten.facts, an array of "key: value".
Facts readFacts(mlir::ModuleOp module);
void writeFacts(mlir::ModuleOp module, const Facts &facts);

} // namespace batten

#endif // BATTEN_COMPILER_GRAPH_IMPORT_H
