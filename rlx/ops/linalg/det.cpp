#include "rlx/ops/linalg/det.h"

#include <cmath>

#include "rlx/math/factor.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/linalg/adjugate.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/linalg/solve.h"
#include "rlx/ops/linalg/spectral.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

Shape without_matrix(const Shape& a) { return a.with_dims(Dims(a.dims().begin(), a.dims().end() - 2)); }

// One value per matrix, as scalars of a batch that scale its matrices.
Expr per_matrix(Expr x) { return unsqueeze(unsqueeze(x, x.rank()), x.rank() + 1); }

// Calls visit(i, lu) for each matrix. An empty matrix, whose determinant is 1, is visited too.
template <class T, class Visit>
void factor_each(const Literal& a, size_t count, Visit visit) {
  const auto values = scalars_of<T>(a);
  const int64_t n = a.shape().dim(-1).value();
  for (size_t i = 0; i < count; ++i) visit(i, Lu<T>(values.data() + int64_t(i) * n * n, n));
}

}  // namespace

Shapes Det::infer(Infer& c, Attrs&) {
  c.require_float_or_complex(0);
  require_square(c, 0);
  return {without_matrix(c.in(0))};
}

Literals Det::reference(const Eval& c, const Attrs&) {
  return with_scalar(c.out().dtype(), [&]<class T>(T) -> Literals {
    std::vector<T> y(size_t(c.out().elements()));
    factor_each<T>(c.in(0), y.size(), [&](size_t i, const Lu<T>& lu) {
      T product = T(lu.sign);
      for (int64_t j = 0; j < lu.n; ++j) product *= lu.lu[size_t(j * lu.n + j)];
      y[i] = lu.zero_pivot ? T(0) : product;
    });
    return {literal_of(c.out(), y)};
  });
}

Exprs Det::vjp(const Vjp& c, const Attrs&) { return {per_matrix(c.dy()) * adjoint(adjugate(c.in(0)))}; }

Exprs Det::vmap(const Vmap& c, const Attrs&) { return {det(c.in(0))}; }

std::vector<OpSample<NoAttrs>> Det::samples() {
  return {{{}, {"f32[3,3] solvable"}},   {{}, {"f64[2,4,4] solvable"}}, {{}, {"f32[1,1] solvable"}},
          {{}, {"f32[3,0,0] solvable"}}, {{}, {"f16[2,2] solvable"}},   {{}, {"c64[3,3] solvable"}},
          {{}, {"f64[2,2] in 1..1"}}};
}

Shapes Slogdet::infer(Infer& c, Attrs&) {
  c.require_float_or_complex(0);
  require_square(c, 0);
  const Shape sign = without_matrix(c.in(0));
  return {sign, sign.with_dtype(real_dtype(sign.dtype()))};
}

Literals Slogdet::reference(const Eval& c, const Attrs&) {
  return with_scalar(c.in(0).dtype(), [&]<class T>(T) -> Literals {
    std::vector<T> sign(size_t(c.out().elements()));
    std::vector<double> logabs(sign.size());
    factor_each<T>(c.in(0), sign.size(), [&](size_t i, const Lu<T>& lu) {
      sign[i] = lu.zero_pivot ? 0 : lu.sign;
      logabs[i] = lu.zero_pivot ? -INFINITY : 0;
      for (int64_t j = 0; j < lu.n && !lu.zero_pivot; ++j) {
        const T pivot = lu.lu[size_t(j * lu.n + j)];
        sign[i] *= pivot / std::abs(pivot);
        logabs[i] += std::log(std::abs(pivot));
      }
    });
    return {literal_of(c.out(0), sign), Literal::reals(c.out(1), logabs)};
  });
}

// With t = tr(a^-1 da): dlogabs = re t, and the sign turns by i im t. A real sign is piecewise constant; a
// complex a gets half of the real cotangent, dL/d(conj a).
Exprs Slogdet::vjp(const Vjp& c, const Attrs&) {
  const bool complex = is_complex(c.in(0).dtype());
  Expr dt;
  if (c.has_dy(1)) dt = complex ? cast(0.5 * c.dy(1), c.in(0).dtype()) : c.dy(1);
  if (complex && c.has_dy(0)) dt = add_or(dt, times_i(-imag_part(conj_of(c.dy(0)) * c.out(0)), c.in(0)));
  if (!dt) return {Expr{}};
  return {per_matrix(dt) * adjoint(inverse(c.in(0)))};
}

Exprs Slogdet::vmap(const Vmap& c, const Attrs&) {
  const auto [sign, logabs] = slogdet(c.in(0));
  return {sign, logabs};
}

std::vector<OpSample<NoAttrs>> Slogdet::samples() {
  return {{{}, {"f32[3,3] solvable"}},   {{}, {"f64[2,4,4] solvable"}}, {{}, {"f32[1,1] solvable"}},
          {{}, {"f32[3,0,0] solvable"}}, {{}, {"f16[2,2] solvable"}},   {{}, {"f64[0,3,3]"}},
          {{}, {"c64[2,2,2] solvable"}}};
}

Shapes Logdet::infer(Infer& c, Attrs&) {
  c.require_float(0);
  require_square(c, 0);
  return {without_matrix(c.in(0))};
}

Exprs Logdet::decompose(const Lower& c, const Attrs&) {
  const auto [sign, logabs] = slogdet(c.in(0));
  return {where(less(sign, scalar_like(sign, 0)), scalar_like(logabs, NAN), logabs)};
}

std::vector<OpSample<NoAttrs>> Logdet::samples() {
  return {{{}, {"f32[3,3] spd"}},   {{}, {"f64[2,4,4] spd"}}, {{}, {"f32[1,1] spd"}},
          {{}, {"f32[3,0,0] spd"}}, {{}, {"f16[2,2] spd"}},   {{}, {"bf16[0,2,2]"}}};
}

Expr det(Expr a) { return make<Det>(*a.graph, {}, {a}); }
SlogdetResult slogdet(Expr a) {
  const Exprs out = make_all<Slogdet>(*a.graph, {}, {a});
  return {out[0], out[1]};
}
Expr logdet(Expr a) { return make<Logdet>(*a.graph, {}, {a}); }

}  // namespace rlx::ops
