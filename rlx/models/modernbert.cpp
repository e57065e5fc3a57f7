// ModernBERT: an encoder with rotary positions, norms before each part and none before the first attention, gated feed-forward nets,
// and windows in all but every third layer, each kind with a rope base of its own.
#include "rlx/models/architecture.h"
#include "rlx/models/encoder.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embeddings.tok_embeddings.weight", "token_embd.weight"},
    {"embed_norm", "@embeddings.norm.weight", "token_embd_norm.weight"},
    {"norm", "@final_norm.weight", "output_norm.weight"},
    {"attn_norm", "@layers.{}.attn_norm.weight", "blk.{}.attn_norm.weight"},
    {"qkv", "@layers.{}.attn.Wqkv.weight", "blk.{}.attn_qkv.weight"},
    {"o", "@layers.{}.attn.Wo.weight", "blk.{}.attn_output.weight"},
    {"ffn_norm", "@layers.{}.mlp_norm.weight", "blk.{}.ffn_norm.weight"},
    {"gate_up", "@layers.{}.mlp.Wi.weight", "blk.{}.ffn_up.weight"},
    {"down", "@layers.{}.mlp.Wo.weight", "blk.{}.ffn_down.weight"},
    {"head_transform", "head.dense.weight"},
    {"head_norm", "head.norm.weight"},
    {"head", "decoder.weight"},
    {"head_bias", "decoder.bias"},
    {"classifier", "classifier.weight"},
};

void configure(ConfigSource& s, Config& c) {
  s.ignore("position_embedding_type");  // published files say "absolute"; positions turn all the same
  c.activation = activations::gelu;
  read_decoder(s, c);
  c.encoder = true;
  if (const auto word = s.find_text({"classifier_activation"}))
    c.head_activation = activation_named(s, *word);
  if (const auto v = s.find_real({"norm_eps"})) c.norm_eps = *v;
  c.window = s.find_integer({"local_attention", "attention.sliding_window"}).value_or(128);
  const int64_t every =
      s.find_integer({"global_attn_every_n_layers", "attention.sliding_window_pattern"}).value_or(3);
  if (every < 1) throw invalid(s.where(), "global_attn_every_n_layers is ", every, "; 1 or more expected");
  read_layer_types(s, c);
  if (s.texts({"layer_types"}).empty()) {
    for (int64_t i = 0; i < c.layers; ++i)
      c.mixers[size_t(i)] = i % every == 0 ? Mixer::attention : Mixer::window;
  }
  c.rope = read_rope(s, c, c.head_dim, "full_attention");
  c.window_rope = read_rope(s, c, c.head_dim, "sliding_attention");
  if (!s.is_gguf() && !s.object("rope_parameters")) c.rope.theta = 160000;
  if (const auto v = s.find_real({"global_rope_theta"})) c.rope.theta = *v;
  if (s.is_gguf()) c.window_rope.theta = 10000;
  if (const auto v = s.find_real({"local_rope_theta", "rope.freq_base_swa"})) c.window_rope.theta = *v;
}

void build(Net& net) {
  const Config& c = net.c;
  Tensor x = net.layer_norm("embed_norm", net.embed());
  for (net.layer = 0; net.layer < c.layers; ++net.layer) {
    const auto label = net.label_layer();
    const bool window = net.mixer() == Mixer::window;
    const Rope& r = window ? c.window_rope : c.rope;
    const Tensor h = net.layer > 0 ? net.layer_norm("attn_norm", x) : x;
    const Tensor qkv = net.linear("qkv", h, 3 * c.hidden);
    const auto third = [&](int64_t i) { return qkv.narrow(2, i * c.hidden, c.hidden); };
    const Tensor q = turn(third(0), net.rope(r), r, c.head_dim),
                 k = turn(third(1), net.rope(r), r, c.head_dim);
    x = x + net.linear("o", attend_all(net, q, k, third(2), window ? c.window / 2 : -1), c.hidden);
    const Tensor both = net.linear("gate_up", net.layer_norm("ffn_norm", x), 2 * c.intermediate);
    const Tensor gate = c.activation(both.narrow(2, 0, c.intermediate));
    x = x + net.linear("down", gate * both.narrow(2, c.intermediate, c.intermediate), c.hidden);
  }
  x = net.layer_norm("norm", x);
  finish_encoder(net, x);
  if (!net.has("classifier")) finish_masked_words(net, x, c.head_activation);  // one head serves both
}

constexpr std::string_view kHf[] = {"modernbert"}, kGguf[] = {"modern-bert"}, kPrefixes[] = {"", "model."},
                           kUnread[] = {"head.", "decoder.", "classifier.", "cls."};  // heads of other tasks

}  // namespace

constexpr Architecture kModernbert{"modernbert", kHf, kGguf, kNames, kPrefixes, configure, build, kUnread};

}  // namespace rlx::models
