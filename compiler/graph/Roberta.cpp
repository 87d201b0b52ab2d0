// RoBERTa, XLM-RoBERTa and CamemBERT: BERT's layers, positions from pad_token_id + 1 (the config tells), a classifier with a
// dense layer of its own in place of the pooler. Source: transformers.models.roberta.modeling_roberta.
//
// transformers gives a padding id inside a sequence the padding's position and does not count it. Here every token of a
// sequence counts: packed sequences hold no padding, so a padding id inside one is a token like any other.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"roberta."};

const EncoderFamily kRoberta = {
    .prefixes = kPrefixes,
    .wordTable = "embeddings.word_embeddings",
    .typeTable = "embeddings.token_type_embeddings",
    .positionTable = "embeddings.position_embeddings",
    .embeddingNorm = "embeddings.LayerNorm",
    .layer = kBertLayer,
    .pooler = "pooler.dense",
    .sequenceDense = "classifier.dense",
    .sequenceActivation = Activation::tanh,
    .sequenceOut = "classifier.out_proj",
    .tokenOut = "classifier",
};

} // namespace batten
