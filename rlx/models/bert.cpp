// BERT, MiniLM and RoBERTa: learned positions, layer norms behind attention and feed-forward net. RoBERTa counts positions over tokens
// that are no padding, from the padding id + 1 on.
#include "rlx/models/architecture.h"
#include "rlx/models/encoder.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embeddings.word_embeddings.weight"},
    {"positions", "@embeddings.position_embeddings.weight"},
    {"types", "@embeddings.token_type_embeddings.weight"},
    {"embed_norm", "@embeddings.LayerNorm.weight"},
    {"q", "@encoder.layer.{}.attention.self.query.weight"},
    {"k", "@encoder.layer.{}.attention.self.key.weight"},
    {"v", "@encoder.layer.{}.attention.self.value.weight"},
    {"o", "@encoder.layer.{}.attention.output.dense.weight"},
    {"attn_norm", "@encoder.layer.{}.attention.output.LayerNorm.weight"},
    {"up", "@encoder.layer.{}.intermediate.dense.weight"},
    {"down", "@encoder.layer.{}.output.dense.weight"},
    {"ffn_norm", "@encoder.layer.{}.output.LayerNorm.weight"},
};

void configure(ConfigSource& s, Config& c) {
  c.activation = ops::Activation::gelu;
  c.norm_eps = 1e-12;
  read_decoder(s, c);
  c.encoder = true;
  c.token_types = s.find_integer({"type_vocab_size"}).value_or(2);
  c.padding_id = s.find_integer({"pad_token_id"}).value_or(0);
  s.require_text({"position_embedding_type"}, "absolute");
  s.require_flag({"is_decoder"}, false);
  s.require_flag({"add_cross_attention"}, false);
}

// Positions i32 [1 or batch, seq].
Tensor encode(Net& net, const Tensor& positions) {
  const Config& c = net.c;
  const Tensor type = net.lookup("types", net.t.zeros({1}, DType::i32), c.token_types, c.hidden);
  Tensor x = net.layer_norm(
      "embed_norm", net.embed() + type + net.lookup("positions", positions, c.max_positions, c.hidden));
  for (net.layer = 0; net.layer < c.layers; ++net.layer) {
    const auto project = [&](std::string_view key) { return net.linear(key, x, c.hidden); };
    const Tensor y = net.linear("o", attend_all(net, project("q"), project("k"), project("v")), c.hidden);
    x = net.layer_norm("attn_norm", x + y);
    const Tensor up = net.linear("up", x, c.intermediate).activation(c.activation);
    x = net.layer_norm("ffn_norm", x + net.linear("down", up, c.hidden));
  }
  return x;
}

void build_bert(Net& net) { finish_encoder(net, encode(net, net.positions())); }

void build_roberta(Net& net) {
  const Tensor real = net.ids.ne(net.c.padding_id).cast(DType::i32);
  finish_encoder(net, encode(net, real.cumsum(1) * real + net.c.padding_id));
}

constexpr std::string_view kBertHf[] = {"bert"}, kRobertaHf[] = {"roberta", "xlm-roberta"},
                           kBertPrefixes[] = {"", "bert."}, kRobertaPrefixes[] = {"", "roberta."},
                           kUnread[] = {"pooler.", "cls.", "classifier.",
                                        "lm_head."};  // heads of other tasks

}  // namespace

constexpr Architecture kBert{"bert", kBertHf, {}, kNames, kBertPrefixes, configure, build_bert, kUnread};
constexpr Architecture kRoberta{"roberta", kRobertaHf,    {},     kNames, kRobertaPrefixes,
                                configure, build_roberta, kUnread};

}  // namespace rlx::models
