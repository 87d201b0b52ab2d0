// BERT. Source: transformers.models.bert.modeling_bert.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

const EncoderFamily kBert = {
    .prefix = "bert.",
    .wordTable = "embeddings.word_embeddings",
    .typeTable = "embeddings.token_type_embeddings",
    .positionTable = "embeddings.position_embeddings",
    .embeddingNorm = "embeddings.LayerNorm",
    .layer = kBertLayer,
    .pooler = "pooler.dense",
    .sequenceDense = "",
    .sequenceOut = "classifier",
    .tokenOut = "classifier",
};

} // namespace batten
