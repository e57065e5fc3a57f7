// Granite: Llama with a factor on embeddings, scores, residuals and logits.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
#include "rlx/models/llama_names.h"

namespace rlx::models {
namespace {

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  c.rope = read_rope(s, c, c.head_dim);
  c.embedding_scale = s.find_real({"embedding_multiplier"}).value_or(1);
  c.attention_scale = s.find_real({"attention_multiplier"}).value_or(1);
  c.residual_scale = s.find_real({"residual_multiplier"}).value_or(1);
  c.logit_scale = 1 / s.find_real({"logits_scaling"}).value_or(1);
}

void build(Net& net) {
  const Config& c = net.c;
  Tensor x = net.embed() * c.embedding_scale;
  for (net.layer = 0; net.layer < c.layers; ++net.layer) {
    x = x + self_attention(net, net.rms_norm("attn_norm", x)) * c.residual_scale;
    x = x + feed_forward(net, net.rms_norm("ffn_norm", x)) * c.residual_scale;
  }
  net.finish_decoder(net.rms_norm("norm", x));
}

constexpr std::string_view kHf[] = {"granite"};

}  // namespace

constexpr Architecture kGranite{"granite", kHf, {}, kLlamaNames, kDecoderPrefixes, configure, build};

}  // namespace rlx::models
