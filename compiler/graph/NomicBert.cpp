// Nomic's BERT, under the names that its checkpoints have: norms after each sum, q, k and v in one matrix, rotary positions;
// inner layers with fc12 activated and fc11 beside it, or fc1 alone where the activation is not gated.
// Source: transformers.models.nomic_bert.modeling_nomic_bert and its renamings of checkpoints.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"bert.", "nomic_bert."};

const EncoderFamily kNomicBert = {
    .prefixes = kPrefixes,
    .wordTable = "embeddings.word_embeddings",
    .typeTable = "embeddings.token_type_embeddings",
    .embeddingNorm = "emb_ln",
    .layer = {.module = "encoder.layers.{}.",
              .qkv = "attn.Wqkv",
              .proj = "attn.out_proj",
              .attentionNorm = "norm1",
              .up = "mlp.fc1",
              .gate = "mlp.fc12",
              .plain = "mlp.fc11",
              .down = "mlp.fc2",
              .outputNorm = "norm2"},
    .pooler = "pooler.dense",
    .sequenceOut = "classifier",
    .tokenOut = "classifier",
};

} // namespace batten
