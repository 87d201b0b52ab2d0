// Configs as checkpoints of families with rotary positions publish them, made smaller, for tests to change by key.
#ifndef BATTEN_TESTS_SPEC_CONFIGTEXTS_H
#define BATTEN_TESTS_SPEC_CONFIGTEXTS_H

#include "compiler/spec/ModelConfig.h"
#include "tests/ErrorText.h"

#include <map>
#include <string>

namespace batten::test {

/// Members of an object by key, as JSON texts; "" takes one out.
using Members = std::map<std::string, std::string>;

inline std::string object(Members members, const Members &changes) {
  for (const auto &[key, value] : changes)
    members[key] = value;
  std::string out;
  for (const auto &[key, value] : members)
    if (!value.empty())
      out += (out.empty() ? "{\"" : ", \"") + key + "\": " + value;
  return out + "}";
}

/// What answerdotai's base checkpoint publishes, smaller.
inline std::string modernBert(const Members &changes = {}) {
  return object({{"model_type", "\"modernbert\""},
                 {"architectures", "[\"ModernBertForMaskedLM\"]"},
                 {"attention_bias", "false"},
                 {"classifier_activation", "\"gelu\""},
                 {"classifier_bias", "false"},
                 {"classifier_pooling", "\"mean\""},
                 {"decoder_bias", "true"},
                 {"global_attn_every_n_layers", "3"},
                 {"global_rope_theta", "160000.0"},
                 {"local_rope_theta", "10000.0"},
                 {"local_attention", "128"},
                 {"hidden_activation", "\"gelu\""},
                 {"hidden_size", "48"},
                 {"intermediate_size", "36"},
                 {"layer_norm_eps", "1e-05"},
                 {"norm_eps", "1e-05"},
                 {"max_position_embeddings", "8192"},
                 {"mlp_bias", "false"},
                 {"norm_bias", "false"},
                 {"num_attention_heads", "3"},
                 {"num_hidden_layers", "6"},
                 {"pad_token_id", "99"},
                 {"position_embedding_type", "\"absolute\""},
                 {"vocab_size", "100"}},
                changes);
}

/// The same model in the newer spelling.
inline std::string newModernBert(const Members &changes = {}) {
  Members all = {{"global_attn_every_n_layers", ""},
                 {"global_rope_theta", ""},
                 {"local_rope_theta", ""},
                 {"layer_types", R"(["full_attention", "sliding_attention", "sliding_attention",
                                    "full_attention", "sliding_attention", "sliding_attention"])"},
                 {"rope_parameters", R"({"full_attention": {"rope_type": "default", "rope_theta": 160000.0},
                                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})"}};
  for (const auto &[key, value] : changes)
    all[key] = value;
  return modernBert(all);
}

/// What nomic-ai's text checkpoints publish, smaller.
inline std::string gpt2Nomic(const Members &changes = {}) {
  return object({{"model_type", "\"nomic_bert\""},
                 {"architectures", "[\"NomicBertModel\"]"},
                 {"activation_function", "\"swiglu\""},
                 {"causal", "false"},
                 {"layer_norm_epsilon", "1e-12"},
                 {"max_trained_positions", "2048"},
                 {"mlp_fc1_bias", "false"},
                 {"mlp_fc2_bias", "false"},
                 {"n_embd", "48"},
                 {"n_head", "3"},
                 {"n_inner", "64"},
                 {"n_layer", "2"},
                 {"n_positions", "8192"},
                 {"parallel_block", "false"},
                 {"prenorm", "false"},
                 {"qkv_proj_bias", "false"},
                 {"rotary_emb_base", "1000"},
                 {"rotary_emb_fraction", "1.0"},
                 {"rotary_emb_interleaved", "false"},
                 {"rotary_emb_scale_base", "null"},
                 {"rotary_scaling_factor", "null"},
                 {"type_vocab_size", "2"},
                 {"use_rms_norm", "false"},
                 {"vocab_size", "100"}},
                changes);
}

