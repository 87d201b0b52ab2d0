// See RandomBert.h. Weights are scaled so that attention is peaked and activations stay near 1.
#include "tests/golden/RandomBert.h"
#include "tests/SafetensorsWriter.h"

#include <cmath>

namespace batten::test {

std::string RandomBert::write(const TempDir &dir, const std::string &name) const {
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  // Sum of four 16-bit uniforms: near enough to normal, of variance 1, and fast enough for large models.
  auto normal = [&state] {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    uint32_t sum = 0;
    for (int i = 0; i < 4; ++i)
      sum += static_cast<uint32_t>(state >> (16 * i) & 0xFFFF);
    return (static_cast<float>(sum) / 65536.0f - 2.0f) * 1.7320508f;
  };
  SafetensorsWriter file;
  auto add = [&](const std::string &tensor, std::vector<int64_t> shape, double scale, double shift = 0) {
    int64_t count = 1;
    for (int64_t dim : shape)
      count *= dim;
    std::vector<float> values(count);
    for (float &value : values)
      value = static_cast<float>(shift + scale * normal());
    file.addF32(tensor, shape, values);
  };
  auto norm = [&](const std::string &tensor) {
    add(tensor + ".weight", {hidden}, 0.1, 1);
    add(tensor + ".bias", {hidden}, 0.1);
  };
  auto linear = [&](const std::string &tensor, int64_t out, int64_t in, double gain) {
    add(tensor + ".weight", {out, in}, gain / std::sqrt(double(in)));
    add(tensor + ".bias", {out}, 0.1);
  };
  add("embeddings.word_embeddings.weight", {vocab, hidden}, 0.5);
  add("embeddings.position_embeddings.weight", {positions, hidden}, 0.3);
  add("embeddings.token_type_embeddings.weight", {2, hidden}, 0.3);
  norm("embeddings.LayerNorm");
  for (int64_t i = 0; i < layers; ++i) {
    std::string layer = "encoder.layer." + std::to_string(i) + ".";
    linear(layer + "attention.self.query", hidden, hidden, 1.5);
    linear(layer + "attention.self.key", hidden, hidden, 1.5);
    linear(layer + "attention.self.value", hidden, hidden, 1);
    linear(layer + "attention.output.dense", hidden, hidden, 1);
    norm(layer + "attention.output.LayerNorm");
    linear(layer + "intermediate.dense", inner, hidden, 1);
    linear(layer + "output.dense", hidden, inner, 1);
    norm(layer + "output.LayerNorm");
  }
  if (pooler)
    linear("pooler.dense", hidden, hidden, 1);
  auto number = [](int64_t value) { return std::to_string(value); };
  dir.write(name + "/config.json",
            "{\"architectures\": [\"BertModel\"], \"model_type\": \"bert\", \"hidden_act\": \"" + act +
                "\", \"hidden_size\": " + number(hidden) + ", \"intermediate_size\": " + number(inner) +
                ", \"layer_norm_eps\": 1e-12, \"max_position_embeddings\": " + number(positions) +
                ", \"num_attention_heads\": " + number(heads) + ", \"num_hidden_layers\": " + number(layers) +
                ", \"pad_token_id\": 0, \"type_vocab_size\": 2, \"vocab_size\": " + number(vocab) + "}\n");
  dir.write(name + "/model.safetensors", file.bytes());
  return dir.path(name);
}

} // namespace batten::test
