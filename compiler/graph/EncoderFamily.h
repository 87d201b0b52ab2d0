// An encoder family as data: what a checkpoint calls the parts of an encoder, and which parts there are. One file a family
// defines a table; Encoder builds them all. What a config says is in compiler/spec/ConfigFamily.h.
#ifndef BATTEN_COMPILER_GRAPH_ENCODERFAMILY_H
#define BATTEN_COMPILER_GRAPH_ENCODERFAMILY_H

#include "dialect/BattenDialect.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace batten {

/// The linear layer between the embeddings' norm and the first layer.
enum class EmbeddingProjection { None, WhereWidthsDiffer, Always };

/// Where a layer's two norms stand. Post: after each sum. Pre: before attention and before the inner layers, and one more
/// after the last layer.
enum class NormPlace { Post, Pre };
enum class NormKind { Layer, Rms };

/// A layer's modules, each with .weight and .bias, below the layer's own name. Empty where there is none. Where a family has
/// two ways of storing a part, the checkpoint tells.
struct LayerNames {
  llvm::StringLiteral module; ///< "encoder.layer.{}.": {} is the layer, or the group whose weights it shares
  llvm::StringLiteral query = "", key = "", value = "";
  llvm::StringLiteral qkv = ""; ///< the three in one, in this order
  llvm::StringLiteral proj;
  llvm::StringLiteral attentionNorm; ///< post: of h + attention; pre: before attention
  llvm::StringLiteral up = "";       ///< of layers that are not gated
  llvm::StringLiteral gate = "";     ///< of gated layers, the linear layer whose output is activated
  llvm::StringLiteral plain = "";    ///< .. and the one that it is multiplied by
  llvm::StringLiteral upGate = "";   ///< the two in one
  Half activated = Half::first;      ///< which half of upGate is activated
  llvm::StringLiteral down;
  llvm::StringLiteral outputNorm; ///< post: of h + inner layers; pre: before the inner layers
};

/// Names below the family's prefix, but for heads. Empty where there is no such part.
struct EncoderFamily {
  llvm::ArrayRef<llvm::StringLiteral> prefixes; ///< what the family's heads put before the encoder's names: "bert."
  llvm::StringLiteral wordTable;
  llvm::StringLiteral typeTable = "", positionTable = "", embeddingNorm = "";
  EmbeddingProjection projection = EmbeddingProjection::None;
  llvm::StringLiteral projectionModule = "";
  LayerNames layer;
  NormPlace normPlace = NormPlace::Post;
  NormKind normKind = NormKind::Layer;
  bool firstAttentionNorm = true;     ///< false: layer 0 reads the embeddings themselves
  llvm::StringLiteral finalNorm = ""; ///< after the last layer
  llvm::StringLiteral pooler = "";    ///< dense, then tanh, of the first row
  /// Sequences are classified by out(norm(act(dense(pooled row)))), where dense and norm are modules beside the encoder, or
  /// else by out(pooler). Rows are pooled as the config says, or else the first is taken. Tokens are classified by one linear
  /// layer, named tokenOut, with the dense layer before it where tokenDense is set.
  llvm::StringLiteral sequenceDense = "";
  Activation sequenceActivation = Activation::none; ///< unless the config says another
  llvm::StringLiteral sequenceNorm = "";
  bool tokenDense = false;
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

extern const EncoderFamily kBert, kRoberta, kDistilBert, kElectra, kAlbert, kModernBert, kNomicBert, kGte, kEuroBert,
    kJinaV3;

} // namespace batten

#endif // BATTEN_COMPILER_GRAPH_ENCODERFAMILY_H
