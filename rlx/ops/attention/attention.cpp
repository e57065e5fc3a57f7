#include "rlx/ops/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "rlx/ops/attention/scores.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

using detail::AttentionHeads, detail::compute_dtype;

Shapes Attention::infer(Infer& c, Attrs& a) {
  const auto e = detail::check_attention(c, a, 3);
  const Shape& q = c.in(0);
  const Dims y = head_dims({e.q.batch, e.q.seq, e.q.heads, e.v.head_dim}, a.layout, q.rank());
  return {q.with_dims(y), Shape(compute_dtype(q.dtype()), {e.q.batch, e.q.heads, e.q.seq})};
}

namespace {

// Operands of q, k, v followed from `extra` on by mask and bias, either of which may be absent.
template <class Context>
AttentionHeads heads_of(const Context& c, const AttentionAttrs& a, int extra) {
  return AttentionHeads(c.in(0), c.in(1), c.in(2), a.has_mask ? c.in(extra) : Expr{},
                        a.has_bias ? c.in(extra + int(a.has_mask)) : Expr{}, a);
}

// 0 in place of -inf, and where that was: rows without an allowed key stay finite all the way.
std::pair<Expr, Expr> without_infinity(Expr x) {
  const Expr none = equal(x, scalar_like(x, -INFINITY));
  return {where(none, scalar_like(x, 0), x), none};
}

}  // namespace

Exprs Attention::decompose(const Lower& c, const Attrs& a) {
  const AttentionHeads h = heads_of(c, a, 3);
  const Expr s = h.masked(h.capped_scores());
  const auto [top, none] = without_infinity(reduce_max(s, {3}, true));
  const Expr p = exp(s - top);
  const Expr sum = where(none, scalar_like(s, 1), reduce_sum(p, {3}, true));
  const Expr lse = where(none, scalar_like(s, -INFINITY), top + log(sum));
  const Expr y = h.ungrouped(matmul(h.grouped(p / sum), h.v));
  return {cast(from_heads(y, a.layout, c.in(0).rank()), c.in(0).dtype()), reshape(lse, c.out(1).dims())};
}

namespace {

// The backward node of an attention node; `dlse` may be empty.
Exprs backward_of(Graph& g, const Values& operands, Expr y, Expr lse, Expr dy, Expr dlse,
                  const AttentionAttrs& a) {
  const DType t = compute_dtype(y.dtype());
  const Dim lanes = view_heads(y.shape(), a.layout, a.num_heads).head_dim;
  const Expr products = to_heads(cast(dy, t) * cast(y, t), a.layout, a.num_heads, lanes);
  Expr delta = reduce_sum(products, {3});
  if (dlse) delta = delta - dlse;
  Values all(operands.begin(), operands.begin() + 3);
  all.insert(all.end(), {dy, lse, delta});
  all.insert(all.end(), operands.begin() + 3, operands.end());
  return make_all<AttentionBackward>(g, a, all);
}

}  // namespace

Exprs Attention::vjp(const Vjp& c, const Attrs& a) {
  const Values operands(c.operands.begin(), c.operands.end());
  const Exprs d =
      backward_of(c.graph, operands, c.out(0), c.out(1), c.dy(), c.has_dy(1) ? c.dy(1) : Expr{}, a);
  Exprs out{d[0], d[1], d[2]};
  if (a.has_mask) out.push_back({});
  if (a.has_bias) out.push_back(d[3]);
  return out;
}

