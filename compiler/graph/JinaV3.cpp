// Jina embeddings v3, and XLM-RoBERTa with rotary positions, under the names that their checkpoints have: BERT's order of
// norms, q, k and v in one matrix, plain inner layers, RoBERTa's classifiers. Adapters are refused with the config.
// Source: transformers.models.jina_embeddings_v3.modeling_jina_embeddings_v3 and its renamings of checkpoints.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"roberta."};

const EncoderFamily kJinaV3 = {
    .prefixes = kPrefixes,
    .wordTable = "embeddings.word_embeddings",
    .typeTable = "embeddings.token_type_embeddings",
    .embeddingNorm = "emb_ln",
    .layer = {.module = "encoder.layers.{}.",
              .qkv = "mixer.Wqkv",
              .proj = "mixer.out_proj",
              .attentionNorm = "norm1",
              .up = "mlp.fc1",
              .down = "mlp.fc2",
              .outputNorm = "norm2"},
    .pooler = "pooler.dense",
    .sequenceDense = "classifier.dense",
    .sequenceActivation = Activation::tanh,
    .sequenceOut = "classifier.out_proj",
    .tokenOut = "classifier",
};

} // namespace batten
