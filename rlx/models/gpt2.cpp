// GPT-2: learned positions, layer norms, biases everywhere, a plain feed-forward net with tanh GELU, tied logits. Folders store weights
// as [in, out].
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@wte.weight", "token_embd.weight"},
    {"positions", "@wpe.weight", "position_embd.weight"},
    {"norm", "@ln_f.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"attn_norm", "@h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"qkv", "@h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight"},
    {"o", "@h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight"},
    {"ffn_norm", "@h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"up", "@h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight"},
    {"down", "@h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
};

void configure(ConfigSource& s, Config& c) {
  c.activation = activations::gelu_tanh;
  read_decoder(s, c);
  if (c.intermediate == 0) c.intermediate = 4 * c.hidden;
  if (!s.find_flag({"scale_attn_weights"}).value_or(true)) c.attention_scale = 1;
  c.scale_by_layer = s.find_flag({"scale_attn_by_inverse_layer_idx"}).value_or(false);
  s.require_flag({"add_cross_attention"}, false);
  s.ignore("reorder_and_upcast_attn");
}

void build(Net& net) {
  const Config& c = net.c;
  Tensor x = net.embed() + net.lookup("positions", net.positions(), c.max_positions, c.hidden);
  for (net.layer = 0; net.layer < c.layers; ++net.layer) {
    const auto label = net.label_layer();
    const Tensor qkv = net.linear_transposed("qkv", net.layer_norm("attn_norm", x), 3 * c.hidden);
    const auto third = [&](int64_t i) { return qkv.narrow(2, i * c.hidden, c.hidden); };
    const Tensor y = attend(net, third(0), third(1), third(2), heads_of(net));
    x = x + net.linear_transposed("o", y, c.hidden);
    const Tensor up = net.linear_transposed("up", net.layer_norm("ffn_norm", x), c.intermediate);
    x = x + net.linear_transposed("down", c.activation(up), c.hidden);
  }
  net.finish_decoder(net.layer_norm("norm", x));
}

constexpr std::string_view kHf[] = {"gpt2"}, kGguf[] = {"gpt2"}, kPrefixes[] = {"transformer.", ""},
                           kUnread[] = {".attn.bias", ".attn.masked_bias"};  // masks that old files hold

}  // namespace

constexpr Architecture kGpt2{"gpt2", kHf, kGguf, kNames, kPrefixes, configure, build, kUnread};

}  // namespace rlx::models
