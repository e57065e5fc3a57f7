// Attention and rotary positions.
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/attention/attention.h"

namespace rlx {

/// Attention and rotary positions.
class AttentionBuilder : public BuilderTheme<AttentionBuilder> {
 public:
  /// mask is [batch, keys], blocked where < 0.5.
  Value attention(Value q, Value k, Value v, std::optional<Value> mask, int64_t num_heads, int64_t head_dim,
                  const Declared& shape = {}, const Loc& loc = Loc::current());
  Value attention_(Value q, Value k, Value v, std::optional<Value> mask, int64_t num_heads, int64_t head_dim,
                   const Declared& shape = {}, const Loc& loc = Loc::current());
  /// With a scale other than 1 / sqrt(head_dim) and a soft cap c tanh(s / c) of the scores.
  Value attention_opts(Value q, Value k, Value v, std::optional<Value> mask, int64_t num_heads,
                       int64_t head_dim, std::optional<double> score_scale = {},
                       std::optional<double> attn_logit_softcap = {}, const Declared& shape = {},
                       const Loc& loc = Loc::current());
  /// window belongs to sliding_window.
  Value attention_kind(Value q, Value k, Value v, int64_t num_heads, int64_t head_dim,
                       ops::MaskKind mask_kind, int64_t window = 0, const Declared& shape = {},
                       const Loc& loc = Loc::current());
  /// attention_kind with the options of attention_opts.
  Value attention_kind_opts(Value q, Value k, Value v, int64_t num_heads, int64_t head_dim,
                            ops::MaskKind mask_kind, std::optional<double> score_scale = {},
                            std::optional<double> attn_logit_softcap = {}, int64_t window = 0,
                            const Declared& shape = {}, const Loc& loc = Loc::current());
  /// bias is [batch, heads, queries, keys], added before the softmax.
  Value attention_bias(Value q, Value k, Value v, Value bias, int64_t num_heads, int64_t head_dim,
                       const Declared& shape = {}, const Loc& loc = Loc::current());
  Value rope(Value x, Value cos, Value sin, int64_t head_dim, const Declared& shape = {},
             const Loc& loc = Loc::current());
  /// rope of the first n_rot lanes of each head only.
  Value rope_n(Value x, Value cos, Value sin, int64_t head_dim, int64_t n_rot, const Declared& shape = {},
               const Loc& loc = Loc::current());
  Value axial_rope2d(Value x, int64_t end_x, int64_t end_y, int64_t head_dim, int64_t num_heads, double theta,
                     int64_t repeat_factor = 1, const Declared& shape = {}, const Loc& loc = Loc::current());
};

}  // namespace rlx
