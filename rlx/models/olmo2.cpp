// OLMo 2: norms stand behind attention and feed-forward net, none before; q and k are normed over all heads at once.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embed_tokens.weight", "token_embd.weight"},
    {"norm", "@norm.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"q", "@layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"k", "@layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"v", "@layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"qkv", "", "blk.{}.attn_qkv.weight"},
    {"q_norm", "@layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"k_norm", "@layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    {"o", "@layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"attn_norm", "@layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"gate", "@layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"up", "@layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"down", "@layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"ffn_norm", "@layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
    {"gate_up", ""},
};

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  c.rope = read_rope(s, c, c.head_dim);
}

Tensor olmo_attention(Net& net, const Tensor& x) {
  const Config& c = net.c;
  const auto [all_q, all_k, v] = query_key_value(net, x);
  const RopeTables& tables = net.rope(c.rope);
  const Tensor q = turn(net.rms_norm("q_norm", all_q), tables, c.rope, c.head_dim);
  const Tensor k = turn(net.rms_norm("k_norm", all_k), tables, c.rope, c.head_dim);
  return net.linear("o", attend(net, q, k, v, heads_of(net)), c.hidden);
}

void build(Net& net) {
  Tensor x = net.embed();
  for (net.layer = 0; net.layer < net.c.layers; ++net.layer) {
    const auto label = net.label_layer();
    x = x + net.rms_norm("attn_norm", olmo_attention(net, x));
    x = x + net.rms_norm("ffn_norm", gated_ffn(net, x, net.c.intermediate));
  }
  net.finish_decoder(net.rms_norm("norm", x));
}

constexpr std::string_view kHf[] = {"olmo2"}, kGguf[] = {"olmo2"}, kPrefixes[] = {"model.", ""};

}  // namespace

constexpr Architecture kOlmo2{"olmo2", kHf, kGguf, kNames, kPrefixes, configure, build};

}  // namespace rlx::models
