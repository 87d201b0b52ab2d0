// Builds graphs of the batten dialect as an importer thinks of them: named weights, lanes, layers. Ops are plain and
// unfused, as a person would write them; the passes fold and fuse. Knows no family and no file.
#ifndef BATTEN_COMPILER_GRAPH_GRAPHBUILDER_H
#define BATTEN_COMPILER_GRAPH_GRAPHBUILDER_H

#include "dialect/BattenDialect.h"

#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <vector>

namespace batten {

/// What a lane's argument of this type is called in graph.mlir: ids, types, seq_types or seg.
llvm::StringRef argumentName(mlir::Type type);

/// A weight of a module: a symbol, and where the checkpoint has it.
struct WeightName {
  std::string symbol; ///< "l0.q.w"
  std::string tensor; ///< name in the checkpoint
  std::string dir;    ///< "" or a sub-directory of the model
};

/// One result of a lane.
struct LaneOutput {
  std::string name;
  RowKind rows;
  int64_t width;
};

/// A linear layer's weights: [n, k] and, where `bias.symbol` is not empty, [n]. Config keys name n and k in error texts.
struct LinearSpec {
  WeightName weight, bias;
  int64_t k = 0, n = 0;
  std::string kKey, nKey;
};

/// A norm's weights, both [width]; a layer norm with an empty `bias.symbol` has none, an RMS norm never has one.
struct NormSpec {
  WeightName weight, bias;
  int64_t width = 0;
  std::string widthKey;
  float eps = 0;
  bool rms = false;
};

/// An encoder layer. Post-norm: h = norm(h + proj(attention(qkv(h)))), then h = norm(h + down(inner(h))). Pre-norm:
/// h = h + proj(attention(qkv(norm(h)))), then h = h + down(inner(norm(h))). inner is act(up(x)), or of gated layers
/// act(one half of up(x)) times the other half.
struct EncoderLayerSpec {
  std::string label;           ///< "l0": ops are l0.q, l0.k, l0.v, l0.qkv, l0.rope, l0.attn, l0.proj, ..
  std::vector<LinearSpec> qkv; ///< q, k and v, or one for all
  LinearSpec proj, down;
  std::vector<LinearSpec> up; ///< one; of gated layers also the activated part and the plain part
  std::optional<Half> gated;  ///< which half is activated
  bool preNorm = false;
  std::optional<NormSpec> attentionNorm; ///< nothing in a pre-norm layer: attention reads h itself
  NormSpec outputNorm;
  int64_t heads = 0, kvHeads = 0, headWidth = 0;
  double ropeTheta = 0; ///< 0: no rotary embedding
  double ropeDivisor = 1;
  int64_t window = -1; ///< keys on either side; -1: all of the sequence
  Activation activation = Activation::none;
};

/// What a lane takes from the batch beside ids and segments, and how long its sequences may be (0: as long as tables are).
struct LaneInputs {
  bool types = false, seqTypes = false;
  int64_t maxSeqTokens = 0;
};

/// Adds weights and lanes to a module. One lane is open at a time; values belong to the lane they were made in.
class GraphBuilder {
public:
  /// The module must be empty; it gets its version.
  explicit GraphBuilder(mlir::ModuleOp module);

  /// Opens a lane.
  void beginLane(llvm::StringRef name, llvm::ArrayRef<LaneOutput> outputs, LaneInputs inputs);
  /// Closes the lane with its results, in the order of its outputs.
  void endLane(llvm::ArrayRef<mlir::Value> results);

  mlir::Value embedWords(llvm::StringRef label, const WeightName &table, llvm::ArrayRef<llvm::StringRef> dims,
                         int64_t rows, int64_t width);
  mlir::Value embedTypes(llvm::StringRef label, const WeightName &table, llvm::ArrayRef<llvm::StringRef> dims,
                         int64_t rows, int64_t width);
  mlir::Value embedPositions(llvm::StringRef label, const WeightName &table, llvm::ArrayRef<llvm::StringRef> dims,
                             int64_t rows, int64_t width, int64_t offset);
  mlir::Value add(llvm::StringRef label, mlir::Value a, mlir::Value b);
  mlir::Value linear(llvm::StringRef label, mlir::Value x, const LinearSpec &spec);
  mlir::Value norm(llvm::StringRef label, mlir::Value x, const NormSpec &spec);
  /// x itself where the activation is none.
  mlir::Value activation(llvm::StringRef label, mlir::Value x, Activation activation);
  mlir::Value pool(llvm::StringRef label, mlir::Value x, Pooling kind);
  /// The one part itself where there is one.
  mlir::Value concatCols(llvm::StringRef label, llvm::ArrayRef<mlir::Value> parts);
  /// Rows of tokens plus the row of the sequence's type in a table [types, width].
  mlir::Value addType(llvm::StringRef label, mlir::Value x, const WeightName &table,
                      llvm::ArrayRef<llvm::StringRef> dims, int64_t types);
  /// The rows of markers among rows of tokens.
  mlir::Value gatherMarkers(llvm::StringRef label, mlir::Value x);
  /// Each sequence's first row and four numbers about its markers' logits.
  mlir::Value decisionFeatures(llvm::StringRef label, mlir::Value x, mlir::Value logits);
  mlir::Value l2Normalize(llvm::StringRef label, mlir::Value x, float eps);
  /// Attention scale is 1 / sqrt(head width), rounded once to f32.
  mlir::Value encoderLayer(mlir::Value hidden, const EncoderLayerSpec &spec);
  /// Asks for a weight that no lane reads: the checkpoint must have it.
  void require(const WeightName &name, llvm::ArrayRef<llvm::StringRef> dims, llvm::ArrayRef<int64_t> shape);

private:
  mlir::Location at(llvm::StringRef label);
  /// Linears of one input, side by side: label + joined, made of label + each part where there are several.
  mlir::Value linears(const std::string &label, llvm::StringRef joined, llvm::ArrayRef<llvm::StringRef> parts,
                      mlir::Value x, llvm::ArrayRef<LinearSpec> specs);
  /// proj(attention(qkv(x))).
  mlir::Value attention(mlir::Value x, const EncoderLayerSpec &spec);
  /// down(inner(x)).
  mlir::Value innerLayers(mlir::Value x, const EncoderLayerSpec &spec);
  /// The weight as a value of the open lane; its symbol is made the first time it is asked for.
  mlir::Value param(const WeightName &name, llvm::ArrayRef<llvm::StringRef> dims, llvm::ArrayRef<int64_t> shape);

  mlir::ModuleOp module;
  mlir::OpBuilder weights; ///< before the first lane
  mlir::OpBuilder body;    ///< at the end of the open lane
  GraphOp lane;
  bool lanesBegun = false;
  llvm::StringMap<WeightOp> bySymbol;
  llvm::StringMap<mlir::Value> laneParams;
};

} // namespace batten

#endif // BATTEN_COMPILER_GRAPH_GRAPHBUILDER_H
