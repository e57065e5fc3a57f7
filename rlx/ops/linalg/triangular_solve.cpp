#include "rlx/ops/linalg/triangular_solve.h"

#include "rlx/math/factor.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

// What the operator reads of its matrix.
Expr read_part(Expr a, const TriangularSolve::Attrs& attrs) {
  const int skip = attrs.unit_diagonal ? 1 : 0;
  return attrs.lower ? lower_part(a, -skip) : upper_part(a, skip);
}

}  // namespace

Shapes TriangularSolve::infer(Infer& c, Attrs&) {
  c.same_dtype({0, 1});
  c.require_float_or_complex(0);
  require_square(c, 0);
  require_right_side(c, 0, 1);
  return {c.in(1)};
}

Literals TriangularSolve::reference(const Eval& c, const Attrs& attrs) {
  return with_scalar(c.out().dtype(), [&]<class T>(T) -> Literals {
    const auto a = scalars_of<T>(c.in(0));
    auto b = scalars_of<T>(c.in(1));
    const int64_t n = c.in(0).shape().dim(-1).value(), count = matrix_count(int64_t(a.size()), n, n);
    const int64_t k = count == 0 ? 0 : int64_t(b.size()) / (count * n);
    for (int64_t i = 0; i < count; ++i) {
      const auto zero = solve_triangular(a.data() + i * n * n, n, b.data() + i * n * k, k, attrs.lower,
                                         attrs.transpose, attrs.unit_diagonal);
      if (zero) {
        throw invalid(name, ": matrix ", i, " of a: ", c.in(0).shape(), " has a zero at [", *zero, ", ",
                      *zero, "]; the diagonal must not vanish");
      }
    }
    return {literal_of(c.out(), b)};
  });
}

// With M = op(a): db = M^-H dx and dM = -db x^H, of which a gets what it fed in.
Exprs TriangularSolve::vjp(const Vjp& c, const Attrs& attrs) {
  const Expr a = c.in(0);
  const Expr db = triangular_solve(conj_of(a), c.dy(), attrs.lower, !attrs.transpose, attrs.unit_diagonal);
  Exprs out{Expr{}, db};
  if (c.wants(0)) {
    const Expr dm = -matmul(right_matrix(db, a), adjoint(right_matrix(c.out(), a)));
    out[0] = read_part(attrs.transpose ? swap_last(dm) : dm, attrs);
  }
  return out;
}

Exprs TriangularSolve::jvp(const Jvp& c, const Attrs& attrs) {
  const Expr a = c.in(0), x = c.out();
  Expr right = c.has_dx(1) ? c.dx(1) : Expr{};
  if (c.has_dx(0)) {
    const Expr da = read_part(c.dx(0), attrs);
    const Expr moved = -matmul(attrs.transpose ? swap_last(da) : da, right_matrix(x, a));
    right = add_or(right, reshape(moved, x.shape().dims()));
  }
  if (!right) return {right};
  return {triangular_solve(a, right, attrs.lower, attrs.transpose, attrs.unit_diagonal)};
}

Exprs TriangularSolve::vmap(const Vmap& c, const Attrs& attrs) {
  return {make<TriangularSolve>(c.graph, attrs, {lifted(c, 0), lifted(c, 1)})};
}

double TriangularSolve::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
  return double(in[1].elements()) * double(in[0].dim(-1).value());
}

std::vector<OpSample<TriangularSolve::Attrs>> TriangularSolve::samples() {
  return {{{}, {"f32[5,5] lower", "f32[5,2]"}},
          {{true, true}, {"f64[2,3,3] lower", "f64[2,3]"}},
          {{false}, {"f32[3,3] solvable", "f32[3,1]"}},
          {{false, true, true}, {"f64[4,4] solvable", "f64[4,2]"}},
          {{true, false, true}, {"f32[1,1]", "f32[1]"}},
          {{}, {"f32[2,0,0] lower", "f32[2,0,3]"}},
          {{}, {"f16[2,2] lower", "f16[2]"}},
          {{true, true}, {"c64[3,3] lower", "c64[3,2]"}},
          {{}, {"c64[2,2] lower", "c64[2]"}}};
}

Expr triangular_solve(Expr a, Expr b, bool lower, bool transpose, bool unit_diagonal) {
  return make<TriangularSolve>(*a.graph, {lower, transpose, unit_diagonal}, {a, b});
}

}  // namespace rlx::ops
