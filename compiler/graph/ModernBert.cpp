// ModernBERT: norms before attention and inner layers but none before the first attention, q, k and v in one matrix, gated
// inner layers in one matrix with the activated half first, rotary positions, windows; a head of dense, activation and norm
// before every classifier. Masked-LM decoders are left out. Source: transformers.models.modernbert.modeling_modernbert.
#include "compiler/graph/EncoderFamily.h"

namespace batten {

static constexpr llvm::StringLiteral kPrefixes[] = {"model."};

const EncoderFamily kModernBert = {
    .prefixes = kPrefixes,
    .wordTable = "embeddings.tok_embeddings",
    .embeddingNorm = "embeddings.norm",
    .layer = {.module = "layers.{}.",
              .qkv = "attn.Wqkv",
              .proj = "attn.Wo",
              .attentionNorm = "attn_norm",
              .upGate = "mlp.Wi",
              .activated = Half::first,
              .down = "mlp.Wo",
              .outputNorm = "mlp_norm"},
    .normPlace = NormPlace::Pre,
    .firstAttentionNorm = false,
    .finalNorm = "final_norm",
    .sequenceDense = "head.dense",
    .sequenceActivation = Activation::gelu_erf,
    .sequenceNorm = "head.norm",
    .tokenDense = true,
    .sequenceOut = "classifier",
    .tokenOut = "classifier",
};

} // namespace batten
