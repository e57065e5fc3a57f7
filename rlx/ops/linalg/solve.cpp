#include "rlx/ops/linalg/solve.h"

#include "rlx/math/factor.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

// Solves for every matrix of `a` in turn; `b` holds the right sides of each, [n, k], and becomes the answer.
template <class T>
std::vector<T> solve_each(std::string_view op, const Literal& a, std::vector<T> b) {
  const int64_t n = a.shape().dim(-1).value();
  const auto matrices = scalars_of<T>(a);
  const int64_t count = matrix_count(a.elements(), n, n);
  const int64_t k = count == 0 ? 0 : int64_t(b.size()) / (count * n);
  for (int64_t i = 0; i < count; ++i) {
    const Lu<T> lu(matrices.data() + i * n * n, n);
    if (lu.zero_pivot) {
      throw invalid(op, ": matrix ", i, " of a: ", a.shape(), " is singular, column ", *lu.zero_pivot,
                    " has no pivot; a must be invertible");
    }
    lu.solve(b.data() + i * n * k, k);
  }
  return b;
}

Literals solve(std::string_view op, const Eval& c) {
  return with_scalar(c.out().dtype(), [&]<class T>(T) -> Literals {
    return {literal_of(c.out(), solve_each(op, c.in(0), scalars_of<T>(c.in(1))))};
  });
}

}  // namespace

Shapes BatchedDenseSolve::infer(Infer& c, Attrs&) {
  c.same_dtype({0, 1});
  c.require_float_or_complex(0);
  require_square(c, 0);
  require_right_side(c, 0, 1);
  return {c.in(1)};
}

Literals BatchedDenseSolve::reference(const Eval& c, const Attrs&) { return solve(name, c); }

Exprs BatchedDenseSolve::vjp(const Vjp& c, const Attrs&) {
  const Expr a = c.in(0), db = batched_dense_solve(adjoint(a), c.dy());
  Exprs out{Expr{}, db};
  if (c.wants(0)) out[0] = -matmul(right_matrix(db, a), adjoint(right_matrix(c.out(), a)));
  return out;
}

// a x = b  =>  a dx = db - da x
Exprs BatchedDenseSolve::jvp(const Jvp& c, const Attrs&) {
  const Expr a = c.in(0), x = c.out();
  Expr right = c.has_dx(1) ? c.dx(1) : Expr{};
  if (c.has_dx(0)) {
    const Expr moved = -matmul(c.dx(0), right_matrix(x, a));
    right = add_or(right, reshape(moved, x.shape().dims()));
  }
  return {right ? batched_dense_solve(a, right) : right};
}

Exprs BatchedDenseSolve::vmap(const Vmap& c, const Attrs&) {
  return {batched_dense_solve(lifted(c, 0), lifted(c, 1))};
}

// Factors of a, then two substitutions for each right side.
double BatchedDenseSolve::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
  const double n = double(in[0].dim(-1).value());
  return n * (2.0 / 3 * double(in[0].elements()) + 2 * double(in[1].elements()));
}

std::vector<OpSample<NoAttrs>> BatchedDenseSolve::samples() {
  return {{{}, {"f32[3,4,4] solvable", "f32[3,4,2]"}}, {{}, {"f64[2,3,3] solvable", "f64[2,3]"}},
          {{}, {"f32[5,5] solvable", "f32[5]"}},       {{}, {"f32[2,1,3,3] solvable", "f32[2,1,3,1]"}},
          {{}, {"f32[0,2,2] solvable", "f32[0,2]"}},   {{}, {"f32[2,0,0] solvable", "f32[2,0,3]"}},
          {{}, {"f16[1,1] solvable", "f16[1]"}},       {{}, {"c64[2,3,3] solvable", "c64[2,3,2]"}}};
}

Shapes DenseSolve::infer(Infer& c, Attrs&) {
  c.same_dtype({0, 1});
  c.require_float_or_complex(0);
  c.require_rank(0, 2);
  require_square(c, 0);
  require_right_side(c, 0, 1);
  return {c.in(1)};
}

Literals DenseSolve::reference(const Eval& c, const Attrs&) { return solve(name, c); }
Exprs DenseSolve::decompose(const Lower& c, const Attrs&) { return {batched_dense_solve(c.in(0), c.in(1))}; }

double DenseSolve::operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs& a) {
  return BatchedDenseSolve::operations(in, out, a);
}

std::vector<OpSample<NoAttrs>> DenseSolve::samples() {
  return {{{}, {"f32[5,5] solvable", "f32[5]"}},   {{}, {"f64[4,4] solvable", "f64[4,3]"}},
          {{}, {"f32[1,1] solvable", "f32[1]"}},   {{}, {"f32[0,0] solvable", "f32[0,2]"}},
          {{}, {"bf16[3,3] solvable", "bf16[3]"}}, {{}, {"c64[3,3] solvable", "c64[3]"}}};
}

Shapes Inverse::infer(Infer& c, Attrs&) {
  c.require_float_or_complex(0);
  require_square(c, 0);
  return {c.in(0)};
}

Literals Inverse::reference(const Eval& c, const Attrs&) {
  return with_scalar(c.out().dtype(), [&]<class T>(T) -> Literals {
    std::vector<T> right(size_t(c.out().elements()), T(0));
    const size_t n = size_t(c.out().dim(-1).value());
    for (size_t i = 0; i < right.size(); ++i) {
      if (i / n % n == i % n) right[i] = 1;
    }
    return {literal_of(c.out(), solve_each(name, c.in(0), std::move(right)))};
  });
}

Exprs Inverse::decompose(const Lower& c, const Attrs&) {
  return {batched_dense_solve(c.in(0), identity_like(c.in(0)))};
}

double Inverse::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
  return 2 * double(in[0].elements()) * double(in[0].dim(-1).value());
}

std::vector<OpSample<NoAttrs>> Inverse::samples() {
  return {{{}, {"f32[3,3] solvable"}},   {{}, {"f64[2,4,4] solvable"}}, {{}, {"f32[1,1] solvable"}},
          {{}, {"f32[3,0,0] solvable"}}, {{}, {"c64[2,2] solvable"}},   {{}, {"f16[2,2] solvable"}}};
}

Expr dense_solve(Expr a, Expr b) { return make<DenseSolve>(*a.graph, {}, {a, b}); }
Expr batched_dense_solve(Expr a, Expr b) { return make<BatchedDenseSolve>(*a.graph, {}, {a, b}); }
Expr inverse(Expr a) { return make<Inverse>(*a.graph, {}, {a}); }

}  // namespace rlx::ops
