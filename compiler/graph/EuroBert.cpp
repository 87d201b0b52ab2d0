// EuroBERT: RMS norms before attention and inner layers, no norm of the embeddings, rotary positions, fewer keys than heads,
// gated inner layers; sequences are classified by dense, gelu (erf, whatever hidden_act is) and classifier, pooled before or
// after; tokens by the classifier alone. Masked-LM heads are left out.
// Source: transformers.models.eurobert.modeling_eurobert.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"model."};

const EncoderFamily kEuroBert = {
    .prefixes = kPrefixes,
    .wordTable = "embed_tokens",
    .layer = {.module = "layers.{}.",
              .query = "self_attn.q_proj",
              .key = "self_attn.k_proj",
              .value = "self_attn.v_proj",
              .proj = "self_attn.o_proj",
              .attentionNorm = "input_layernorm",
              .gate = "mlp.gate_proj",
              .plain = "mlp.up_proj",
              .down = "mlp.down_proj",
              .outputNorm = "post_attention_layernorm"},
    .normPlace = NormPlace::Pre,
    .normKind = NormKind::Rms,
    .finalNorm = "norm",
    .sequenceDense = "dense",
    .sequenceActivation = Activation::gelu_erf,
    .sequenceOut = "classifier",
    .tokenOut = "classifier",
};

} // namespace batten
