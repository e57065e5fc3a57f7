// GPT-NeoX: rotary positions on a part of each head, q, k, v of a head beside each other in one weight, attention and feed-forward net
// side by side.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embed_in.weight", "token_embd.weight"},
    {"norm", "@final_layer_norm.weight", "output_norm.weight"},
    {"head", "embed_out.weight", "output.weight"},
    {"attn_norm", "@layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"qkv", "@layers.{}.attention.query_key_value.weight", "blk.{}.attn_qkv.weight"},
    {"o", "@layers.{}.attention.dense.weight", "blk.{}.attn_output.weight"},
    {"ffn_norm", "@layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"up", "@layers.{}.mlp.dense_h_to_4h.weight", "blk.{}.ffn_up.weight"},
    {"down", "@layers.{}.mlp.dense_4h_to_h.weight", "blk.{}.ffn_down.weight"},
};

void configure(ConfigSource& s, Config& c) {
  c.activation = activations::gelu;
  read_decoder(s, c);
  if (!s.is_gguf()) c.tied = s.find_flag({"tie_word_embeddings"}).value_or(!s.has_tensor("embed_out.weight"));
  c.parallel_residual = s.find_flag({"use_parallel_residual", "use_parallel_residual"}).value_or(true);
  c.rope = read_rope(s, c, int64_t(double(c.head_dim) * partial_rotary_factor(s)));
  if (const auto v = s.find_real({"rotary_emb_base"})) c.rope.theta = *v;
  s.require_flag({"is_decoder"}, false);  // a word of encoders
}

// Folders have q, k, v of each head beside each other, GGUF those of all heads.
Tensor neox_attention(Net& net, const Tensor& x) {
  const Config& c = net.c;
  const Tensor all = net.linear("qkv", x, 3 * c.hidden);
  const auto part = [&](int64_t i) {
    if (net.gguf()) return all.narrow(2, i * c.hidden, c.hidden);
    return all.reshape({net.batch, net.seq, c.heads, 3 * c.head_dim})
        .narrow(3, i * c.head_dim, c.head_dim)
        .reshape({net.batch, net.seq, c.hidden});
  };
  const RopeTables& tables = net.rope(c.rope);
  const Tensor q = turn(part(0), tables, c.rope, c.head_dim), k = turn(part(1), tables, c.rope, c.head_dim);
  return net.linear("o", attend(net, q, k, part(2), heads_of(net)), c.hidden);
}

Tensor neox_ffn(Net& net, const Tensor& x) {
  return net.linear("down", net.c.activation(net.linear("up", x, net.c.intermediate)), net.c.hidden);
}

void build(Net& net) {
  Tensor x = net.embed();
  for (net.layer = 0; net.layer < net.c.layers; ++net.layer) {
    const auto label = net.label_layer();
    const Tensor y = x + neox_attention(net, net.layer_norm("attn_norm", x));
    x = y + neox_ffn(net, net.layer_norm("ffn_norm", net.c.parallel_residual ? x : y));
  }
  net.finish_decoder(net.layer_norm("norm", x));
}

constexpr std::string_view kHf[] = {"gpt_neox"}, kGguf[] = {"gptneox"}, kPrefixes[] = {"gpt_neox.", ""},
                           kUnread[] = {".attention.bias", ".attention.masked_bias"}, kChanged[] = {"qkv"};

}  // namespace

constexpr Architecture kGptNeox{"gpt_neox", kHf,   kGguf,   kNames,  kPrefixes,
                                configure,  build, kUnread, nullptr, kChanged};

}  // namespace rlx::models
