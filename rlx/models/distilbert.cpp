// DistilBERT: BERT without token types, of half the layers; with its head for masked words where the file has it.
#include "rlx/models/architecture.h"
#include "rlx/models/encoder.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embeddings.word_embeddings.weight"},
    {"positions", "@embeddings.position_embeddings.weight"},
    {"embed_norm", "@embeddings.LayerNorm.weight"},
    {"q", "@transformer.layer.{}.attention.q_lin.weight"},
    {"k", "@transformer.layer.{}.attention.k_lin.weight"},
    {"v", "@transformer.layer.{}.attention.v_lin.weight"},
    {"o", "@transformer.layer.{}.attention.out_lin.weight"},
    {"attn_norm", "@transformer.layer.{}.sa_layer_norm.weight"},
    {"up", "@transformer.layer.{}.ffn.lin1.weight"},
    {"down", "@transformer.layer.{}.ffn.lin2.weight"},
    {"ffn_norm", "@transformer.layer.{}.output_layer_norm.weight"},
    {"head_transform", "vocab_transform.weight"},
    {"head_norm", "vocab_layer_norm.weight"},
    {"head", "vocab_projector.weight"},
    {"head_bias", "vocab_projector.bias"},
};

void configure(ConfigSource& s, Config& c) {
  c.encoder = true;
  c.vocab = s.integer({"vocab_size"});
  c.hidden = s.integer({"dim"});
  c.layers = s.integer({"n_layers"});
  c.heads = c.kv_heads = s.integer({"n_heads"});
  c.head_dim = c.heads > 0 ? c.hidden / c.heads : 0;
  c.intermediate = s.integer({"hidden_dim"});
  c.max_positions = s.integer({"max_position_embeddings"});
  c.activation = activation_named(s, s.find_text({"activation"}).value_or("gelu"));
  c.norm_eps = 1e-12;
  c.tied = s.find_flag({"tie_word_embeddings|tie_weights_"}).value_or(true);
  s.ignore("sinusoidal_pos_embds");  // positions are a table of the file either way
  c.mixers.assign(size_t(c.layers), Mixer::attention);
}

void build(Net& net) {
  const Config& c = net.c;
  const Tensor positions = net.lookup("positions", net.positions(), c.max_positions, c.hidden);
  Tensor x = net.layer_norm("embed_norm", net.embed() + positions);
  for (net.layer = 0; net.layer < c.layers; ++net.layer) {
    const auto label = net.label_layer();
    const auto project = [&](std::string_view key) { return net.linear(key, x, c.hidden); };
    const Tensor y = net.linear("o", attend_all(net, project("q"), project("k"), project("v")), c.hidden);
    x = net.layer_norm("attn_norm", x + y);
    const Tensor up = c.activation(net.linear("up", x, c.intermediate));
    x = net.layer_norm("ffn_norm", x + net.linear("down", up, c.hidden));
  }
  finish_encoder(net, x);
  finish_masked_words(net, x, c.activation);
}

constexpr std::string_view kHf[] = {"distilbert"}, kPrefixes[] = {"distilbert.", ""},
                           kUnread[] = {"pre_classifier.", "classifier.",
                                        "qa_outputs."};  // heads of other tasks

}  // namespace

constexpr Architecture kDistilbert{"distilbert", kHf, {}, kNames, kPrefixes, configure, build, kUnread};

}  // namespace rlx::models
