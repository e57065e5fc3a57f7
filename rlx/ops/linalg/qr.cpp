#include "rlx/ops/linalg/qr.h"

#include "rlx/math/factor.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/linalg/triangular_solve.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"

namespace rlx::ops {

Shapes Qr::infer(Infer& c, Attrs&) {
  c.require_float_or_complex(0);
  c.require_min_rank(0, 2);
  const Shape& a = c.in(0);
  const Dim k = rlx::min(a.dim(-2), a.dim(-1));
  return {a.with_dim(-1, k), a.with_dim(-2, k)};
}

Literals Qr::reference(const Eval& c, const Attrs&) {
  return with_scalar(c.in(0).dtype(), [&]<class T>(T) -> Literals {
    const auto a = scalars_of<T>(c.in(0));
    const int64_t m = c.in(0).shape().dim(-2).value(), n = c.in(0).shape().dim(-1).value(),
                  k = std::min(m, n);
    std::vector<T> q(size_t(c.out(0).elements())), r(size_t(c.out(1).elements()));
    for (int64_t i = 0; i < matrix_count(int64_t(a.size()), m, n); ++i)
      factor_qr(a.data() + i * m * n, m, n, q.data() + i * m * k, r.data() + i * k * n);
    return {literal_of(c.out(0), q), literal_of(c.out(1), r)};
  });
}

namespace {

// For r square: da = (dq + q sym(r dr^H - dq^H q)) r^-H, sym mirroring the lower triangle to the upper,
// conjugated, and keeping the real part of the diagonal.
Expr tall_gradient(Expr q, Expr r, Expr dq, Expr dr) {
  const Expr m = matmul(r, adjoint(dr)) - matmul(adjoint(dq), q);
  const Expr below = lower_part(m, -1), diagonal = hermitian_part(lower_part(m) - below);
  const Expr right = dq + matmul(q, below + adjoint(below) + diagonal);
  return adjoint(triangular_solve(r, adjoint(right), false));
}

}  // namespace

// A wide a = [x | y] has r = [u | v] with x = q u and v = q^H y.
Exprs Qr::vjp(const Vjp& c, const Attrs&) {
  const Expr a = c.in(0), q = c.out(0), r = c.out(1), dq = c.dy(0), dr = c.dy(1);
  const Dim rows = a.dim(-2), columns = a.dim(-1);
  if (r.dim(-2) == columns) return {tall_gradient(q, r, dq, dr)};
  if (r.dim(-2) != rows) {
    throw invalid("qr: the gradient for a: ", a.shape(),
                  " needs to know whether it has more rows or columns; bind the symbols first");
  }
  const Dim rest = columns - rows;
  const auto left = [&](Expr t) { return narrow(t, -1, 0, rows); };
  const auto right = [&](Expr t) { return narrow(t, -1, rows, rest); };
  const Expr dq_all = dq + matmul(right(a), adjoint(right(dr)));
  return {concat({tall_gradient(q, left(r), dq_all, left(dr)), matmul(q, right(dr))}, -1)};
}

Exprs Qr::vmap(const Vmap& c, const Attrs&) {
  const auto [q, r] = qr(c.in(0));
  return {q, r};
}

std::vector<OpSample<NoAttrs>> Qr::samples() {
  return {{{}, {"f32[4,3]"}}, {{}, {"f64[2,3,3]"}}, {{}, {"f32[2,5]"}},     {{}, {"f32[1,1]"}},
          {{}, {"f32[3,0]"}}, {{}, {"f32[0,2]"}},   {{}, {"f16[2,1,3,2]"}}, {{}, {"f64[3,2,4]"}},
          {{}, {"c64[3,2]"}}, {{}, {"c64[2,2,3]"}}};
}

QrResult qr(Expr a) {
  const Exprs out = make_all<Qr>(*a.graph, {}, {a});
  return {out[0], out[1]};
}

}  // namespace rlx::ops
