#include "rlx/models/config_defaults.h"

namespace rlx::models {
namespace {

struct Defaults {
  std::string_view model_type, fields;
};

constexpr Defaults kDefaults[] = {
    {"llama",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
         "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6})"},
    {"mistral",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
         "rms_norm_eps": 1e-6, "sliding_window": 4096})"},
    {"mixtral",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
         "rms_norm_eps": 1e-5, "rope_theta": 1e6, "num_experts_per_tok": 2, "num_local_experts": 8})"},
    {"phi3",
     R"({"vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
         "num_attention_heads": 32, "max_position_embeddings": 4096,
         "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-5})"},
    {"qwen2",
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 32768,
         "rms_norm_eps": 1e-6, "sliding_window": 4096})"},
    {"qwen2_moe",
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
         "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 32768,
         "rms_norm_eps": 1e-6, "sliding_window": 4096, "moe_intermediate_size": 1408,
         "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4, "num_experts": 60})"},
    {"qwen3",
     R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
         "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "sliding_window": 4096})"},
    {"qwen3_moe",
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
         "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 32768,
         "rms_norm_eps": 1e-6, "sliding_window": 4096, "moe_intermediate_size": 768,
         "num_experts_per_tok": 8, "num_experts": 128, "norm_topk_prob": false})"},
    {"qwen3_next",
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 48,
         "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
         "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "linear_conv_kernel_dim": 4,
         "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
         "linear_num_value_heads": 32, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
         "num_experts_per_tok": 10, "num_experts": 512, "partial_rotary_factor": 0.25})"},
    {"qwen3_5_text",
     R"({"vocab_size": 248320, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32,
         "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256,
         "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "linear_conv_kernel_dim": 4,
         "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
         "linear_num_value_heads": 32, "partial_rotary_factor": 0.25})"},
    {"qwen3_5_moe_text",
     R"({"vocab_size": 248320, "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16,
         "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
         "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
         "linear_num_key_heads": 16, "linear_num_value_heads": 32, "moe_intermediate_size": 512,
         "shared_expert_intermediate_size": 512, "num_experts_per_tok": 8, "num_experts": 256,
         "partial_rotary_factor": 0.25})"},
    {"gemma2",
     R"({"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
         "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "query_pre_attn_scalar": 256,
         "sliding_window": 4096, "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0})"},
    {"gemma3_text",
     R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
         "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "query_pre_attn_scalar": 256,
         "sliding_window": 4096, "rope_theta": 1e6})"},
    {"granite",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
         "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6})"},
    {"olmo2",
     R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
         "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5})"},
    {"gpt2",
     R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
         "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5})"},
    {"gpt_neox",
     R"({"vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64,
         "intermediate_size": 24576, "hidden_act": "gelu", "max_position_embeddings": 2048,
         "layer_norm_eps": 1e-5, "rotary_pct": 0.25})"},
    {"mamba",
     R"({"vocab_size": 50280, "hidden_size": 768, "state_size": 16, "num_hidden_layers": 32,
         "layer_norm_epsilon": 1e-5, "conv_kernel": 4, "time_step_rank": "auto"})"},
    {"mamba2",
     R"({"vocab_size": 32768, "hidden_size": 4096, "num_heads": 128, "head_dim": 64, "state_size": 128,
         "num_hidden_layers": 64, "layer_norm_epsilon": 1e-5, "conv_kernel": 4, "n_groups": 8})"},
    {"bert",
     R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
         "intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 512,
         "layer_norm_eps": 1e-12})"},
    {"modernbert",
     R"({"vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
         "num_attention_heads": 12, "hidden_activation": "gelu", "max_position_embeddings": 8192,
         "norm_eps": 1e-5})"},
};

}  // namespace

std::string_view default_config(std::string_view model_type) {
  for (const Defaults& d : kDefaults) {
    if (d.model_type == model_type) return d.fields;
  }
  return "{}";
}

}  // namespace rlx::models
