#include "rlx/ops/linalg/cholesky.h"

#include "rlx/math/factor.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/linalg/triangular_solve.h"

namespace rlx::ops {

Shapes Cholesky::infer(Infer& c, Attrs&) {
  c.require_float_or_complex(0);
  require_square(c, 0);
  return {c.in(0)};
}

Literals Cholesky::reference(const Eval& c, const Attrs&) {
  return with_scalar(c.out().dtype(), [&]<class T>(T) -> Literals {
    const auto a = scalars_of<T>(c.in(0));
    const int64_t n = c.out().dim(-1).value(), count = matrix_count(int64_t(a.size()), n, n);
    std::vector<T> y(a.size());
    for (int64_t m = 0; m < count; ++m) {
      const T* from = a.data() + m * n * n;
      T* to = y.data() + m * n * n;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          T mirrored = from[j * n + i];
          if constexpr (!std::is_same_v<T, double>) mirrored = std::conj(mirrored);
          to[i * n + j] = 0.5 * (from[i * n + j] + mirrored);
        }
      }
      if (const auto row = factor_cholesky(to, n)) {
        throw invalid(name, ": matrix ", m, " of a: ", c.in(0).shape(),
                      " is not positive definite, its leading ", *row + 1, " x ", *row + 1,
                      " part has no factor");
      }
    }
    return {literal_of(c.out(), y)};
  });
}

Exprs Cholesky::vjp(const Vjp& c, const Attrs&) {
  const Expr y = c.out(), product = matmul(adjoint(y), c.dy());
  const Expr half = 0.5 * (lower_part(product) + lower_part(product, -1));
  // y^-H X is a solve with the transpose of conj y; X y^-1 = (y^-H X^H)^H is another one.
  const auto from_left = [&](Expr x) { return triangular_solve(conj_of(y), x, true, true); };
  return {hermitian_part(from_left(adjoint(from_left(half))))};
}

Exprs Cholesky::vmap(const Vmap& c, const Attrs&) { return {cholesky(c.in(0))}; }

double Cholesky::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
  return double(in[0].elements()) * double(in[0].dim(-1).value()) / 3;
}

std::vector<OpSample<NoAttrs>> Cholesky::samples() {
  return {{{}, {"f32[5,5] spd"}},   {{}, {"f64[2,3,3] spd"}}, {{}, {"f32[1,1] spd"}},
          {{}, {"f32[2,0,0] spd"}}, {{}, {"f16[2,2] spd"}},   {{}, {"c64[3,3] spd"}}};
}

Expr cholesky(Expr a) { return make<Cholesky>(*a.graph, {}, {a}); }

}  // namespace rlx::ops
