#include "rlx/ops/attention/scores.h"

#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

double AttentionAttrs::scale() const { return score_scale ? *score_scale : 1 / std::sqrt(double(head_dim)); }

namespace detail {
namespace {

void check_heads(Infer& c, AttentionAttrs& a) {
  if (a.num_heads < 1) c.fail("num_heads is ", a.num_heads, "; it must be 1 or more");
  if (a.num_kv_heads < 0) c.fail("num_kv_heads is ", a.num_kv_heads, "; it must be 0 or more");
  if (a.num_kv_heads == 0) a.num_kv_heads = a.num_heads;
  if (a.num_heads % a.num_kv_heads != 0) {
    c.fail("num_kv_heads ", a.num_kv_heads, " does not divide num_heads ", a.num_heads);
  }
}

void check_options(Infer& c, AttentionAttrs& a) {
  if (a.mask_kind == MaskKind::custom) a.has_mask = true, a.mask_kind = MaskKind::none;
  if (a.mask_kind == MaskKind::bias) a.has_bias = true, a.mask_kind = MaskKind::none;
  if (a.mask_kind != MaskKind::sliding_window) a.window = 0;
  if (a.window < 0) c.fail("window is ", a.window, "; it must be 0 or more (window + 1 keys are seen)");
  if (a.attn_logit_softcap && !(*a.attn_logit_softcap >= 0))
    c.fail("attn_logit_softcap is ", *a.attn_logit_softcap, "; it must be positive, or 0 for none");
  if (a.attn_logit_softcap == 0.0) a.attn_logit_softcap.reset();
}

// The heads of q or k. Packed columns of symbolic number are as many as num_heads and head_dim say.
HeadView known_heads(Infer& c, int i, const AttentionAttrs& a, int64_t heads) {
  const Shape& x = c.in(i);
  const bool is_packed = a.layout == HeadLayout::bshd_packed && (x.rank() == 2 || x.rank() == 3);
  if (!is_packed || a.head_dim <= 0 || !x.dim(-1).is_symbolic()) return view_heads(c, i, a.layout, heads);
  c.same(x.dim(-1), Dim(heads) * Dim(a.head_dim), cat("columns of ", c.operand_name(i), " and of its heads"));
  return {x.rank() == 2 ? Dim(1) : x.dim(0), x.dim(-2), heads, a.head_dim};
}

// [batch, heads, queries, keys], where any of the first three may be 1.
void check_square(Infer& c, int i, std::string_view name, const AttentionExtents& e) {
  const Shape& x = c.in(i);
  const Dim want[] = {e.q.batch, e.q.heads, e.q.seq, e.k.seq};
  bool ok = x.rank() == 4;
  for (int axis = 0; ok && axis < 4; ++axis) {
    ok = (axis < 3 && x.dim(axis) == Dim(1)) || decide_equal(x.dim(axis), want[axis]) != false;
  }
  if (!ok) {
    c.fail(name, ": ", x, " must be [", want[0], ", ", want[1], ", ", want[2], ", ", want[3],
           "] (batch, heads, queries, keys), any of the first three may be 1",
           name == "mask" ? cat("; or [", want[0], ", ", want[3], "] (batch, keys)") : "");
  }
  for (int axis = 0; axis < 4; ++axis) {
    if (axis == 3 || x.dim(axis) != Dim(1)) c.same(x.dim(axis), want[axis], cat("sizes of ", name));
  }
}

void check_mask(Infer& c, int i, const AttentionExtents& e) {
  const Shape& x = c.in(i);
  if (is_complex(x.dtype()) || is_storage_only(x.dtype()))
    c.fail("mask: ", x, " has dtype ", x.dtype(), "; it must be bool, an integer or a float");
  if (x.rank() != 2 || decide_equal(x.dim(1), e.k.seq) == false ||
      (x.dim(0) != Dim(1) && decide_equal(x.dim(0), e.q.batch) == false)) {
    check_square(c, i, "mask", e);
    return;
  }
  if (x.dim(0) != Dim(1)) c.same(x.dim(0), e.q.batch, "batch sizes of q and mask");
  c.same(x.dim(1), e.k.seq, "key lengths of k and mask");
}

}  // namespace

DType compute_dtype(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }

AttentionExtents extents_of(const Shape& q, const Shape& k, const Shape& v, const AttentionAttrs& a) {
  return {view_heads(q, a.layout, a.num_heads), view_heads(k, a.layout, a.num_kv_heads),
          view_heads(v, a.layout, a.num_kv_heads)};
}

AttentionExtents check_attention(Infer& c, AttentionAttrs& a, int extra) {
  check_heads(c, a);
  check_options(c, a);
  c.require_float(0);
  c.same_dtype({0, 1, 2});
  if (c.count() != extra + a.extra_operands()) {
    c.fail(c.count(), " operands given; with has_mask ", a.has_mask, " and has_bias ", a.has_bias,
           " it takes ", extra + a.extra_operands());
  }
  AttentionExtents e{known_heads(c, 0, a, a.num_heads), known_heads(c, 1, a, a.num_kv_heads),
                     view_heads(c, 2, a.layout, a.num_kv_heads)};
  if (c.in(1).rank() != c.in(0).rank() || c.in(2).rank() != c.in(0).rank())
    c.fail("ranks differ, q: ", c.in(0), ", k: ", c.in(1), ", v: ", c.in(2));
  if (a.head_dim == 0) {
    if (!e.q.head_dim.is_static()) c.fail("q: ", c.in(0), " does not tell head_dim; give it");
    a.head_dim = e.q.head_dim.value();
  }
  for (const int i : {0, 1}) {
    const Dim got = i == 0 ? e.q.head_dim : e.k.head_dim;
    if (decide_equal(got, a.head_dim) == false) {
      c.fail(c.operand_name(i), ": ", c.in(i), " has ", got, " lanes per head; head_dim is ", a.head_dim);
    }
    c.same(got, a.head_dim, "head_dim and lanes per head");
  }
  e.q.head_dim = e.k.head_dim = a.head_dim;
  if (decide_equal(e.k.seq, e.v.seq) == false)
    c.fail("k: ", c.in(1), " and v: ", c.in(2), " have ", e.k.seq, " and ", e.v.seq, " keys");
  e.k.seq = e.v.seq = c.same(e.k.seq, e.v.seq, "key lengths of k and v");
  e.k.batch = c.same(e.q.batch, e.k.batch, "batch sizes of q and k");
  e.v.batch = c.same(e.q.batch, e.v.batch, "batch sizes of q and v");
  if (a.has_mask) check_mask(c, extra, e);
  if (a.has_bias) {
    const int at = extra + int(a.has_mask);
    if (c.in(at).dtype() != c.in(0).dtype()) {
      c.fail("dtypes differ, q: ", c.in(0), " and bias: ", c.in(at), "; cast bias to ", c.in(0).dtype());
    }
    check_square(c, at, "bias", e);
  }
  return e;
}

AttentionHeads::AttentionHeads(Expr q_in, Expr k_in, Expr v_in, Expr mask_in, Expr bias_in,
                               const AttentionAttrs& a)
    : e(extents_of(q_in.shape(), k_in.shape(), v_in.shape(), a)), attrs(&a), mask(mask_in), bias(bias_in) {
  const DType t = compute_dtype(q_in.dtype());
  e.q.head_dim = e.k.head_dim = a.head_dim;
  q = query_heads(cast(q_in, t));
  k = to_heads(cast(k_in, t), a.layout, e.k.heads, e.k.head_dim);
  v = to_heads(cast(v_in, t), a.layout, e.v.heads, e.v.head_dim);
  if (bias) bias = cast(bias, t);
  if (mask && mask.rank() == 2) mask = reshape(mask, {mask.dim(0), 1, 1, mask.dim(1)});
}

Expr AttentionHeads::grouped(Expr x) const {
  const int64_t group = attrs->num_heads / attrs->num_kv_heads;
  return reshape(x, {x.dim(0), attrs->num_kv_heads, group * e.q.seq, x.dim(3)});
}

Expr AttentionHeads::ungrouped(Expr x) const {
  return reshape(x, {x.dim(0), attrs->num_heads, e.q.seq, x.dim(3)});
}

Expr AttentionHeads::query_heads(Expr x) const {
  const Dim lanes = view_heads(x.shape(), attrs->layout, attrs->num_heads).head_dim;
  return grouped(to_heads(x, attrs->layout, e.q.heads, lanes));
}

Expr AttentionHeads::capped_scores() const {
  const Expr s = ungrouped(matmul(q, swap_last(k))) * attrs->scale();
  if (!attrs->attn_logit_softcap) return s;
  const double cap = *attrs->attn_logit_softcap;
  return tanh(s / cap) * cap;
}

Expr AttentionHeads::masked(Expr s) const {
  const Expr blocked = scalar_like(s, -INFINITY);
  if (bias) s = s + bias;
  if (mask && mask.dtype() == DType::bool_) {
    s = where(mask, s, blocked);
  } else if (mask) {
    const Expr m = is_integer(mask.dtype()) ? cast(mask, DType::f32) : mask;
    s = where(less(m, scalar_like(m, 0.5)), blocked, s);
  }
  if (attrs->mask_kind == MaskKind::none) return s;
  // Counted from the end, query and key positions line up whatever their lengths: key j is allowed for query
  // i iff from_end(i) <= from_end(j), and inside the window iff from_end(j) <= from_end(i) + window.
  const auto from_end = [&](Dim n, Dims dims) {
    const Expr ones = full(*s.graph, Shape(DType::i32, {n}), 1);
    return reshape(cumsum(ones, 0, true, true), dims);
  };
  const Expr row = from_end(e.q.seq, {e.q.seq, 1}), column = from_end(e.k.seq, {1, e.k.seq});
  s = where(less(column, row), blocked, s);
  if (attrs->mask_kind == MaskKind::sliding_window)
    s = where(greater(column, row + double(attrs->window)), blocked, s);
  return s;
}

}  // namespace detail
}  // namespace rlx::ops
