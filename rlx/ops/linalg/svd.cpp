#include "rlx/ops/linalg/svd.h"

#include "rlx/math/factor.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

Shapes Svd::infer(Infer& c, Attrs&) {
  c.require_float(0);
  c.require_min_rank(0, 2);
  const Shape& a = c.in(0);
  const Dim k = rlx::min(a.dim(-2), a.dim(-1));
  Dims s(a.dims().begin(), a.dims().end() - 1);
  s.back() = k;
  return {a.with_dim(-1, k), a.with_dims(s), a.with_dim(-2, k)};
}

Literals Svd::reference(const Eval& c, const Attrs&) {
  const auto a = c.in(0).to_reals();
  const int64_t m = c.in(0).shape().dim(-2).value(), n = c.in(0).shape().dim(-1).value(), k = std::min(m, n);
  std::vector<double> u(size_t(c.out(0).elements())), s(size_t(c.out(1).elements())),
      vt(size_t(c.out(2).elements()));
  for (int64_t i = 0; i < matrix_count(int64_t(a.size()), m, n); ++i)
    factor_svd(a.data() + i * m * n, m, n, u.data() + i * m * k, s.data() + i * k, vt.data() + i * k * n);
  return {Literal::reals(c.out(0), u), Literal::reals(c.out(1), s), Literal::reals(c.out(2), vt)};
}

// With F_ij = 1 / (s_j^2 - s_i^2) off the diagonal and W - W^T written skew(W):
//   da = u [ F o skew(u^T du) diag(s) + diag(s) F o skew(vt dv) + diag(ds) ] vt
//      + (1 - u u^T) du diag(1/s) vt + u diag(1/s) dvt (1 - v v^T)
Exprs Svd::vjp(const Vjp& c, const Attrs&) {
  const Expr u = c.out(0), s = c.out(1), vt = c.out(2);
  const Expr across = unsqueeze(s, -2), down = unsqueeze(s, -1);  // s scaling columns, and rows
  const Expr largest = reduce_max(down, {-2}, true);
  const auto skew = [](Expr w) { return w - swap_last(w); };
  Expr da;
  if (c.has_dy(1)) da = matmul(u * unsqueeze(c.dy(1), -2), vt);
  if (!c.has_dy(0) && !c.has_dy(2)) return {da};
  const Expr f = safe_inverse(square(across) - square(down), square(largest));
  const Expr inverse_s = safe_inverse(s, squeeze(largest, -1));
  if (c.has_dy(0)) {
    const Expr w = matmul(swap_last(u), c.dy(0));
    da = add_or(da, matmul(matmul(u, f * skew(w) * across), vt));
    if (u.dim(-1) != u.dim(-2))
      da = add_or(da, matmul((c.dy(0) - matmul(u, w)) * unsqueeze(inverse_s, -2), vt));
  }
  if (c.has_dy(2)) {
    const Expr w = matmul(vt, swap_last(c.dy(2)));
    da = add_or(da, matmul(u, matmul(down * (f * skew(w)), vt)));
    if (vt.dim(-1) != vt.dim(-2)) {
      const Expr outside = c.dy(2) - matmul(swap_last(w), vt);
      da = add_or(da, matmul(u, unsqueeze(inverse_s, -1) * outside));
    }
  }
  return {da};
}

Exprs Svd::vmap(const Vmap& c, const Attrs&) {
  const auto [u, s, vt] = svd(c.in(0));
  return {u, s, vt};
}

std::vector<OpSample<NoAttrs>> Svd::samples() {
  return {{{}, {"f32[4,3] distinct"}}, {{}, {"f64[2,3,3] distinct"}},
          {{}, {"f32[2,5] distinct"}}, {{}, {"f32[1,1]"}},
          {{}, {"f32[3,0]"}},          {{}, {"f32[0,2]"}},
          {{}, {"f16[3,1] positive"}}, {{}, {"f64[2,2,4] distinct"}}};
}

Shapes SvdValues::infer(Infer& c, Attrs&) {
  NoAttrs none;
  return {Svd::infer(c, none)[1]};
}

Exprs SvdValues::decompose(const Lower& c, const Attrs&) { return {svd(c.in(0)).s}; }

std::vector<OpSample<NoAttrs>> SvdValues::samples() {
  return {{{}, {"f32[6,4]"}}, {{}, {"f64[2,3,3]"}}, {{}, {"f32[2,5]"}},
          {{}, {"f32[1,1]"}}, {{}, {"f32[0,3]"}},   {{}, {"bf16[3,2]"}}};
}

SvdResult svd(Expr a) {
  const Exprs out = make_all<Svd>(*a.graph, {}, {a});
  return {out[0], out[1], out[2]};
}
Expr svd_values(Expr a) { return make<SvdValues>(*a.graph, {}, {a}); }

}  // namespace rlx::ops