// A batch in front joins the batch axis; [seq, ...] operands get one.
Exprs Attention::vmap(const Vmap& c, const Attrs& a) {
  const int rank = c.in(0).rank() - int(c.batched(0));
  const Dim rows = rank == 2 ? Dim(1) : c.in(0).dim(c.batched(0) ? 1 : 0);
  Values operands;
  for (int i = 0; i < c.count(); ++i) {
    Expr x = lifted(c, i);
    Dims dims = x.shape().dims();
    if (i >= 3 || rank != 2) {
      if (i >= 3 && dims[1] == Dim(1)) {  // a mask or bias shared by the rows
        dims[1] = rows;
        x = expand(x, dims);
      }
      dims.erase(dims.begin());
      dims[0] = c.size * dims[0];
    }
    operands.push_back(reshape(x, dims));
  }
  Exprs out = make_all<Attention>(c.graph, a, operands);
  Dims y = out[0].shape().dims(), lse = out[1].shape().dims();
  if (rank != 2) y[0] = rows, y.insert(y.begin(), c.size);
  lse[0] = rows, lse.insert(lse.begin(), c.size);
  return {reshape(out[0], y), reshape(out[1], lse)};
}

namespace {

// Keys that a query sees, on average: queries end with the keys, so under a causal mask the first of n sees n - 1 less.
double keys_seen(const Shape& q, const Shape& k, const AttentionAttrs& a) {
  const int axis = a.layout == HeadLayout::bshd ? -3 : -2;
  const double queries = double(q.dim(axis).value()), keys = double(k.dim(axis).value());
  if (a.mask_kind != MaskKind::causal && a.mask_kind != MaskKind::sliding_window) return keys;
  const double before = std::max(keys / 2, keys - (queries - 1) / 2);
  return a.mask_kind == MaskKind::causal ? before : std::min(before, double(a.window + 1));
}

}  // namespace

// q k^T and p v.
double Attention::operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs& a) {
  return 2 * keys_seen(in[0], in[1], a) * double(in[0].elements() + out[0].elements());
}

// q k^T, ds k and ds^T q over the lanes of q; dy v^T and p^T dy over those of v.
double AttentionBackward::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs& a) {
  return 2 * keys_seen(in[0], in[1], a) * double(3 * in[0].elements() + 2 * in[3].elements());
}

std::vector<OpSample<Attention::Attrs>> Attention::samples() {
  using enum MaskKind;
  using enum HeadLayout;
  return {{{.num_heads = 2, .head_dim = 3}, {"f32[2,3,6]", "f32[2,4,6]", "f32[2,4,6]"}},
          {{.num_heads = 4, .num_kv_heads = 2, .mask_kind = causal}, {"f64[3,8]", "f64[5,4]", "f64[5,4]"}},
          {{.num_heads = 3, .num_kv_heads = 1, .mask_kind = sliding_window, .window = 1, .score_scale = 0.3},
           {"f32[1,4,6]", "f32[1,5,2]", "f32[1,5,2]"}},
          {{.num_heads = 2, .mask_kind = custom, .attn_logit_softcap = 2.0},
           {"f32[1,1,4]", "f32[1,3,4]", "f32[1,3,4]", "f32[1,3] in 0.6..1.4"}},
          {{.num_heads = 2, .mask_kind = bias, .attn_logit_softcap = 1.5, .layout = bhsd},
           {"f32[2,2,3,2]", "f32[2,2,2,2]", "f32[2,2,2,2]", "f32[1,2,3,2]"}},
          {{.num_heads = 2,
            .num_kv_heads = 1,
            .mask_kind = causal,
            .has_mask = true,
            .has_bias = true,
            .layout = bshd},
           {"f32[2,3,2,2]", "f32[2,3,1,2]", "f32[2,3,1,3]", "i32[2,1,3,3] in 1..9", "f32[2,2,1,3]"}},
          {{.num_heads = 2}, {"f32[0,3,4]", "f32[0,2,4]", "f32[0,2,4]"}},
          {{.num_heads = 1}, {"f16[1,1,1]", "f16[1,1,1]", "f16[1,1,1]"}},
          {{.num_heads = 1, .mask_kind = causal}, {"bf16[2,2]", "bf16[3,2]", "bf16[3,2]"}}};
}

