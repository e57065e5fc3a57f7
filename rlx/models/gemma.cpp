// Gemma 2 and 3: norms before and after each part, embeddings times sqrt(hidden), tied logits. Gemma 2 caps scores and logits and
// alternates windows with full attention; Gemma 3 norms the heads of q and k and has five windows to one full layer, each
// kind with rotary positions of its own. EmbeddingGemma is Gemma 3 as an encoder: every token sees those behind it, too.
#include <cmath>

#include "rlx/models/architecture.h"
#include "rlx/models/encoder.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embed_tokens.weight", "token_embd.weight"},
    {"norm", "@norm.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"attn_norm", "@layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"q", "@layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"k", "@layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"v", "@layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"qkv", "", "blk.{}.attn_qkv.weight"},
    {"q_norm", "@layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"k_norm", "@layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    {"o", "@layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"attn_post_norm", "@layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"ffn_norm", "@layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"gate", "@layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"up", "@layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"gate_up", ""},
    {"down", "@layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"ffn_post_norm", "@layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
};

constexpr std::string_view kEmbedding = "gemma-embedding";  // a word of GGUF

// Which layers have a window: GGUF tells it by layer, or how many layers make a pattern of which the last sees all.
void read_pattern(ConfigSource& s, Config& c, int64_t pattern) {
  constexpr Field kPattern = {"sliding_window_pattern|_sliding_window_pattern",
                              "attention.sliding_window_pattern"};
  if (const std::vector<bool> windows = s.flags(kPattern); !windows.empty()) {
    if (int64_t(windows.size()) < c.layers)
      throw invalid(s.where(), "the pattern of windows has ", windows.size(), " entries for ", c.layers,
                    " layers");
    for (size_t i = 0; i < size_t(c.layers); ++i) c.mixers[i] = windows[i] ? Mixer::window : Mixer::attention;
    return;
  }
  const int64_t every = s.find_integer(kPattern).value_or(pattern);
  if (every < 1) throw invalid(s.where(), "a pattern of ", every, " layers; 1 or more expected");
  if (!s.texts({"layer_types"}).empty()) return;
  for (int64_t i = 0; i < c.layers; ++i)
    c.mixers[size_t(i)] = (i + 1) % every == 0 ? Mixer::attention : Mixer::window;
}

void configure(ConfigSource& s, Config& c, int64_t pattern) {
  c.activation = activations::gelu_tanh;
  c.norm_eps = 1e-6;
  read_decoder(s, c);
  if (!s.is_gguf() && !s.find_flag({"tie_word_embeddings"})) c.tied = true;
  c.norm_plus_one = true;
  c.embedding_scale = std::sqrt(double(c.hidden));
  c.logit_softcap = s.find_real({"final_logit_softcapping", "final_logit_softcapping"}).value_or(0);
  c.window = s.find_integer({"sliding_window", "attention.sliding_window"}).value_or(0);
  read_layer_types(s, c);
  read_pattern(s, c, pattern);
}

void configure2(ConfigSource& s, Config& c) {
  configure(s, c, 2);
  s.require_flag({"use_bidirectional_attention"}, false);
  // GGUF files without caps are older than the keys, not without caps.
  if (s.is_gguf() && !s.find_real({"", "final_logit_softcapping"})) c.logit_softcap = 30;
  c.attention_softcap =
      s.find_real({"attn_logit_softcapping", "attn_logit_softcapping"}).value_or(s.is_gguf() ? 50 : 0);
  // GGUF does not tell the scale nor, always, the window: the 27B model, of 46 layers, has a scale of its own.
  if (s.is_gguf() && c.window == 0) c.window = 4096;
  const bool large = s.is_gguf() && c.layers == 46;
  const double scalar = double(large ? c.hidden / c.heads : c.head_dim);
  c.attention_scale = 1 / std::sqrt(s.find_real({"query_pre_attn_scalar"}).value_or(scalar));
  if (const auto v = s.find_real({"", "attention.scale"})) c.attention_scale = *v;
  c.rope = read_rope(s, c, c.head_dim);
}

void configure3(ConfigSource& s, Config& c) {
  configure(s, c, 6);
  c.encoder = s.find_flag({"use_bidirectional_attention"}).value_or(false) || s.architecture() == kEmbedding;
  // Without a window all layers of a GGUF file are alike, in their positions, too.
  if (s.is_gguf() && c.window == 0) c.mixers.assign(size_t(c.layers), Mixer::attention);
  s.ignore("attn_logit_softcapping");  // carried over from Gemma 2; attention normalises q and k instead
  // GGUF does not tell the scale: the 27B model, of 62 layers, has one of its own.
  const bool large = s.is_gguf() && c.layers == 62;
  const double scalar = double(large ? c.hidden / c.heads : c.head_dim);
  c.attention_scale = 1 / std::sqrt(s.find_real({"query_pre_attn_scalar"}).value_or(scalar));
  if (const auto v = s.find_real({"", "attention.scale"})) c.attention_scale = *v;
  c.rope = read_rope(s, c, c.head_dim, "full_attention");
  c.window_rope = {.kind = Rope::Kind::plain, .theta = 10000, .lanes = c.head_dim};
  const auto object = s.object("rope_parameters");
  if (object && object->find("sliding_attention"))
    c.window_rope = read_rope(s, c, c.head_dim, "sliding_attention");
  if (const auto v = s.find_real({"rope_local_base_freq", "rope.freq_base_swa"})) c.window_rope.theta = *v;
}

void build(Net& net) {
  const Config& c = net.c;
  Tensor x = net.embed() * c.embedding_scale;
  for (net.layer = 0; net.layer < c.layers; ++net.layer) {
    const auto label = net.label_layer();
    x = x + net.rms_norm("attn_post_norm", self_attention(net, net.rms_norm("attn_norm", x)));
    x = x + net.rms_norm("ffn_post_norm", gated_ffn(net, net.rms_norm("ffn_norm", x), c.intermediate));
  }
  x = net.rms_norm("norm", x);
  c.encoder ? finish_encoder(net, x) : net.finish_decoder(x);
}

constexpr std::string_view k2Hf[] = {"gemma2"}, k2Gguf[] = {"gemma2"}, k3Hf[] = {"gemma3_text"},
                           k3Gguf[] = {"gemma3", kEmbedding},
                           kPrefixes[] = {"model.", "language_model.model.", "model.language_model.", ""},
                           kUnread[] = {"dense_2.",
                                        "dense_3."};  // behind the pooling of GGUF's embedding models

}  // namespace

constexpr Architecture kGemma2{"gemma2", k2Hf, k2Gguf, kNames, kPrefixes, configure2, build};
constexpr Architecture kGemma3{"gemma3", k3Hf, k3Gguf, kNames, kPrefixes, configure3, build, kUnread};

}  // namespace rlx::models
