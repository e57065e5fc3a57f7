#include <cmath>

#include "rlx/models/encoder.h"
#include "rlx/models/layers.h"
#include "rlx/ops/attention/paged_attention.h"

namespace rlx::models {

Heads heads_of(const Net& net) {
  const Config& c = net.c;
  double scale = c.attention_scale;
  if (c.scale_by_layer)
    scale = (scale != 0 ? scale : 1 / std::sqrt(double(c.head_dim))) / double(net.layer + 1);
  return {.heads = c.heads,
          .kv_heads = c.kv_heads,
          .lanes = c.head_dim,
          .window = net.mixer() == Mixer::window ? c.window : 0,
          .scale = scale,
          .softcap = c.attention_softcap};
}

const Rope& rope_of(const Net& net) {
  const bool own = net.mixer() == Mixer::window && net.c.window_rope.kind != Rope::Kind::none;
  return own ? net.c.window_rope : net.c.rope;
}

namespace {

double scale_of(const Heads& h) { return h.scale != 0 ? h.scale : 1 / std::sqrt(double(h.lanes)); }

std::string state_name(const Net& net, std::string_view what) { return cat("layer.", net.layer, ".", what); }

// Over the pages of each text. `v` is empty where keys hold the values.
Tensor attend_pages(Net& net, const Tensor& q, const Tensor& k, const Tensor& v, int64_t value_lanes,
                    const Heads& h) {
  ops::PagedAttention::Attrs a;
  a.num_heads = h.heads;
  a.num_kv_heads = h.kv_heads;
  a.head_dim = h.lanes;
  a.value_dim = value_lanes;
  a.page = net.options.pages.page;
  a.window = h.window;
  a.score_scale = scale_of(h);
  if (h.softcap != 0) a.attn_logit_softcap = h.softcap;
  a.scheme = net.options.cache_type.scheme;
  Operands operands{q, k, net.pages(h.window > 0), net.token_positions()};
  if (!v.is_empty()) operands.emplace_back(v);
  return apply<ops::PagedAttention>(a, operands);
}

}  // namespace

Tensor attend_shared(Net& net, const Tensor& q, const Tensor& rows, int64_t value_lanes, const Heads& h) {
  RLX_CHECK(net.cached() && h.kv_heads == 1, "one key for all heads, kept in states");
  const std::string name = state_name(net, "latent");
  if (net.paged())
    return attend_pages(net, q, net.remember_in_pages(name, rows, h.window > 0), {}, value_lanes, h);
  const Tensor kept = net.remember(name, rows);
  ops::AttentionAttrs a;
  a.num_heads = h.heads;
  a.num_kv_heads = 1;
  a.head_dim = h.lanes;
  a.has_mask = true;
  a.score_scale = scale_of(h);
  return attention(q, kept, kept.narrow(2, 0, value_lanes), net.seen_keys(h.window), {}, a)[0];
}

Tensor attend(Net& net, const Tensor& q, const Tensor& new_k, const Tensor& new_v, const Heads& h) {
  // A window of an encoder lies around its token, half of it to each side.
  if (net.c.encoder) return attend_all(net, q, new_k, new_v, h, h.window > 0 ? h.window / 2 : -1);
  const double scale = scale_of(h);
  Tensor k = new_k, v = new_v;
  if (net.paged()) {
    k = net.remember_in_pages(state_name(net, "k"), new_k, h.window > 0);
    v = net.remember_in_pages(state_name(net, "v"), new_v, h.window > 0);
    return attend_pages(net, q, k, v, new_v.dim(2).value() / h.kv_heads, h);
  }
  if (net.cached()) {
    k = net.remember(state_name(net, "k"), new_k);
    v = net.remember(state_name(net, "v"), new_v);
  }
  if (net.options.attention) {
    const Tensor y = net.options.attention({net.layer, h.heads, h.kv_heads, h.lanes, scale, h.softcap}, q, k,
                                           v, net.seen_keys(h.window));
    if (!y.is_empty()) return y;
  }
  ops::AttentionAttrs a;
  a.num_heads = h.heads;
  a.num_kv_heads = h.kv_heads;
  a.head_dim = h.lanes;
  a.score_scale = scale;
  if (h.softcap != 0) a.attn_logit_softcap = h.softcap;
  Tensor mask;
  if (net.cached()) {
    mask = net.seen_keys(h.window);
  } else {
    a.mask_kind = h.window > 0 ? ops::MaskKind::sliding_window : ops::MaskKind::causal;
    a.window = h.window > 0 ? h.window - 1 : 0;  // the operator does not count the token itself
    mask = net.mask();
  }
  a.has_mask = !mask.is_empty();
  return attention(q, k, v, mask, {}, a)[0];
}

Tensor norm_heads(Net& net, std::string_view key, const Tensor& x, int64_t heads) {
  const Dims packed = x.shape().dims();
  const Dim lanes = packed[2].value() / heads;
  return net.rms_norm(key, x.reshape({packed[0], packed[1], heads, lanes})).reshape(packed);
}

QueryKeyValue query_key_value(Net& net, const Tensor& x) {
  const Config& c = net.c;
  const int64_t wide = c.heads * c.head_dim, narrow = c.kv_heads * c.head_dim;
  if (!net.has("qkv")) {
    const Tensor q = net.linear("q", x, wide), k = net.linear("k", x, narrow);
    return {q, k, net.linear("v", x, narrow)};
  }
  const Tensor all = net.linear("qkv", x, wide + 2 * narrow);
  return {all.narrow(2, 0, wide), all.narrow(2, wide, narrow), all.narrow(2, wide + narrow, narrow)};
}

Tensor self_attention(Net& net, const Tensor& x) {
  const Config& c = net.c;
  auto [q, k, v] = query_key_value(net, x);
  if (net.has("q_norm")) {
    q = norm_heads(net, "q_norm", q, c.heads);
    k = norm_heads(net, "k_norm", k, c.kv_heads);
  }
  const Rope& r = rope_of(net);
  const RopeTables& tables = net.rope(r);
  q = turn(q, tables, r, c.head_dim);
  k = turn(k, tables, r, c.head_dim);
  return net.linear("o", attend(net, q, k, v, heads_of(net)), c.hidden);
}

}  // namespace rlx::models
