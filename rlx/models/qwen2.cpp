// Qwen2 and 2.5: Llama with biases on q, k, v; Qwen3: without biases, with norms of the heads of q and k. The MoE forms have
// experts in all layers but those that the configuration names; Qwen2-MoE has a gated expert for all tokens beside them.
#include <algorithm>

#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
#include "rlx/models/llama_names.h"
#include "rlx/models/qwen.h"

namespace rlx::models {
namespace {

// Whether layer i has a window where layer_types does not tell: Qwen2 and Qwen3 from max_window_layers on, Qwen2-MoE in every second layer
// before it, Qwen3-MoE everywhere.
bool has_window(std::string_view architecture, int64_t i, int64_t limit) {
  if (architecture == "qwen3_moe") return true;
  return architecture == "qwen2_moe" ? i % 2 == 0 && i < limit : i >= limit;
}

void read_windows(ConfigSource& s, Config& c) {
  const bool on = s.find_flag({"use_sliding_window"}).value_or(false);
  const auto window = s.find_integer({"sliding_window"});
  const int64_t limit = s.find_integer({"max_window_layers"}).value_or(28);
  c.window = on ? window.value_or(0) : 0;
  if (!on || !s.texts({"layer_types"}).empty()) return read_layer_types(s, c);
  for (int64_t i = 0; i < c.layers; ++i) {
    if (has_window(s.architecture(), i, limit)) c.mixers[size_t(i)] = Mixer::window;
  }
}

void configure_dense(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  c.rope = read_rope(s, c, c.head_dim);
  s.require_flag({"use_mrope"}, false);
  read_windows(s, c);
}

void configure_moe(ConfigSource& s, Config& c) {
  configure_dense(s, c);
  read_qwen_experts(s, c);
}

constexpr std::string_view kQwen2Hf[] = {"qwen2"}, kQwen2Gguf[] = {"qwen2"}, kQwen3Hf[] = {"qwen3"},
                           kQwen3Gguf[] = {"qwen3"}, kQwen2MoeHf[] = {"qwen2_moe"},
                           kQwen2MoeGguf[] = {"qwen2moe"}, kQwen3MoeHf[] = {"qwen3_moe"},
                           kQwen3MoeGguf[] = {"qwen3moe"};

void check_experts(const ConfigSource& s, const Config& c) {
  if (c.moe.experts > 0 && (c.moe.chosen < 1 || c.moe.chosen > c.moe.experts))
    throw invalid(s.where(), c.moe.chosen, " of ", c.moe.experts, " experts are chosen for a token");
}

// Files of GGUF seldom say whether the weights of the chosen add up to 1: those of Qwen2-MoE alone do not. Which layers have
// experts, and how wide older files have them, is told by the tensors.
void read_gguf_experts(ConfigSource& s, Config& c) {
  const int64_t chosen = s.find_integer({"", "expert_used_count"}).value_or(0);
  const bool shared = s.has_tensor("blk.0.ffn_up_shexp.weight");
  c.moe = {
      .experts = s.find_integer({"", "expert_count"}).value_or(0),
      .chosen = chosen,
      .width = s.find_integer({"", "expert_feed_forward_length"})
                   .value_or(c.intermediate / std::max<int64_t>(chosen, 1)),
      .shared_width =
          s.find_integer({"", "expert_shared_feed_forward_length"}).value_or(shared ? c.intermediate : 0),
      .normalised = s.find_flag({"", "expert_weights_norm"}).value_or(s.architecture() != "qwen2moe"),
      .shared_gate = true,
      .scale = s.find_real({"", "expert_weights_scale"}).value_or(1)};
  if (c.moe.scale == 0) c.moe.scale = 1;
  if (const auto gating = s.find_integer({"", "expert_gating_func"}); gating && *gating != 1)
    throw invalid(s.where(), "expert_gating_func is ", *gating, "; only 1 (softmax) is understood");
  for (int64_t i = 0; i < c.layers; ++i)
    c.moe.layers.push_back(s.has_tensor(cat("blk.", i, ".ffn_gate_inp.weight")));
}

}  // namespace

void read_qwen_experts(ConfigSource& s, Config& c) {
  if (s.is_gguf()) {
    read_gguf_experts(s, c);
    check_experts(s, c);
    return;
  }
  const int64_t step = s.find_integer({"decoder_sparse_step"}).value_or(1);
  const bool newer = s.architecture() == "qwen3_next" || s.architecture() == "qwen3_5_moe_text";
  c.moe = {.experts = s.find_integer({"num_experts|num_local_experts"}).value_or(0),
           .chosen = s.find_integer({"num_experts_per_tok"}).value_or(0),
           .width = s.find_integer({"moe_intermediate_size"}).value_or(0),
           .shared_width = s.find_integer({"shared_expert_intermediate_size"}).value_or(0),
           .normalised = s.find_flag({"norm_topk_prob"}).value_or(newer),
           .shared_gate = true};
  const auto dense = s.integers({"mlp_only_layers"});
  for (int64_t i = 0; i < c.layers; ++i) {
    const bool named = std::find(dense.begin(), dense.end(), i) != dense.end();
    c.moe.layers.push_back(!named && step > 0 && (i + 1) % step == 0);
  }
  check_experts(s, c);
}

constexpr Architecture kQwen2{"qwen2",          kQwen2Hf,        kQwen2Gguf, kLlamaNames,
                              kDecoderPrefixes, configure_dense, build_llama};
constexpr Architecture kQwen3{"qwen3",          kQwen3Hf,        kQwen3Gguf, kLlamaNames,
                              kDecoderPrefixes, configure_dense, build_llama};
constexpr Architecture kQwen2Moe{"qwen2_moe",      kQwen2MoeHf,   kQwen2MoeGguf, kLlamaNames,
                                 kDecoderPrefixes, configure_moe, build_llama};
constexpr Architecture kQwen3Moe{"qwen3_moe",      kQwen3MoeHf,   kQwen3MoeGguf, kLlamaNames,
                                 kDecoderPrefixes, configure_moe, build_llama};

}  // namespace rlx::models
