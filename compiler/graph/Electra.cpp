// ELECTRA: BERT's layers over embeddings that may be narrower; no pooler; a classifier with gelu (erf, whatever hidden_act is)
// between. Discriminator and generator heads are left out. Source: transformers.models.electra.modeling_electra.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"electra."};

const EncoderFamily kElectra = {
    .prefixes = kPrefixes,
    .wordTable = "embeddings.word_embeddings",
    .typeTable = "embeddings.token_type_embeddings",
    .positionTable = "embeddings.position_embeddings",
    .embeddingNorm = "embeddings.LayerNorm",
    .projection = EmbeddingProjection::WhereWidthsDiffer,
    .projectionModule = "embeddings_project",
    .layer = kBertLayer,
    .sequenceDense = "classifier.dense",
    .sequenceActivation = Activation::gelu_erf,
    .sequenceOut = "classifier.out_proj",
    .tokenOut = "classifier",
};

} // namespace batten
