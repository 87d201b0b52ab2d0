// BERT. Source: transformers.models.bert.modeling_bert.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"bert."};

const EncoderFamily kBert = {
    .prefixes = kPrefixes,
    .wordTable = "embeddings.word_embeddings",
    .typeTable = "embeddings.token_type_embeddings",
    .positionTable = "embeddings.position_embeddings",
    .embeddingNorm = "embeddings.LayerNorm",
    .layer = kBertLayer,
    .pooler = "pooler.dense",
    .sequenceOut = "classifier",
    .tokenOut = "classifier",
};

} // namespace batten