Shapes AttentionBackward::infer(Infer& c, Attrs& a) {
  const auto e = detail::check_attention(c, a, 6);
  c.same_dtype({0, 3});
  const Shape& q = c.in(0);
  require_dims(c, 3, head_dims({e.q.batch, e.q.seq, e.q.heads, e.v.head_dim}, a.layout, q.rank()),
               "as the output");
  for (const int i : {4, 5}) {
    if (c.in(i).dtype() != compute_dtype(q.dtype()))
      c.fail(c.operand_name(i), ": ", c.in(i), " must have dtype ", compute_dtype(q.dtype()));
    require_dims(c, i, {e.q.batch, e.q.heads, e.q.seq}, "(batch, heads, queries)");
  }
  Shapes out{q, c.in(1), c.in(2)};
  if (a.has_bias) out.push_back(c.in(6 + int(a.has_mask)));
  return out;
}

Exprs AttentionBackward::decompose(const Lower& c, const Attrs& a) {
  const AttentionHeads h = heads_of(c, a, 6);
  const DType t = h.q.dtype();
  const int rank = c.in(0).rank();
  const Expr dy = h.query_heads(cast(c.in(3), t));
  const Expr lse = without_infinity(unsqueeze(c.in(4), -1)).first, delta = unsqueeze(c.in(5), -1);
  const Expr capped = h.capped_scores(), p = exp(h.masked(capped) - lse);
  const Expr ds = p * (h.ungrouped(matmul(dy, swap_last(h.v))) - delta);
  Expr dz = ds * a.scale();
  if (a.attn_logit_softcap) dz = dz * (1.0 - square(capped / *a.attn_logit_softcap));
  dz = h.grouped(dz);
  const auto laid_out = [&](Expr x, int like) {
    return cast(from_heads(x, a.layout, rank), c.out(like).dtype());
  };
  Exprs out{laid_out(h.ungrouped(matmul(dz, h.k)), 0), laid_out(matmul(swap_last(dz), h.q), 1),
            laid_out(matmul(swap_last(h.grouped(p)), dy), 2)};
  if (a.has_bias) out.push_back(cast(unbroadcast(ds, c.out(3).dims()), c.out(3).dtype()));
  return out;
}

std::vector<OpSample<AttentionBackward::Attrs>> AttentionBackward::samples() {
  using enum MaskKind;
  return {{{.num_heads = 2},
           {"f32[2,3,4]", "f32[2,2,4]", "f32[2,2,4]", "f32[2,3,4]", "f32[2,2,3] positive", "f32[2,2,3]"}},
          {{.num_heads = 2, .num_kv_heads = 1, .mask_kind = causal, .attn_logit_softcap = 2.0},
           {"f64[2,4]", "f64[3,2]", "f64[3,2]", "f64[2,4]", "f64[1,2,2] positive", "f64[1,2,2]"}},
          {{.num_heads = 1, .mask_kind = sliding_window, .window = 0, .layout = HeadLayout::bhsd},
           {"f32[1,1,2,3]", "f32[1,1,2,3]", "f32[1,1,2,1]", "f32[1,1,2,1]", "f32[1,1,2]", "f32[1,1,2]"}},
          {{.num_heads = 2, .has_mask = true, .has_bias = true, .score_scale = 0.7},
           {"f32[1,2,2]", "f32[1,3,2]", "f32[1,3,2]", "f32[1,2,2]", "f32[1,2,2]", "f32[1,2,2]", "bool[1,3]",
            "f32[1,1,2,3]"}},
          {{.num_heads = 1},
           {"f16[0,1,2]", "f16[0,1,2]", "f16[0,1,2]", "f16[0,1,2]", "f32[0,1,1]", "f32[0,1,1]"}},
          {{.num_heads = 1},
           {"f32[1,1,1]", "f32[1,1,1]", "f32[1,1,1]", "f32[1,1,1]", "f32[1,1,1]", "f32[1,1,1]"}}};
}

