#include "rlx/ops/linalg/eigh.h"

#include "rlx/math/factor.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/linalg/spectral.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::ops {

Shapes Eigh::infer(Infer& c, Attrs&) {
  c.require_float_or_complex(0);
  require_square(c, 0);
  const Shape& a = c.in(0);
  return {Shape(real_dtype(a.dtype()), Dims(a.dims().begin(), a.dims().end() - 1)), a};
}

Literals Eigh::reference(const Eval& c, const Attrs&) {
  return with_scalar(c.in(0).dtype(), [&]<class T>(T) -> Literals {
    const auto a = scalars_of<T>(c.in(0));
    const int64_t n = c.in(0).shape().dim(-1).value();
    std::vector<double> w(size_t(c.out(0).elements()));
    std::vector<T> v(a.size()), hermitian(size_t(n * n));
    for (int64_t m = 0; m < matrix_count(int64_t(a.size()), n, n); ++m) {
      const T* from = a.data() + m * n * n;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j)  // halves first: the sum could overflow
          hermitian[size_t(i * n + j)] = 0.5 * from[i * n + j] + 0.5 * conj_value(from[j * n + i]);
      }
      factor_eigen(hermitian.data(), n, w.data() + m * n, v.data() + m * n * n);
    }
    return {Literal::reals(c.out(0), w), literal_of(c.out(1), v)};
  });
}

// With F_ij = 1 / (w_j - w_i) off the diagonal: da = Hermitian part of v (diag(dw) + F o (v^H dv)) v^H.
//
// A complex v turns by i t v_j so that the entry that is kept real stays so, t = -Im(d_j at the anchor) /
// entry for the part d = v (F o ..) of the tangent; that adds -i b_j / entry to dv at the anchor, b_j = -Im
// <dv_j, v_j>. The real w gets half of its cotangent, dL/d(conj a).
Exprs Eigh::vjp(const Vjp& c, const Attrs&) {
  const Expr w = c.out(0), v = c.out(1);
  const bool complex = is_complex(v.dtype());
  const Gaps gaps = gaps_of(w);
  Expr inner;
  if (c.has_dy(1)) {
    Expr dv = c.dy(1);
    const Expr asked = columns_touched(dv);
    if (complex) {
      const PhaseAnchor anchor = phase_anchor(v);
      dv = dv + times_i(anchor.place * (column_phase(dv, v) / anchor.entry), v);
    }
    inner = over_gaps(matmul(adjoint(v), dv), gaps, asked);
  }
  if (c.has_dy(0))
    inner = add_or(inner, cast(value_diagonal(complex ? 0.5 * c.dy(0) : c.dy(0), gaps), v.dtype()));
  if (!inner) return {inner};
  return {hermitian_part(matmul(matmul(v, inner), adjoint(v)))};
}

// With m = v^H da v: dw = diag(m), dv = v (F o m), and the turn of the phase.
Exprs Eigh::jvp(const Jvp& c, const Attrs&) {
  if (!c.has_dx(0)) return {Expr{}, Expr{}};
  const Expr w{&c.graph, c.results[0]}, v{&c.graph, c.results[1]};
  const Expr m = matmul(matmul(adjoint(v), hermitian_part(c.dx(0))), v);
  const Expr diagonal = diagonal_of(m);
  Expr dv = matmul(v, over_gaps(m, gaps_of(w), beyond_rounding(m)));
  if (!is_complex(v.dtype())) return {diagonal, dv};
  const PhaseAnchor anchor = phase_anchor(v);
  const Expr turn = -(reduce_sum(imag_part(dv) * anchor.place, {-2}, true) / anchor.entry);
  return {real_part(diagonal), dv + times_i(turn, v) * v};
}

Exprs Eigh::vmap(const Vmap& c, const Attrs&) {
  const auto [w, v] = eigh(c.in(0));
  return {w, v};
}

std::vector<OpSample<NoAttrs>> Eigh::samples() {
  return {{{}, {"f32[4,4] spd"}}, {{}, {"f64[2,3,3] distinct"}}, {{}, {"f32[1,1]"}},
          {{}, {"f32[2,0,0]"}},   {{}, {"f16[2,2] spd"}},        {{}, {"f64[1,2,2,2] distinct"}},
          {{}, {"c64[3,3]"}},     {{}, {"c64[2,2,2] spd"}}};
}

Shapes EighValues::infer(Infer& c, Attrs&) {
  NoAttrs none;
  return {Eigh::infer(c, none)[0]};
}

Exprs EighValues::decompose(const Lower& c, const Attrs&) { return {eigh(c.in(0)).w}; }

std::vector<OpSample<NoAttrs>> EighValues::samples() {
  return {{{}, {"f32[5,5] spd"}},  {{}, {"f64[2,3,3]"}},        {{}, {"f32[1,1]"}}, {{}, {"f32[0,2,2]"}},
          {{}, {"bf16[3,3] spd"}}, {{}, {"f64[2,2] distinct"}}, {{}, {"c64[3,3]"}}};
}

EighResult eigh(Expr a) {
  const Exprs out = make_all<Eigh>(*a.graph, {}, {a});
  return {out[0], out[1]};
}
Expr eigh_values(Expr a) { return make<EighValues>(*a.graph, {}, {a}); }

}  // namespace rlx::ops
