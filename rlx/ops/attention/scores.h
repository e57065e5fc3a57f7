// The formulas that attention and its gradients share, as graph operations on heads. Queries are grouped by
// the key head they read, [batch, kv_heads, group * queries, head_dim], so that keys are never repeated.
#pragma once

#include "rlx/ops/attention/attention.h"

namespace rlx::ops::detail {

struct AttentionExtents {
  HeadView q, k, v;
};

/// Checks q, k, v and the mask and bias from operand `extra` on, and makes the attributes canonical.
AttentionExtents check_attention(Infer& c, AttentionAttrs& a, int extra);
AttentionExtents extents_of(const Shape& q, const Shape& k, const Shape& v, const AttentionAttrs& a);

/// f16 and bf16 compute in f32.
DType compute_dtype(DType);

/// The operands in grouped form and computing precision.
struct AttentionHeads {
  AttentionExtents e;
  const AttentionAttrs* attrs;
  Expr q, k, v, mask, bias;

  AttentionHeads(Expr q, Expr k, Expr v, Expr mask, Expr bias, const AttentionAttrs& attrs);

  /// [batch, kv_heads, group * queries, x] <-> [batch, heads, queries, x]
  Expr grouped(Expr x) const;
  Expr ungrouped(Expr x) const;
  Expr query_heads(Expr x) const;  // a tensor laid out like q, in grouped form

  /// scale q k^T under the soft-cap, [batch, heads, queries, keys].
  Expr capped_scores() const;
  /// Those with bias and mask.
  Expr masked(Expr capped) const;
};

}  // namespace rlx::ops::detail
