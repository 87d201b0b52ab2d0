// The encoder and the heads of families as graphs: a family's table of names over the shared builder. Knows no
// family by name.
#ifndef BATTEN_COMPILER_GRAPH_ENCODER_H
#define BATTEN_COMPILER_GRAPH_ENCODER_H

#include "compiler/graph/EncoderFamily.h"
#include "compiler/graph/GraphBuilder.h"
#include "compiler/spec/Checkpoint.h"
#include "compiler/spec/ModelConfig.h"

#include "llvm/Support/Error.h"

namespace batten {

/// A checkpoint of a family as found: its names' prefix, and which parts it has.
class Encoder {
public:
  /// Finds the prefix and settles what the config leaves to the checkpoint. dir is the encoder's directory ("" or a
  /// sub-directory of the model). The checkpoint must outlive the encoder.
  ///
  /// Errors: several prefixes where none is one that is known; a classifier that the config does not explain.
  static llvm::Expected<Encoder> find(const ModelConfig &config, const EncoderFamily &family,
                                      const Checkpoint &checkpoint, llvm::StringRef dir);

  /// "bert.", "", "module.", ..
  const std::string &prefix() const { return namePrefix; }
  bool hasPooler() const { return pooler; }
  ModelHead head() const { return headKind; }
  int64_t labelCount() const { return labels; }
  /// What its lanes take from the batch.
  LaneInputs inputs() const {
    return {.types = !family.typeTable.empty() && config.typeVocabSize > 0, .maxSeqTokens = config.longestSequence};
  }
  /// Whether rows are normalised by their mean square alone.
  bool usesRms() const { return family.normKind == NormKind::Rms; }
  /// Whether norms stand before what they are for.
  bool isPreNorm() const { return family.normPlace == NormPlace::Pre; }
  const std::vector<std::string> &notes() const { return noteTexts; }

  /// Hidden states of the open lane.
  mlir::Value hidden(GraphBuilder &builder) const;
  /// Its own pooler: tanh(dense(first row)).
  mlir::Value pooled(GraphBuilder &builder, mlir::Value hidden) const;
  /// The classifier's logits: of each sequence, or of each token.
  mlir::Value logits(GraphBuilder &builder, mlir::Value hidden) const;

private:
  Encoder(const ModelConfig &config, const EncoderFamily &family, const Checkpoint &checkpoint, llvm::StringRef dir)
      : config(config), family(family), checkpoint(checkpoint), dir(dir.str()) {}

  llvm::Error findPrefix();
  llvm::Error findHead();
  void findSizes();
  bool stored(const llvm::Twine &name) const { return checkpoint.lookup(dir, name.str()) != nullptr; }
  /// True where the checkpoint has any part of the module.
  bool hasModule(const llvm::Twine &module) const { return stored(module + ".weight") || stored(module + ".bias"); }
  /// "encoder.layer.2." below the prefix: of a layer, or of the group whose weights it reads.
  std::string layerModule(int64_t index) const;
  /// The classifier's last module, by its full name.
  std::string outModule() const;
  /// The name as the checkpoint spells a norm's weight or bias: LayerNorm.weight, or LayerNorm.gamma as of old. Modules are
  /// full names here.
  WeightName norm(llvm::StringRef symbol, const std::string &module, bool weight) const;
  NormSpec normSpec(llvm::StringRef symbol, const std::string &module, int64_t width, llvm::StringRef widthKey) const;
  LinearSpec linearSpec(llvm::StringRef symbol, const std::string &module, int64_t k, int64_t n, llvm::StringRef kKey,
                        llvm::StringRef nKey, bool bias = true) const;
  /// A linear layer from hidden states to as many columns.
  LinearSpec squareSpec(llvm::StringRef symbol, const std::string &module, bool bias = true) const;
  /// q, k and v of a layer, and the layer's first inner linear layers; `group` begins the symbols.
  std::vector<LinearSpec> qkvSpecs(const std::string &group, const std::string &module) const;
  std::vector<LinearSpec> upSpecs(const std::string &group, const std::string &module) const;
  EncoderLayerSpec layerSpec(int64_t index) const;
  /// The dense layer before a classifier: norm(act(dense(x))).
  mlir::Value headDense(GraphBuilder &builder, mlir::Value x) const;

  ModelConfig config;
  const EncoderFamily &family;
  const Checkpoint &checkpoint;
  std::string dir;
  std::string namePrefix; ///< of the encoder
  std::string headPrefix; ///< of the classifier
  bool pooler = false;
  bool fusedQkv = false; ///< q, k and v are one matrix
  ModelHead headKind = ModelHead::None;
  int64_t labels = 0, wordRows = 0;
  std::string labelKey;
  std::vector<std::string> noteTexts;
};

} // namespace batten

#endif // BATTEN_COMPILER_GRAPH_ENCODER_H
