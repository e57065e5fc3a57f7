// Scaled dot-product attention with grouped queries, every mask, soft-cap and bias.
//
// Operands are q, k, v, then the mask if `has_mask`, then the bias if `has_bias`. The mask kinds "custom" and
// "bias" are short for these two flags and become mask_kind none; so all of them combine with causal and
// sliding_window.
#pragma once

#include <optional>

#include "rlx/ops/attention/heads.h"

namespace rlx::ops {

enum class MaskKind { none, causal, sliding_window, custom, bias };
constexpr std::array<std::string_view, 5> choice_names(MaskKind) {
  return {"none", "causal", "sliding_window", "custom", "bias"};
}

struct AttentionAttrs {
  int64_t num_heads = 1, num_kv_heads = 0, head_dim = 0;
  MaskKind mask_kind = MaskKind::none;
  int64_t window = 0;
  bool has_mask = false, has_bias = false;
  std::optional<double> score_scale, attn_logit_softcap;
  HeadLayout layout = HeadLayout::bshd_packed;

  static constexpr auto fields() {
    using A = AttentionAttrs;
    return std::tuple{
        field("num_heads", &A::num_heads, "heads of q"),
        field(
            "num_kv_heads", &A::num_kv_heads,
            "heads of k and v, which divide num_heads: query head h reads head h * num_kv_heads / num_heads; "
            "0 means num_heads"),
        field("head_dim", &A::head_dim, "lanes of a head of q and k; 0 reads it from q"),
        field("mask_kind", &A::mask_kind,
              "none; causal: key j for query i iff j <= i; sliding_window: iff i - window <= j <= i, i "
              "counted from the end of the keys; custom is has_mask, bias is has_bias"),
        field("window", &A::window, "for sliding_window, which sees window + 1 keys; otherwise set to 0"),
        field("has_mask", &A::has_mask,
              "a mask operand follows v: [batch, keys] or [batch, heads, queries, keys] with any of the "
              "first three 1; blocked where < 0.5"),
        field("has_bias", &A::has_bias,
              "a bias operand comes last: [batch, heads, queries, keys] with any of the first three 1, "
              "added to the scores"),
        field("score_scale", &A::score_scale, "factor of the products; 1 / sqrt(head_dim) when left out"),
        field("attn_logit_softcap", &A::attn_logit_softcap, "cap c: s becomes c tanh(s / c); 0 means none"),
        field("layout", &A::layout,
              "bshd_packed: [batch, seq, heads * head_dim] or [seq, heads * head_dim]; bshd; bhsd")};
  }

  int extra_operands() const { return int(has_mask) + int(has_bias); }
  double scale() const;  // head_dim must be known
};

struct Attention {
  static constexpr std::string_view name = "attention", summary = "Scaled dot-product attention.",
                                    operands = "q, k, v, mask_or_bias?, bias?", results = "y, lse";
  static constexpr std::string_view doc =
      "s = scale q k^T, then c tanh(s / c) if capped, then s + bias, then -inf where masked; lse = log sum "
      "exp s over the keys, y = exp(s - lse) v. A row without any allowed key gives y = 0, lse = -inf and "
      "no gradient. lse is [batch, heads, queries], f64 for f64 operands and else f32";
  static constexpr Traits traits{.contraction = true};
  using Attrs = AttentionAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// The gradients of attention from its saved log-sum-exp. With p = exp(s - lse) and
/// delta = sum(dy y) - dlse:  dv = p^T dy, ds = p (dy v^T - delta), dq = scale ds' k, dk = scale ds'^T q,
/// dbias = ds, where ds' = ds (1 - (s/c)^2) when capped.
struct AttentionBackward {
  static constexpr std::string_view name = "attention_backward",
                                    summary = "All gradients of attention from its log-sum-exp.",
                                    operands = "q, k, v, dy, lse, delta, mask_or_bias?, bias?",
                                    results = "dq, dk, dv, dbias?";
  static constexpr std::string_view doc =
      "p = exp(s - lse) with s as in attention and delta = sum(dy y) - dlse, [batch, heads, queries]: "
      "dv = p^T dy; ds = p (dy v^T - delta); dbias = ds; dq = scale ds k, dk = scale ds^T q, with ds times "
      "1 - (s/c)^2 under a soft-cap. dbias is there when has_bias";
  static constexpr Traits traits{.contraction = true};
  using Attrs = AttentionAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct AttentionResult {
  Expr output, lse;
};

/// The general form. `mask` and `bias` may be empty; has_mask and has_bias follow from them.
AttentionResult attention_with(Expr q, Expr k, Expr v, Expr mask, Expr bias, AttentionAttrs attrs);

/// With a key mask [batch, keys], blocked where < 0.5; an empty mask blocks nothing.
Expr attention(Expr q, Expr k, Expr v, Expr mask, int64_t num_heads, int64_t head_dim);
Expr attention_opts(Expr q, Expr k, Expr v, Expr mask, int64_t num_heads, int64_t head_dim,
                    std::optional<double> score_scale, std::optional<double> attn_logit_softcap);
/// With a mask that needs no operand: none, causal or sliding_window.
Expr attention_kind(Expr q, Expr k, Expr v, int64_t num_heads, int64_t head_dim, MaskKind mask_kind,
                    int64_t window = 0);
Expr attention_kind_opts(Expr q, Expr k, Expr v, int64_t num_heads, int64_t head_dim, MaskKind mask_kind,
                         std::optional<double> score_scale, std::optional<double> attn_logit_softcap,
                         int64_t window = 0);
/// bias: [batch, heads, queries, keys], added before the softmax.
Expr attention_bias(Expr q, Expr k, Expr v, Expr bias, int64_t num_heads, int64_t head_dim);

enum class AttentionWrt { query, key, value, bias };
constexpr std::array<std::string_view, 4> choice_names(AttentionWrt) {
  return {"query", "key", "value", "bias"};
}

struct AttentionGradients {
  Expr dq, dk, dv, dbias;  // dbias is empty without a bias
};

/// The gradients for the cotangent `dy` of the output; the forward node is made again and shared by CSE.
AttentionGradients attention_gradients(Expr q, Expr k, Expr v, Expr dy, Expr mask, Expr bias,
                                       AttentionAttrs attrs);
/// `mask` is the mask for mask_kind custom and the bias for mask_kind bias.
Expr attention_backward(AttentionWrt wrt, Expr q, Expr k, Expr v, Expr dy, int64_t num_heads,
                        int64_t head_dim, MaskKind mask_kind, Expr mask = {}, int64_t window = 0);
AttentionGradients attention_backward_all(Expr q, Expr k, Expr v, Expr dy, int64_t num_heads,
                                          int64_t head_dim, MaskKind mask_kind, Expr mask = {},
                                          int64_t window = 0);

}  // namespace rlx::ops
