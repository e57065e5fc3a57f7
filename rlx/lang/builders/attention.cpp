#include "rlx/lang/builders/attention.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/attention/rope.h"

namespace rlx {

Value AttentionBuilder::attention(Value q, Value k, Value v, std::optional<Value> mask, int64_t num_heads,
                                  int64_t head_dim, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::attention(t(q), t(k), t(v), t(mask), num_heads, head_dim); });
}

Value AttentionBuilder::attention_(Value q, Value k, Value v, std::optional<Value> mask, int64_t num_heads,
                                   int64_t head_dim, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::attention(t(q), t(k), t(v), t(mask), num_heads, head_dim); });
}

Value AttentionBuilder::attention_opts(Value q, Value k, Value v, std::optional<Value> mask,
                                       int64_t num_heads, int64_t head_dim, std::optional<double> score_scale,
                                       std::optional<double> attn_logit_softcap, const Declared& shape,
                                       const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::attention_opts(t(q), t(k), t(v), t(mask), num_heads, head_dim, score_scale,
                               attn_logit_softcap);
  });
}

Value AttentionBuilder::attention_kind(Value q, Value k, Value v, int64_t num_heads, int64_t head_dim,
                                       ops::MaskKind mask_kind, int64_t window, const Declared& shape,
                                       const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::attention_kind(t(q), t(k), t(v), num_heads, head_dim, mask_kind, window); });
}

Value AttentionBuilder::attention_kind_opts(Value q, Value k, Value v, int64_t num_heads, int64_t head_dim,
                                            ops::MaskKind mask_kind, std::optional<double> score_scale,
                                            std::optional<double> attn_logit_softcap, int64_t window,
                                            const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::attention_kind_opts(t(q), t(k), t(v), num_heads, head_dim, mask_kind, score_scale,
                                    attn_logit_softcap, window);
  });
}

Value AttentionBuilder::attention_bias(Value q, Value k, Value v, Value bias, int64_t num_heads,
                                       int64_t head_dim, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::attention_bias(t(q), t(k), t(v), t(bias), num_heads, head_dim); });
}

Value AttentionBuilder::rope(Value x, Value cos, Value sin, int64_t head_dim, const Declared& shape,
                             const Loc& loc) {
  return one(shape, loc, [&] { return ops::rope(t(x), t(cos), t(sin), head_dim); });
}

Value AttentionBuilder::rope_n(Value x, Value cos, Value sin, int64_t head_dim, int64_t n_rot,
                               const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::rope_n(t(x), t(cos), t(sin), head_dim, n_rot); });
}

Value AttentionBuilder::axial_rope2d(Value x, int64_t end_x, int64_t end_y, int64_t head_dim,
                                     int64_t num_heads, double theta, int64_t repeat_factor,
                                     const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::axial_rope2d(t(x), end_x, end_y, head_dim, num_heads, theta, repeat_factor);
  });
}

}  // namespace rlx
