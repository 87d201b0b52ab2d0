// Builds graphs of the batten dialect as an importer thinks of them: named weights, lanes, layers. Ops are plain and
// unfused, as a person would write them; the passes fold and fuse. Knows no family and no file.
#ifndef BATTEN_COMPILER_GRAPH_GRAPHBUILDER_H
#define BATTEN_COMPILER_GRAPH_GRAPHBUILDER_H

#include "dialect/BattenDialect.h"

#include "llvm/ADT/StringMap.h"

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

/// A layer norm's weights, both [width].
struct NormSpec {
  WeightName weight, bias;
  int64_t width = 0;
  std::string widthKey;
  float eps = 0;
};

/// A post-norm encoder layer: h = norm(h + proj(attention(q, k, v))), then h = norm(h + down(act(up(h)))).
struct EncoderLayerSpec {
  std::string label; ///< "l0": ops are l0.q, l0.k, l0.v, l0.qkv, l0.attn, l0.proj, ..
  LinearSpec q, k, v, proj, up, down;
  NormSpec attentionNorm, outputNorm;
  int64_t heads = 0;
  Activation activation = Activation::none;
};

/// Adds weights and lanes to a module. One lane is open at a time; values belong to the lane they were made in.
class GraphBuilder {
public:
  /// The module must be empty; it gets its version.
  explicit GraphBuilder(mlir::ModuleOp module);

  /// Opens a lane. It takes ids and segments, and types where readsTypes is set.
  void beginLane(llvm::StringRef name, llvm::ArrayRef<LaneOutput> outputs, bool readsTypes);
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
  mlir::Value layerNorm(llvm::StringRef label, mlir::Value x, const NormSpec &spec);
  /// x itself where the activation is none.
  mlir::Value activation(llvm::StringRef label, mlir::Value x, Activation activation);
  mlir::Value pool(llvm::StringRef label, mlir::Value x, Pooling kind);
  /// The one part itself where there is one.
  mlir::Value concatCols(llvm::StringRef label, llvm::ArrayRef<mlir::Value> parts);
  mlir::Value l2Normalize(llvm::StringRef label, mlir::Value x, float eps);
  /// Attention scale is 1 / sqrt(head width), rounded once to f32.
  mlir::Value encoderLayer(mlir::Value hidden, const EncoderLayerSpec &spec);

private:
  mlir::Location at(llvm::StringRef label);
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
