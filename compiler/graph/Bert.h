// The bert family: names of its tensors in a checkpoint, and its encoder and heads as graphs.
#ifndef BATTEN_COMPILER_GRAPH_BERT_H
#define BATTEN_COMPILER_GRAPH_BERT_H

#include "compiler/graph/GraphBuilder.h"
#include "compiler/spec/Checkpoint.h"
#include "compiler/spec/ModelConfig.h"

#include "llvm/Support/Error.h"

namespace batten {

/// A bert checkpoint as found: its names' prefix, and which parts it has.
///
/// Source: transformers.models.bert.modeling_bert (BertModel and its heads).
class Bert {
public:
  /// Finds the prefix and settles what the config leaves to the checkpoint. dir is the encoder's directory ("" or a
  /// sub-directory of the model).
  ///
  /// Errors: several prefixes where none is one that is known; a classifier that the config does not explain.
  static llvm::Expected<Bert> find(const ModelConfig &config, const Checkpoint &checkpoint, llvm::StringRef dir);

  /// "bert.", "", "module.", ..
  const std::string &prefix() const { return namePrefix; }
  bool hasPooler() const { return pooler; }
  ModelHead head() const { return headKind; }
  int64_t labelCount() const { return labels; }
  const std::vector<std::string> &notes() const { return noteTexts; }

  /// Hidden states of the open lane.
  mlir::Value encoder(GraphBuilder &builder) const;
  /// Its own pooler: tanh(dense(first row)).
  mlir::Value pooled(GraphBuilder &builder, mlir::Value hidden) const;
  /// The classifier's logits: of the pooled row, or of each token's.
  mlir::Value logits(GraphBuilder &builder, mlir::Value hidden) const;

private:
  Bert(const ModelConfig &config, const Checkpoint &checkpoint, llvm::StringRef dir)
      : config(config), checkpoint(checkpoint), dir(dir.str()) {}

  llvm::Error findPrefix();
  llvm::Error findHead();
  void findSizes();
  bool stored(const llvm::Twine &name) const { return checkpoint.lookup(dir, name.str()) != nullptr; }
  /// The name as the checkpoint spells a norm's weight or bias: LayerNorm.weight, or LayerNorm.gamma as of old.
  WeightName norm(llvm::StringRef symbol, const std::string &module, bool weight) const;
  NormSpec normSpec(llvm::StringRef symbol, const std::string &module) const;
  LinearSpec linearSpec(llvm::StringRef symbol, const std::string &module, int64_t k, int64_t n, llvm::StringRef kKey,
                        llvm::StringRef nKey) const;
  EncoderLayerSpec layerSpec(int64_t index) const;

  ModelConfig config;
  const Checkpoint &checkpoint;
  std::string dir;
  std::string namePrefix; ///< of the encoder
  std::string headPrefix; ///< of the classifier
  bool pooler = false;
  ModelHead headKind = ModelHead::None;
  int64_t labels = 0, wordRows = 0;
  std::string labelKey;
  std::vector<std::string> noteTexts;
};

} // namespace batten

#endif // BATTEN_COMPILER_GRAPH_BERT_H
