// A BERT-like family as data: what a checkpoint calls the parts of a post-norm encoder, and which parts there are. One file a
// family defines a table; Encoder builds them all. What a config says is in compiler/spec/ConfigFamily.h.
#ifndef BATTEN_COMPILER_GRAPH_ENCODERFAMILY_H
#define BATTEN_COMPILER_GRAPH_ENCODERFAMILY_H

#include "dialect/BattenDialect.h"

#include "llvm/ADT/StringRef.h"

namespace batten {

/// The linear layer between the embeddings' norm and the first layer.
enum class EmbeddingProjection { None, WhereWidthsDiffer, Always };

/// A layer's modules, each with .weight and .bias, below the layer's own name.
struct LayerNames {
  llvm::StringLiteral module; ///< "encoder.layer.{}.": {} is the layer, or the group whose weights it shares
  llvm::StringLiteral query, key, value, proj, attentionNorm, up, down, outputNorm;
};

/// Names below the family's prefix, but for heads. Empty where there is no such part.
struct EncoderFamily {
  llvm::StringLiteral prefix; ///< what the family's heads put before the encoder's names: "bert."
  llvm::StringLiteral wordTable, typeTable, positionTable, embeddingNorm;
  EmbeddingProjection projection = EmbeddingProjection::None;
  llvm::StringLiteral projectionModule = "";
  LayerNames layer;
  llvm::StringLiteral pooler; ///< dense, then tanh, of the first row
  /// Sequences are classified by out(act(dense(first row))), where dense is a module beside the encoder, or else by
  /// out(pooler). Tokens by one linear layer, named tokenOut.
  llvm::StringLiteral sequenceDense;
  Activation sequenceActivation = Activation::none;
  llvm::StringLiteral sequenceOut, tokenOut;
};

/// BERT's own, which RoBERTa and ELECTRA kept.
inline constexpr LayerNames kBertLayer = {.module = "encoder.layer.{}.",
                                          .query = "attention.self.query",
                                          .key = "attention.self.key",
                                          .value = "attention.self.value",
                                          .proj = "attention.output.dense",
                                          .attentionNorm = "attention.output.LayerNorm",
                                          .up = "intermediate.dense",
                                          .down = "output.dense",
                                          .outputNorm = "output.LayerNorm"};

extern const EncoderFamily kBert, kRoberta, kDistilBert, kElectra, kAlbert;

} // namespace batten

#endif // BATTEN_COMPILER_GRAPH_ENCODERFAMILY_H
