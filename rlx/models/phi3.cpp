// Phi-3: Llama with q, k, v in one weight and gate, up in another; a part of each head turns, by short or long factors.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
#include "rlx/models/llama_names.h"  // kDecoderPrefixes

namespace rlx::models {
namespace {

// GGUF calls gate and up in one weight "ffn_up".
constexpr WeightName kNames[] = {
    {"embed", "@embed_tokens.weight", "token_embd.weight"},
    {"norm", "@norm.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"attn_norm", "@layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"qkv", "@layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"q", "", "blk.{}.attn_q.weight"},
    {"k", "", "blk.{}.attn_k.weight"},
    {"v", "", "blk.{}.attn_v.weight"},
    {"q_norm", ""},
    {"o", "@layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"ffn_norm", "@layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"gate_up", "@layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight"},
    {"down", "@layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
};

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  // Of Phi-4-mini: every layer sees all tokens, positions are whole.
  for (const char* word : {"full_attn_mod", "interpolate_factor"})
    if (const auto v = s.find_integer({word}); v && *v != 1)
      throw invalid(s.where(), "'", word, "' is ", *v, "; only 1 is understood");
  s.require_flag({"lm_head_bias"}, false);
  c.rope = read_rope(s, c, int64_t(double(c.head_dim) * partial_rotary_factor(s)));
  c.window = s.find_integer({"sliding_window", "attention.sliding_window"}).value_or(0);
  read_layer_types(s, c, c.window > 0 ? Mixer::window : Mixer::attention);
}

constexpr std::string_view kHf[] = {"phi3"}, kGguf[] = {"phi3"};

}  // namespace

constexpr Architecture kPhi3{"phi3", kHf, kGguf, kNames, kDecoderPrefixes, configure, build_llama};

}  // namespace rlx::models
