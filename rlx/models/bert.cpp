// BERT, MiniLM and RoBERTa: learned positions, layer norms behind attention and feed-forward net. RoBERTa counts positions over tokens
// that are no padding, from the padding id + 1 on. In GGUF all are BERT, DistilBERT too: without a table of token types, and RoBERTa's
// table of positions begins at the first that is used.
#include "rlx/models/architecture.h"
#include "rlx/models/encoder.h"
#include "rlx/models/layers.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embeddings.word_embeddings.weight", "token_embd.weight"},
    {"positions", "@embeddings.position_embeddings.weight", "position_embd.weight"},
    {"types", "@embeddings.token_type_embeddings.weight", "token_types.weight"},
    {"embed_norm", "@embeddings.LayerNorm.weight", "token_embd_norm.weight"},
    {"q", "@encoder.layer.{}.attention.self.query.weight", "blk.{}.attn_q.weight"},
    {"k", "@encoder.layer.{}.attention.self.key.weight", "blk.{}.attn_k.weight"},
    {"v", "@encoder.layer.{}.attention.self.value.weight", "blk.{}.attn_v.weight"},
    {"qkv", "", "blk.{}.attn_qkv.weight"},
    {"o", "@encoder.layer.{}.attention.output.dense.weight", "blk.{}.attn_output.weight"},
    {"attn_norm", "@encoder.layer.{}.attention.output.LayerNorm.weight", "blk.{}.attn_output_norm.weight"},
    {"up", "@encoder.layer.{}.intermediate.dense.weight", "blk.{}.ffn_up.weight"},
    {"down", "@encoder.layer.{}.output.dense.weight", "blk.{}.ffn_down.weight"},
    {"ffn_norm", "@encoder.layer.{}.output.LayerNorm.weight", "blk.{}.layer_output_norm.weight"},
    {"head_transform", "cls.predictions.transform.dense.weight|lm_head.dense.weight"},
    {"head_norm", "cls.predictions.transform.LayerNorm.weight|lm_head.layer_norm.weight"},
    {"head", "cls.predictions.decoder.weight|lm_head.decoder.weight"},
    {"head_bias", "cls.predictions.bias|cls.predictions.decoder.bias|lm_head.bias|lm_head.decoder.bias"},
};

void configure(ConfigSource& s, Config& c) {
  c.activation = activations::gelu;
  c.norm_eps = 1e-12;
  read_decoder(s, c);
  c.encoder = true;
  c.token_types = s.find_integer({"type_vocab_size"}).value_or(2);
  if (const io::TensorView* t = s.find_tensor("token_types.weight"); t != nullptr && !t->dims.empty())
    c.token_types = t->dims.size() > 1 ? t->dims[0] : 1;
  c.padding_id = s.find_integer({"pad_token_id"}).value_or(0);
  s.require_text({"position_embedding_type"}, "absolute");
  s.require_flag({"is_decoder"}, false);
  s.require_flag({"add_cross_attention"}, false);
}

// Positions i32 [1 or batch, seq].
Tensor encode(Net& net, const Tensor& positions) {
  const Config& c = net.c;
  Tensor x = net.embed();
  if (net.has("types")) x = x + net.lookup("types", net.t.zeros({1}, DType::i32), c.token_types, c.hidden);
  x = net.layer_norm("embed_norm", x + net.lookup("positions", positions, c.max_positions, c.hidden));
  for (net.layer = 0; net.layer < c.layers; ++net.layer) {
    const auto label = net.label_layer();
    const auto [q, k, v] = query_key_value(net, x);
    const Tensor y = net.linear("o", attend_all(net, q, k, v), c.hidden);
    x = net.layer_norm("attn_norm", x + y);
    const Tensor up = c.activation(net.linear("up", x, c.intermediate));
    x = net.layer_norm("ffn_norm", x + net.linear("down", up, c.hidden));
  }
  return x;
}

void build_bert(Net& net) {
  const Tensor x = encode(net, net.positions());
  finish_encoder(net, x);
  finish_masked_words(net, x, net.c.activation);
}

void build_roberta(Net& net) {
  const Tensor real = net.ids.ne(net.c.padding_id).cast(DType::i32);
  const Tensor x = encode(net, real.cumsum(1) * real + net.c.padding_id);
  finish_encoder(net, x);
  finish_masked_words(net, x, activations::gelu);  // whatever the layers have
}

constexpr std::string_view kBertHf[] = {"bert"}, kBertGguf[] = {"bert"},
                           kRobertaHf[] = {"roberta", "xlm-roberta"}, kBertPrefixes[] = {"", "bert."},
                           kRobertaPrefixes[] = {"", "roberta."},
                           kUnread[] = {"pooler.", "cls.", "classifier.", "qa_outputs.",
                                        "lm_head."};  // heads of other tasks

}  // namespace

constexpr Architecture kBert{"bert",        kBertHf,   kBertGguf,  kNames,
                             kBertPrefixes, configure, build_bert, kUnread};
constexpr Architecture kRoberta{"roberta", kRobertaHf,    {},     kNames, kRobertaPrefixes,
                                configure, build_roberta, kUnread};

}  // namespace rlx::models
