// DistilBERT: names of its own, no token types, no pooler; a classifier with relu between.
// Source: transformers.models.distilbert.modeling_distilbert.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"distilbert."};

const EncoderFamily kDistilBert = {
    .prefixes = kPrefixes,
    .wordTable = "embeddings.word_embeddings",
    .positionTable = "embeddings.position_embeddings",
    .embeddingNorm = "embeddings.LayerNorm",
    .layer = {.module = "transformer.layer.{}.",
              .query = "attention.q_lin",
              .key = "attention.k_lin",
              .value = "attention.v_lin",
              .proj = "attention.out_lin",
              .attentionNorm = "sa_layer_norm",
              .up = "ffn.lin1",
              .down = "ffn.lin2",
              .outputNorm = "output_layer_norm"},
    .sequenceDense = "pre_classifier",
    .sequenceActivation = Activation::relu,
    .sequenceOut = "classifier",
    .tokenOut = "classifier",
};

} // namespace batten