/// The same model as transformers' class spells it.
inline std::string nomic(const Members &changes = {}) {
  return object({{"model_type", "\"nomic_bert\""},
                 {"hidden_act", "\"silu\""},
                 {"hidden_size", "48"},
                 {"intermediate_size", "64"},
                 {"layer_norm_eps", "1e-12"},
                 {"max_position_embeddings", "2048"},
                 {"num_attention_heads", "3"},
                 {"num_hidden_layers", "2"},
                 {"rope_parameters", R"({"rope_theta": 1000.0, "rope_type": "default"})"},
                 {"type_vocab_size", "2"},
                 {"vocab_size", "100"}},
                changes);
}

/// What Alibaba-NLP's checkpoints publish, smaller and without their scaled angles.
inline std::string newGte(const Members &changes = {}) {
  return object({{"model_type", "\"new\""},
                 {"architectures", "[\"NewModel\"]"},
                 {"attention_probs_dropout_prob", "0.0"},
                 {"hidden_act", "\"gelu\""},
                 {"hidden_size", "48"},
                 {"intermediate_size", "64"},
                 {"layer_norm_eps", "1e-12"},
                 {"layer_norm_type", "\"layer_norm\""},
                 {"logn_attention_clip1", "false"},
                 {"logn_attention_scale", "false"},
                 {"max_position_embeddings", "8192"},
                 {"num_attention_heads", "3"},
                 {"num_hidden_layers", "2"},
                 {"pack_qkv", "true"},
                 {"pad_token_id", "0"},
                 {"position_embedding_type", "\"rope\""},
                 {"rope_scaling", "null"},
                 {"rope_theta", "500000"},
                 {"type_vocab_size", "0"},
                 {"unpad_inputs", "false"},
                 {"use_memory_efficient_attention", "false"},
                 {"vocab_size", "100"}},
                changes);
}

inline std::string euroBert(const Members &changes = {}) {
  return object({{"model_type", "\"eurobert\""},
                 {"attention_bias", "false"},
                 {"head_dim", "8"},
                 {"hidden_act", "\"silu\""},
                 {"hidden_size", "48"},
                 {"intermediate_size", "64"},
                 {"max_position_embeddings", "8192"},
                 {"mlp_bias", "false"},
                 {"num_attention_heads", "6"},
                 {"num_hidden_layers", "2"},
                 {"num_key_value_heads", "2"},
                 {"pretraining_tp", "1"},
                 {"rms_norm_eps", "1e-05"},
                 {"rope_scaling", "null"},
                 {"rope_theta", "250000"},
                 {"vocab_size", "100"}},
                changes);
}

/// What jinaai's checkpoints publish, smaller and without their adapters.
inline std::string rotaryXlmRoberta(const Members &changes = {}) {
  return object({{"model_type", "\"xlm-roberta\""},
                 {"architectures", "[\"XLMRobertaModel\"]"},
                 {"hidden_act", "\"gelu\""},
                 {"hidden_size", "48"},
                 {"intermediate_size", "64"},
                 {"layer_norm_eps", "1e-05"},
                 {"lora_adaptations", "null"},
                 {"max_position_embeddings", "8194"},
                 {"num_attention_heads", "3"},
                 {"num_hidden_layers", "2"},
                 {"pad_token_id", "1"},
                 {"position_embedding_type", "\"rotary\""},
                 {"rotary_emb_base", "20000.0"},
                 {"type_vocab_size", "1"},
                 {"use_flash_attn", "true"},
                 {"vocab_size", "100"}},
                changes);
}

inline std::string refusal(const std::string &text) { return errorText(parseModelConfig(text, "dir/config.json")); }

inline ModelConfig parsed(const std::string &text) {
  llvm::Expected<ModelConfig> config = parseModelConfig(text, "dir/config.json");
  if (config)
    return *config;
  ADD_FAILURE() << llvm::toString(config.takeError());
  return {};
}

} // namespace batten::test

#endif // BATTEN_TESTS_SPEC_CONFIGTEXTS_H
