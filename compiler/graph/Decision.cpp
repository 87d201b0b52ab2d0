// See the header. Names of the head are torch's: TransformerEncoderLayer below head.layers, Sequential below scorer and
// act_head, where activations take a number too.
#include "compiler/graph/Decision.h"

namespace batten {

namespace {

constexpr float kHeadEps = 1e-5f;
constexpr int64_t kActWidth = 256, kActs = 2;

/// Weights of the head by their names; the head is never in a directory of its own.
struct HeadNames {
  int64_t width;
  std::string widthKey;

  /// A linear layer stored as module + suffix: ".weight", or "_weight" of an attention's q, k and v.
  LinearSpec linear(const std::string &symbol, const std::string &module, int64_t k, int64_t n, const std::string &kKey,
                    const std::string &nKey, const std::string &dot = ".") const {
    return {{symbol + ".w", module + dot + "weight", ""}, {symbol + ".b", module + dot + "bias", ""}, k, n, kKey, nKey};
  }
  NormSpec norm(const std::string &symbol, const std::string &module) const {
    NormSpec spec;
    spec.weight = {symbol + ".w", module + ".weight", ""};
    spec.bias = {symbol + ".b", module + ".bias", ""};
    spec.width = width;
    spec.widthKey = widthKey;
    spec.eps = kHeadEps;
    return spec;
  }
};

EncoderLayerSpec headLayer(const HeadNames &names, int64_t heads, int64_t index) {
  std::string label = "h" + std::to_string(index), symbol = label + ".";
  std::string module = "head.layers." + std::to_string(index) + ".";
  int64_t width = names.width;
  const std::string &key = names.widthKey;
  EncoderLayerSpec spec;
  spec.label = label;
  spec.preNorm = true;
  spec.attentionNorm = names.norm(symbol + "attn_norm", module + "norm1");
  spec.qkv = {names.linear(symbol + "qkv", module + "self_attn.in_proj", width, 3 * width, key, "3 * " + key, "_")};
  spec.proj = names.linear(symbol + "proj", module + "self_attn.out_proj", width, width, key, key);
  spec.outputNorm = names.norm(symbol + "norm", module + "norm2");
  spec.up = {names.linear(symbol + "up", module + "linear1", width, 4 * width, key, "4 * " + key)};
  spec.down = names.linear(symbol + "down", module + "linear2", 4 * width, width, "4 * " + key, key);
  spec.heads = spec.kvHeads = heads;
  spec.headWidth = kDecisionHeadWidth;
  spec.activation = Activation::relu;
  return spec;
}

/// logits and act.
llvm::SmallVector<mlir::Value> decide(GraphBuilder &builder, const ModelConfig &config, const Encoder &encoder) {
  HeadNames names{config.hiddenSize, config.hiddenSizeKey};
  const std::string &key = names.widthKey;
  mlir::Value h = builder.addType("type", encoder.hidden(builder), {"type.w", "type_emb.weight", ""},
                                  {"sequence types", key}, kDecisionTypes);
  for (int64_t i = 0; i < *config.decisionLayers; ++i)
    h = builder.encoderLayer(h, headLayer(names, config.heads, i));

  mlir::Value marked =
      builder.norm("scorer.norm", builder.gatherMarkers("markers", h), names.norm("scorer.norm", "scorer.0"));
  marked = builder.linear("scorer.dense", marked,
                          names.linear("scorer.dense", "scorer.1", names.width, names.width, key, key));
  marked = builder.activation("scorer.act", marked, Activation::gelu_erf);
  mlir::Value logits =
      builder.linear("scorer", marked, names.linear("scorer", "scorer.3", names.width, 1, key, "one logit"));

  int64_t features = names.width + kDecisionFeatures;
  mlir::Value x = builder.decisionFeatures("features", h, logits);
  x = builder.linear("act.dense", x,
                     names.linear("act.dense", "act_head.0", features, kActWidth, key + " + 4", "inner size"));
  x = builder.activation("act.act", x, Activation::gelu_erf);
  x = builder.linear("act", x, names.linear("act", "act_head.2", kActWidth, kActs, "inner size", "two logits"));
  return {logits, x};
}

} // namespace

void buildDecisionLanes(GraphBuilder &builder, const ModelConfig &config, const Encoder &encoder,
                        std::vector<std::string> &lanes) {
  lanes = {"decide", "embed", "encode"};
  builder.beginLane("decide", {{"logits", RowKind::markers, 1}, {"act", RowKind::seqs, kActs}}, {.seqTypes = true});
  builder.endLane(decide(builder, config, encoder));
  builder.require({"temperature", "temperature", ""}, {"sequence types"}, {kDecisionTypes});
  builder.beginLane("embed", {{"pooled", RowKind::seqs, config.hiddenSize}}, {});
  builder.endLane(builder.pool("pool", encoder.hidden(builder), Pooling::mean));
  builder.beginLane("encode", {{"hidden", RowKind::tokens, config.hiddenSize}}, {});
  builder.endLane(encoder.hidden(builder));
}

} // namespace batten