AttentionResult attention_with(Expr q, Expr k, Expr v, Expr mask, Expr bias, AttentionAttrs attrs) {
  attrs.has_mask = bool(mask);
  attrs.has_bias = bool(bias);
  if (attrs.mask_kind == MaskKind::custom && !mask)
    throw invalid("attention: mask_kind is custom and no mask is given");
  if (attrs.mask_kind == MaskKind::bias && !bias)
    throw invalid("attention: mask_kind is bias and no bias is given");
  Values operands{q, k, v};
  if (mask) operands.push_back(mask);
  if (bias) operands.push_back(bias);
  const Exprs out = make_all<Attention>(*q.graph, attrs, operands);
  return {out[0], out[1]};
}

Expr attention(Expr q, Expr k, Expr v, Expr mask, int64_t num_heads, int64_t head_dim) {
  return attention_opts(q, k, v, mask, num_heads, head_dim, {}, {});
}

Expr attention_opts(Expr q, Expr k, Expr v, Expr mask, int64_t num_heads, int64_t head_dim,
                    std::optional<double> score_scale, std::optional<double> attn_logit_softcap) {
  return attention_with(q, k, v, mask, {},
                        {.num_heads = num_heads,
                         .head_dim = head_dim,
                         .score_scale = score_scale,
                         .attn_logit_softcap = attn_logit_softcap})
      .output;
}

Expr attention_kind(Expr q, Expr k, Expr v, int64_t num_heads, int64_t head_dim, MaskKind mask_kind,
                    int64_t window) {
  return attention_kind_opts(q, k, v, num_heads, head_dim, mask_kind, {}, {}, window);
}

Expr attention_kind_opts(Expr q, Expr k, Expr v, int64_t num_heads, int64_t head_dim, MaskKind mask_kind,
                         std::optional<double> score_scale, std::optional<double> attn_logit_softcap,
                         int64_t window) {
  return attention_with(q, k, v, {}, {},
                        {.num_heads = num_heads,
                         .head_dim = head_dim,
                         .mask_kind = mask_kind,
                         .window = window,
                         .score_scale = score_scale,
                         .attn_logit_softcap = attn_logit_softcap})
      .output;
}

Expr attention_bias(Expr q, Expr k, Expr v, Expr bias, int64_t num_heads, int64_t head_dim) {
  return attention_with(q, k, v, {}, bias, {.num_heads = num_heads, .head_dim = head_dim}).output;
}

AttentionGradients attention_gradients(Expr q, Expr k, Expr v, Expr dy, Expr mask, Expr bias,
                                       AttentionAttrs attrs) {
  const AttentionResult y = attention_with(q, k, v, mask, bias, attrs);
  const Node& forward = q.graph->node(y.output);
  const Values operands = forward.inputs;
  const AttentionAttrs canonical = forward.as<Attention>();
  const Exprs d = backward_of(*q.graph, operands, y.output, y.lse, dy, {}, canonical);
  return {d[0], d[1], d[2], bias ? d[3] : Expr{}};
}

AttentionGradients attention_backward_all(Expr q, Expr k, Expr v, Expr dy, int64_t num_heads,
                                          int64_t head_dim, MaskKind mask_kind, Expr mask, int64_t window) {
  const bool is_bias = mask_kind == MaskKind::bias;
  return attention_gradients(
      q, k, v, dy, is_bias ? Expr{} : mask, is_bias ? mask : Expr{},
      {.num_heads = num_heads, .head_dim = head_dim, .mask_kind = mask_kind, .window = window});
}

Expr attention_backward(AttentionWrt wrt, Expr q, Expr k, Expr v, Expr dy, int64_t num_heads,
                        int64_t head_dim, MaskKind mask_kind, Expr mask, int64_t window) {
  const auto d = attention_backward_all(q, k, v, dy, num_heads, head_dim, mask_kind, mask, window);
  switch (wrt) {
    case AttentionWrt::query:
      return d.dq;
    case AttentionWrt::key:
      return d.dk;
    case AttentionWrt::value:
      return d.dv;
    case AttentionWrt::bias:
      break;
  }
  if (!d.dbias) throw invalid("attention_backward: the gradient of the bias needs mask_kind bias");
  return d.dbias;
}

}  // namespace rlx::ops
