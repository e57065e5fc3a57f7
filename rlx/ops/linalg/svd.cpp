#include "rlx/ops/linalg/svd.h"

#include <cmath>

#include "rlx/math/factor.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/linalg/spectral.h"
#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes Svd::infer(Infer& c, Attrs&) {
  c.require_float_or_complex(0);
  c.require_min_rank(0, 2);
  const Shape& a = c.in(0);
  const Dim k = rlx::min(a.dim(-2), a.dim(-1));
  Dims s(a.dims().begin(), a.dims().end() - 1);
  s.back() = k;
  return {a.with_dim(-1, k), Shape(real_dtype(a.dtype()), s), a.with_dim(-2, k)};
}

Literals Svd::reference(const Eval& c, const Attrs&) {
  return with_scalar(c.in(0).dtype(), [&]<class T>(T) -> Literals {
    const auto a = scalars_of<T>(c.in(0));
    const int64_t m = c.in(0).shape().dim(-2).value(), n = c.in(0).shape().dim(-1).value(),
                  k = std::min(m, n);
    std::vector<T> u(size_t(c.out(0).elements())), vt(size_t(c.out(2).elements()));
    std::vector<double> s(size_t(c.out(1).elements()));
    for (int64_t i = 0; i < matrix_count(int64_t(a.size()), m, n); ++i)
      factor_svd(a.data() + i * m * n, m, n, u.data() + i * m * k, s.data() + i * k, vt.data() + i * k * n);
    return {literal_of(c.out(0), u), Literal::reals(c.out(1), s), literal_of(c.out(2), vt)};
  });
}

namespace {

// The pieces of both derivatives. s_j / (s_j^2 - s_i^2) is formed as (s_j / (s_j + s_i)) / (s_j - s_i), which
// neither overflows nor underflows at any scale of s.
struct Parts {
  Expr u, s, v;  // v [.., N, K]
  Gaps gaps;
  Expr right, left;  // s_j / (s_i + s_j) and s_i / (s_i + s_j), in the dtype of u
  Expr vanishes;     // s is 0 but for rounding
  Parts(Expr u, Expr s, Expr vt) : u(u), s(s), v(adjoint(vt)), gaps(gaps_of(s)) {
    const Expr across = unsqueeze(s, -2), down = unsqueeze(s, -1), sum = across + down;
    const Expr safe = where(equal(sum, scalar_like(sum, 0)), scalar_like(sum, 1), sum);
    right = cast(across / safe, u.dtype());
    left = cast(down / safe, u.dtype());
    vanishes = compare(CompareOp::le, s, 16 * epsilon_of(s.dtype()) * reduce_max(s, {-1}, true));
  }
  bool complex() const { return is_complex(u.dtype()); }
  // x[.., M, K] with its columns divided by s; NaN where s vanishes and the column is not zero.
  Expr over_values(Expr x, Expr touched) const {
    const Expr none = unsqueeze(vanishes, -2), safe = where(vanishes, scalar_like(s, 1), s);
    const Expr quotient = where(none, scalar_like(x, 0), x) / cast(unsqueeze(safe, -2), x.dtype());
    return where(logical_and(none, unsqueeze(touched, -2)), scalar_like(x, NAN), quotient);
  }
  // 1 where s is not exactly 0.
  Expr value_slope() const { return cast(compare(CompareOp::ne, s, scalar_like(s, 0)), s.dtype()); }
};

Expr outside(Expr basis, Expr x) { return x - matmul(basis, matmul(adjoint(basis), x)); }

Expr touched_columns(Expr x) {
  const Expr size = is_complex(x.dtype()) ? complex_norm_sq(x) : abs(x);
  return any(compare(CompareOp::ne, size, scalar_like(size, 0)), {-2});
}

}  // namespace

// With F_ij = 1 / (s_j^2 - s_i^2) off the diagonal and W - W^H written skew(W):
//   da = u [ F o skew(u^H du) diag(s) + diag(s) F o skew(v^H dv) + diag(ds) ] v^H
//      + (1 - u u^H) du diag(1/s) v^H + u diag(1/s) dv^H (1 - v v^H)
//
// Complex u_j and v_j turn together, by i t, so that the anchor of u_j stays real; v_j turns by -i Im(P_jj) /
// s_j more, P = u^H da v. With b_j = -Im <du_j, u_j> and c_j = -Im <dv_j, v_j> this adds -i (b_j + c_j) /
// entry to du at the anchor, and -i c_j / s_j to the diagonal.
Exprs Svd::vjp(const Vjp& c, const Attrs&) {
  const Parts p(c.out(0), c.out(1), c.out(2));
  const bool wide = p.u.dim(-1) != p.v.dim(-2), tall = p.u.dim(-1) != p.u.dim(-2);
  Expr inner, da;
  if (c.has_dy(1)) {
    const Expr ds = c.dy(1) * p.value_slope();
    inner = cast(value_diagonal(p.complex() ? 0.5 * ds : ds, p.gaps), p.u.dtype());
  }
  if (c.has_dy(0) || c.has_dy(2)) {
    Expr du = c.dy(0);
    const Expr dv = adjoint(c.dy(2));
    const Expr asked = logical_or(columns_touched(du), columns_touched(dv));
    const Expr u_touched = touched_columns(du), v_touched = touched_columns(dv);
    if (p.complex()) {
      const PhaseAnchor anchor = phase_anchor(p.u);
      const Expr turn_u = column_phase(du, p.u), turn_v = column_phase(dv, p.v);
      const Expr diagonal = diagonal_matrix(p.over_values(turn_v, logical_or(u_touched, v_touched)));
      du = du + times_i(anchor.place * ((turn_u + turn_v) / anchor.entry), p.u);
      inner = add_or(inner, times_i(squeeze(diagonal, -3), p.u));
    }
    const auto skew = [](Expr w) { return w - adjoint(w); };
    const Expr mixed = skew(matmul(adjoint(p.u), du)) * p.right + skew(matmul(adjoint(p.v), dv)) * p.left;
    inner = add_or(inner, over_gaps(mixed, p.gaps, asked));
    if (tall) da = matmul(p.over_values(outside(p.u, du), u_touched), adjoint(p.v));
    if (wide) da = add_or(da, matmul(p.u, adjoint(p.over_values(outside(p.v, dv), v_touched))));
  }
  if (!inner) return {da};
  return {add_or(da, matmul(matmul(p.u, inner), adjoint(p.v)))};
}

