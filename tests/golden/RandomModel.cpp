// See RandomModel.h. Weights are scaled so that attention is peaked and activations stay near 1.
#include "tests/golden/RandomModel.h"
#include "tests/SafetensorsWriter.h"

#include <cmath>

namespace batten::test {

namespace {

/// Random tensors of a checkpoint.
class RandomTensors {
public:
  explicit RandomTensors(uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ull + 1) {}

  void add(const std::string &tensor, std::vector<int64_t> shape, double scale, double shift = 0) {
    int64_t count = 1;
    for (int64_t dim : shape)
      count *= dim;
    std::vector<float> values(count);
    for (float &value : values)
      value = static_cast<float>(shift + scale * normal());
    file.addF32(tensor, shape, values);
  }
  void norm(const std::string &tensor, int64_t width, bool bias = true) {
    add(tensor + ".weight", {width}, 0.1, 1);
    if (bias)
      add(tensor + ".bias", {width}, 0.1);
  }
  void linear(const std::string &tensor, int64_t out, int64_t in, double gain, bool bias = true,
              const std::string &separator = ".") {
    add(tensor + separator + "weight", {out, in}, gain / std::sqrt(double(in)));
    if (bias)
      add(tensor + separator + "bias", {out}, 0.1);
  }

  SafetensorsWriter file;

private:
  /// Sum of four 16-bit uniforms: near enough to normal, of variance 1, and fast enough for large models.
  float normal() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    uint32_t sum = 0;
    for (int i = 0; i < 4; ++i)
      sum += static_cast<uint32_t>(state >> (16 * i) & 0xFFFF);
    return (static_cast<float>(sum) / 65536.0f - 2.0f) * 1.7320508f;
  }

  uint64_t state;
};

std::string number(int64_t value) { return std::to_string(value); }

} // namespace

std::string RandomBert::write(const TempDir &dir, const std::string &name) const {
  RandomTensors tensors(seed);
  tensors.add("embeddings.word_embeddings.weight", {vocab, hidden}, words);
  tensors.add("embeddings.position_embeddings.weight", {positions, hidden}, 0.3);
  tensors.add("embeddings.token_type_embeddings.weight", {2, hidden}, 0.3);
  tensors.norm("embeddings.LayerNorm", hidden);
  for (int64_t i = 0; i < layers; ++i) {
    std::string layer = "encoder.layer." + std::to_string(i) + ".";
    tensors.linear(layer + "attention.self.query", hidden, hidden, 1.5);
    tensors.linear(layer + "attention.self.key", hidden, hidden, 1.5);
    tensors.linear(layer + "attention.self.value", hidden, hidden, 1);
    tensors.linear(layer + "attention.output.dense", hidden, hidden, 1);
    tensors.norm(layer + "attention.output.LayerNorm", hidden);
    tensors.linear(layer + "intermediate.dense", inner, hidden, 1);
    tensors.linear(layer + "output.dense", hidden, inner, 1);
    tensors.norm(layer + "output.LayerNorm", hidden);
  }
  if (pooler)
    tensors.linear("pooler.dense", hidden, hidden, 1);
  dir.write(name + "/config.json",
            "{\"architectures\": [\"BertModel\"], \"model_type\": \"bert\", \"hidden_act\": \"" + act +
                "\", \"hidden_size\": " + number(hidden) + ", \"intermediate_size\": " + number(inner) +
                ", \"layer_norm_eps\": 1e-12, \"max_position_embeddings\": " + number(positions) +
                ", \"num_attention_heads\": " + number(heads) + ", \"num_hidden_layers\": " + number(layers) +
                ", \"pad_token_id\": 0, \"type_vocab_size\": 2, \"vocab_size\": " + number(vocab) + "}\n");
  dir.write(name + "/model.safetensors", tensors.file.bytes());
  return dir.path(name);
}

std::string RandomDecision::write(const TempDir &dir, const std::string &name) const {
  int64_t hidden = 64 * heads;
  RandomTensors tensors(seed);
  tensors.add("encoder.embeddings.tok_embeddings.weight", {vocab, hidden}, 0.8);
  tensors.norm("encoder.embeddings.norm", hidden, false);
  for (int64_t i = 0; i < layers; ++i) {
    std::string layer = "encoder.layers." + number(i) + ".";
    if (i)
      tensors.norm(layer + "attn_norm", hidden, false);
    tensors.linear(layer + "attn.Wqkv", 3 * hidden, hidden, 1.3, false);
    tensors.linear(layer + "attn.Wo", hidden, hidden, 1, false);
    tensors.norm(layer + "mlp_norm", hidden, false);
    tensors.linear(layer + "mlp.Wi", 2 * inner, hidden, 1, false);
    tensors.linear(layer + "mlp.Wo", hidden, inner, 1, false);
  }
  tensors.norm("encoder.final_norm", hidden, false);
  tensors.add("type_emb.weight", {types, hidden}, 0.8);
  for (int64_t i = 0; i < headLayers; ++i) {
    std::string layer = "head.layers." + number(i) + ".";
    tensors.linear(layer + "self_attn.in_proj", 3 * hidden, hidden, 1.3, true, "_");
    tensors.linear(layer + "self_attn.out_proj", hidden, hidden, 1);
    tensors.linear(layer + "linear1", 4 * hidden, hidden, 1);
    tensors.linear(layer + "linear2", hidden, 4 * hidden, 1);
    tensors.norm(layer + "norm1", hidden);
    tensors.norm(layer + "norm2", hidden);
  }
  tensors.norm("scorer.0", hidden);
  tensors.linear("scorer.1", hidden, hidden, 1);
  tensors.linear("scorer.3", 1, hidden, 1);
  tensors.linear("act_head.0", 256, hidden + 4, 1);
  tensors.linear("act_head.2", 2, 256, 1);
  tensors.add("temperature", {3}, 0, 1);
  dir.write(name + "/config.json",
            "{\"model_type\": \"modernbert\", \"hidden_activation\": \"gelu\", \"attention_bias\": false, "
            "\"mlp_bias\": false, \"norm_bias\": false, \"max_position_embeddings\": 512, \"max_len\": 512, "
            "\"head_max_len\": 64, \"hidden_size\": " +
                number(hidden) + ", \"num_attention_heads\": " + number(heads) +
                ", \"num_hidden_layers\": " + number(layers) + ", \"intermediate_size\": " + number(inner) +
                ", \"vocab_size\": " + number(vocab) + ", \"local_attention\": " + number(window) +
                ", \"global_attn_every_n_layers\": " + number(globalEvery) +
                ", \"global_rope_theta\": 160000.0, \"local_rope_theta\": 10000.0, \"norm_eps\": 1e-05, "
                "\"head_layers\": " +
                number(headLayers) + "}\n");
  dir.write(name + "/model.safetensors", tensors.file.bytes());
  return dir.path(name);
}

} // namespace batten::test
