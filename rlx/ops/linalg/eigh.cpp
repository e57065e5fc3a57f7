#include "rlx/ops/linalg/eigh.h"

#include "rlx/math/factor.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

Shapes Eigh::infer(Infer& c, Attrs&) {
  c.require_float(0);
  require_square(c, 0);
  const Shape& a = c.in(0);
  return {a.with_dims(Dims(a.dims().begin(), a.dims().end() - 1)), a};
}

Literals Eigh::reference(const Eval& c, const Attrs&) {
  const auto a = c.in(0).to_reals();
  const int64_t n = c.in(0).shape().dim(-1).value();
  std::vector<double> w(size_t(c.out(0).elements())), v(a.size()), symmetric(size_t(n * n));
  for (int64_t m = 0; m < matrix_count(int64_t(a.size()), n, n); ++m) {
    const double* from = a.data() + m * n * n;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j)
        symmetric[size_t(i * n + j)] = 0.5 * (from[i * n + j] + from[j * n + i]);
    }
    factor_eigen(symmetric.data(), n, w.data() + m * n, v.data() + m * n * n);
  }
  return {Literal::reals(c.out(0), w), Literal::reals(c.out(1), v)};
}

// With F_ij = 1 / (w_j - w_i) off the diagonal: da = symmetric part of v (diag(dw) + F o (v^T dv)) v^T.
Exprs Eigh::vjp(const Vjp& c, const Attrs&) {
  const Expr w = c.out(0), v = c.out(1);
  Expr inner;
  if (c.has_dy(1)) {
    const Expr across = unsqueeze(w, -2), down = unsqueeze(w, -1);
    const Expr largest = reduce_max(abs(down), {-2}, true);
    inner = safe_inverse(across - down, largest) * matmul(swap_last(v), c.dy(1));
  }
  if (c.has_dy(0)) inner = add_or(inner, diagonal_matrix(c.dy(0)));
  if (!inner) return {inner};
  return {hermitian_part(matmul(matmul(v, inner), swap_last(v)))};
}

Exprs Eigh::vmap(const Vmap& c, const Attrs&) {
  const auto [w, v] = eigh(c.in(0));
  return {w, v};
}

std::vector<OpSample<NoAttrs>> Eigh::samples() {
  return {{{}, {"f32[4,4] spd"}}, {{}, {"f64[2,3,3] distinct"}}, {{}, {"f32[1,1]"}},
          {{}, {"f32[2,0,0]"}},   {{}, {"f16[2,2] spd"}},        {{}, {"f64[1,2,2,2] distinct"}}};
}

Shapes EighValues::infer(Infer& c, Attrs&) {
  NoAttrs none;
  return {Eigh::infer(c, none)[0]};
}

Exprs EighValues::decompose(const Lower& c, const Attrs&) { return {eigh(c.in(0)).w}; }

std::vector<OpSample<NoAttrs>> EighValues::samples() {
  return {{{}, {"f32[5,5] spd"}}, {{}, {"f64[2,3,3]"}},    {{}, {"f32[1,1]"}},
          {{}, {"f32[0,2,2]"}},   {{}, {"bf16[3,3] spd"}}, {{}, {"f64[2,2] distinct"}}};
}

EighResult eigh(Expr a) {
  const Exprs out = make_all<Eigh>(*a.graph, {}, {a});
  return {out[0], out[1]};
}
Expr eigh_values(Expr a) { return make<EighValues>(*a.graph, {}, {a}); }

}  // namespace rlx::ops