// With P = u^H da v:
//   ds = diag(P),  du = u F o (P diag(s) + diag(s) P^H) + (1 - u u^H) da v diag(1/s),
//   dv = v F o (diag(s) P + P^H diag(s)) + (1 - v v^H) da^H u diag(1/s)
Exprs Svd::jvp(const Jvp& c, const Attrs&) {
  if (!c.has_dx(0)) return {Expr{}, Expr{}, Expr{}};
  const Parts p({&c.graph, c.results[0]}, {&c.graph, c.results[1]}, {&c.graph, c.results[2]});
  const Expr da = c.dx(0), m = matmul(matmul(adjoint(p.u), da), p.v), diagonal = diagonal_of(m);
  const auto by_gaps = [&](Expr x) { return over_gaps(x, p.gaps, beyond_rounding(x)); };
  Expr du = matmul(p.u, by_gaps(m * p.right + adjoint(m) * p.left));
  Expr dv = matmul(p.v, by_gaps(m * p.left + adjoint(m) * p.right));
  const auto beyond = [&](Expr basis, Expr moved) {
    const Expr x = outside(basis, moved);
    return p.over_values(x, touched_columns(x));
  };
  if (p.u.dim(-1) != p.u.dim(-2)) du = du + beyond(p.u, matmul(da, p.v));
  if (p.u.dim(-1) != p.v.dim(-2)) dv = dv + beyond(p.v, matmul(adjoint(da), p.u));
  Expr ds = p.complex() ? real_part(diagonal) : diagonal;
  if (p.complex()) {
    const PhaseAnchor anchor = phase_anchor(p.u);
    const Expr turn = -(reduce_sum(imag_part(du) * anchor.place, {-2}, true) / anchor.entry);
    const Expr along = unsqueeze(imag_part(diagonal), -2);
    const Expr more = p.over_values(along, squeeze(compare(CompareOp::ne, along, scalar_like(along, 0)), -2));
    du = du + times_i(turn, p.u) * p.u;
    dv = dv + times_i(turn - more, p.v) * p.v;
  }
  return {du, ds * p.value_slope(), adjoint(dv)};
}

Exprs Svd::vmap(const Vmap& c, const Attrs&) {
  const auto [u, s, vt] = svd(c.in(0));
  return {u, s, vt};
}

std::vector<OpSample<NoAttrs>> Svd::samples() {
  return {{{}, {"f32[4,3] distinct"}}, {{}, {"f64[2,3,3] distinct"}},
          {{}, {"f32[2,5] distinct"}}, {{}, {"f32[1,1]"}},
          {{}, {"f32[3,0]"}},          {{}, {"f32[0,2]"}},
          {{}, {"f16[3,1] positive"}}, {{}, {"f64[2,2,4] distinct"}},
          {{}, {"c64[3,2]"}},          {{}, {"c64[2,2,3]"}},
          {{}, {"c64[2,2]"}}};
}

Shapes SvdValues::infer(Infer& c, Attrs&) {
  NoAttrs none;
  return {Svd::infer(c, none)[1]};
}

Exprs SvdValues::decompose(const Lower& c, const Attrs&) { return {svd(c.in(0)).s}; }

std::vector<OpSample<NoAttrs>> SvdValues::samples() {
  return {{{}, {"f32[6,4]"}}, {{}, {"f64[2,3,3]"}}, {{}, {"f32[2,5]"}}, {{}, {"f32[1,1]"}},
          {{}, {"f32[0,3]"}}, {{}, {"bf16[3,2]"}},  {{}, {"c64[3,2]"}}};
}

SvdResult svd(Expr a) {
  const Exprs out = make_all<Svd>(*a.graph, {}, {a});
  return {out[0], out[1], out[2]};
}
Expr svd_values(Expr a) { return make<SvdValues>(*a.graph, {}, {a}); }

}  // namespace rlx::ops
