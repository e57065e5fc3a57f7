// Granite: Llama with a factor on embeddings, scores, residuals and logits.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
#include "rlx/models/llama_names.h"

namespace rlx::models {
namespace {

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  c.rope = read_rope(s, c, c.head_dim);
  c.rope.interleaved = c.rope.reordered = s.is_gguf();   // rows of q and k are ordered as Llama's
  s.require_flag({"", "rope.scaling.finetuned"}, true);  // false: a Granite without positions
  // In GGUF a factor of 0 says nothing.
  const auto factor = [&](Field f) {
    const double v = s.find_real(f).value_or(1);
    return v == 0 && s.is_gguf() ? 1 : v;
  };
  c.embedding_scale = factor({"embedding_multiplier", "embedding_scale"});
  c.attention_scale = s.find_real({"attention_multiplier", "attention.scale"}).value_or(s.is_gguf() ? 0 : 1);
  c.residual_scale = factor({"residual_multiplier", "residual_scale"});
  c.logit_scale = 1 / factor({"logits_scaling", "logit_scale"});
}

void build(Net& net) {
  const Config& c = net.c;
  Tensor x = net.embed() * c.embedding_scale;
  for (net.layer = 0; net.layer < c.layers; ++net.layer) {
    const auto label = net.label_layer();
    x = x + self_attention(net, net.rms_norm("attn_norm", x)) * c.residual_scale;
    x = x + feed_forward(net, net.rms_norm("ffn_norm", x)) * c.residual_scale;
  }
  net.finish_decoder(net.rms_norm("norm", x));
}

constexpr std::string_view kHf[] = {"granite"}, kGguf[] = {"granite"};

}  // namespace

constexpr Architecture kGranite{"granite", kHf, kGguf, kLlamaNames, kDecoderPrefixes, configure, build};

}  // namespace rlx::models
