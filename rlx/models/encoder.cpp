#include "rlx/models/encoder.h"

#include <cmath>

namespace rlx::models {

Tensor attend_all(Net& net, const Tensor& q, const Tensor& k, const Tensor& v, int64_t reach) {
  const Config& c = net.c;
  return attend_all(net, q, k, v, {.heads = c.heads, .kv_heads = c.heads, .lanes = c.head_dim}, reach);
}

Tensor attend_all(Net& net, const Tensor& q, const Tensor& k, const Tensor& v, const Heads& h,
                  int64_t reach) {
  const double scale = h.scale != 0 ? h.scale : 1 / std::sqrt(double(h.lanes));
  Tensor mask = net.mask();
  if (reach >= 0 || net.options.attention) {
    const Tensor places = net.t.arange(net.seq);
    const Tensor apart = (places.unsqueeze(1) - places.unsqueeze(0)).abs();
    Tensor near = (reach >= 0 ? apart <= reach : apart >= 0).reshape({1, 1, net.seq, net.seq});
    if (!mask.is_empty()) near = logical_and(near, mask.reshape({net.batch, 1, 1, net.seq}) > 0.5);
    mask = near;
  }
  if (net.options.attention) {
    const Tensor y =
        net.options.attention({net.layer, h.heads, h.kv_heads, h.lanes, scale, h.softcap}, q, k, v, mask);
    if (!y.is_empty()) return y;
  }
  ops::AttentionAttrs a;
  a.num_heads = h.heads;
  a.num_kv_heads = h.kv_heads;
  a.head_dim = h.lanes;
  a.has_mask = !mask.is_empty();
  a.score_scale = scale;
  if (h.softcap != 0) a.attn_logit_softcap = h.softcap;
  return attention(q, k, v, mask, {}, a)[0];
}

void finish_encoder(Net& net, const Tensor& hidden) {
  net.output("last_hidden_state", hidden);
  if (net.mask().is_empty()) {
    net.output("mean_pooled", hidden.mean({1}));
    return;
  }
  const Tensor real = net.mask().unsqueeze(2);
  net.output("mean_pooled", (hidden * real).sum({1}) / real.sum({1}).max(1e-9));
}

void finish_masked_words(Net& net, const Tensor& hidden, Activation activation) {
  if (!net.has("head_transform")) return;
  const Config& c = net.c;
  const Tensor h = activation(net.linear("head_transform", hidden, c.hidden));
  const bool own = net.has("head");
  const Tensor y = net.head_linear(own, net.layer_norm("head_norm", h));
  const bool biased = own && !net.bias("head", c.vocab).is_empty();  // of the name of its weight
  net.output("logits", !biased && net.has("head_bias") ? y + net.weight("head_bias", {c.vocab}) : y);
}

}  // namespace rlx::models
