// GTE ("new"), under the names that its checkpoints have: BERT's order of norms, rotary positions, gated inner layers in one
// matrix with the activated half second, q, k and v in one matrix or (pack_qkv false) in three; a classifier over the pooler.
// Source: transformers.models.gte.modeling_gte and its renamings of checkpoints.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"new.", "gte."};

const EncoderFamily kGte = {
    .prefixes = kPrefixes,
    .wordTable = "embeddings.word_embeddings",
    .typeTable = "embeddings.token_type_embeddings",
    .embeddingNorm = "embeddings.LayerNorm",
    .layer = {.module = "encoder.layer.{}.",
              .query = "attention.q_proj",
              .key = "attention.k_proj",
              .value = "attention.v_proj",
              .qkv = "attention.qkv_proj",
              .proj = "attention.o_proj",
              .attentionNorm = "attn_ln",
              .upGate = "mlp.up_gate_proj",
              .activated = Half::second,
              .down = "mlp.down_proj",
              .outputNorm = "mlp_ln"},
    .pooler = "pooler.dense",
    .sequenceOut = "classifier",
    .tokenOut = "classifier",
};

} // namespace batten
