// ALBERT: layers share the weights of their group; embeddings are narrower and always projected; the pooler's linear layer
// has no module around it (tanh follows all the same). Source: transformers.models.albert.modeling_albert.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"albert."};

const EncoderFamily kAlbert = {
    .prefixes = kPrefixes,
    .wordTable = "embeddings.word_embeddings",
    .typeTable = "embeddings.token_type_embeddings",
    .positionTable = "embeddings.position_embeddings",
    .embeddingNorm = "embeddings.LayerNorm",
    .projection = EmbeddingProjection::Always,
    .projectionModule = "encoder.embedding_hidden_mapping_in",
    .layer = {.module = "encoder.albert_layer_groups.{}.albert_layers.0.",
              .query = "attention.query",
              .key = "attention.key",
              .value = "attention.value",
              .proj = "attention.dense",
              .attentionNorm = "attention.LayerNorm",
              .up = "ffn",
              .down = "ffn_output",
              .outputNorm = "full_layer_layer_norm"},
    .pooler = "pooler",
    .sequenceOut = "classifier",
    .tokenOut = "classifier",
};

} // namespace batten
