// Linear systems with square and triangular matrices, and determinants.
#include "rlx/backend/cpu/kernels/linalg.h"

#include "rlx/backend/cpu/kernels/determinant.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/linalg/cholesky.h"
#include "rlx/ops/linalg/det.h"
#include "rlx/ops/linalg/solve.h"
#include "rlx/ops/linalg/triangular_solve.h"

namespace rlx::cpu {
namespace {

Support accepts_real(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f64) return Support::no("no factors of ", t);
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

Support accepts_solve(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f64 && t != DType::c64) return Support::no("no solution in ", t);
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

// Sizes of a x = b with the matrices of a in a batch.
template <class System>
System system_of(const Arg& a, const Arg& b) {
  System p;
  p.dtype = a.dtype();
  p.n = a.shape.dim(-1).value();
  p.batch = a.shape.elements() / (p.n * p.n);
  p.k = b.shape.elements() / (p.batch * p.n);
  return p;
}

std::unique_ptr<Step> prepare_cholesky(const Request& r) {
  const Arg& a = r.in[0];
  Cholesky p{.dtype = a.dtype(), .n = a.shape.dim(-1).value()};
  p.batch = a.shape.elements() / (p.n * p.n);
  auto step = make_step(
      [p, shape = a.shape](const Launch& l) {
        Cholesky now = p;
        now.a = l.in[0];
        now.y = l.out[0];
        if (const auto bad = cholesky(l.team, now, l.workspace)) {
          throw invalid("cholesky: matrix ", bad->matrix, " of a: ", shape,
                        " is not positive definite, its leading ", bad->index + 1, " x ", bad->index + 1,
                        " part has no factor");
        }
      },
      cholesky_workspace(p, r.threads));
  step->in_place = {0};
  return step;
}

void solve_now(const Launch& l, const DenseSolve& p, const void* b, std::string_view op, const Shape& shape) {
  DenseSolve now = p;
  now.a = l.in[0];
  now.b = b;
  now.x = l.out[0];
  if (const auto bad = dense_solve(l.team, now, l.workspace)) {
    throw invalid(op, ": matrix ", bad->matrix, " of a: ", shape, " is singular, column ", bad->index,
                  " has no pivot; a must be invertible");
  }
}

template <class Op>
std::unique_ptr<Step> prepare_solve(const Request& r) {
  const auto p = system_of<DenseSolve>(r.in[0], r.in[1]);
  auto step =
      make_step([p, shape = r.in[0].shape](const Launch& l) { solve_now(l, p, l.in[1], Op::name, shape); },
                dense_solve_workspace(p, r.threads));
  step->in_place = {1};
  return step;
}

// The right side is the identity, kept for the batch.
std::unique_ptr<Step> prepare_inverse(const Request& r) {
  const Arg& a = r.in[0];
  const auto p = system_of<DenseSolve>(a, a);
  std::vector<double> ones(size_t(a.shape.elements()), 0.0);
  for (int64_t i = 0; i < p.batch; ++i) {
    for (int64_t j = 0; j < p.n; ++j) ones[size_t((i * p.n + j) * p.n + j)] = 1;
  }
  const Literal identity = Literal::reals(a.shape, ones);
  return make_step(
      [p, identity](const Launch& l) {
        solve_now(l, p, identity.bytes().data(), ops::Inverse::name, identity.shape());
      },
      dense_solve_workspace(p, r.threads));
}

std::unique_ptr<Step> prepare_triangular(const Request& r) {
  const auto& attrs = r.node.as<ops::TriangularSolve>();
  auto p = system_of<TriangularSolve>(r.in[0], r.in[1]);
  p.lower = attrs.lower;
  p.transpose = attrs.transpose;
  p.unit_diagonal = attrs.unit_diagonal;
  auto step = make_step(
      [p, shape = r.in[0].shape](const Launch& l) {
        TriangularSolve now = p;
        now.a = l.in[0];
        now.b = l.in[1];
        now.x = l.out[0];
        if (const auto bad = triangular_solve(l.team, now, l.workspace)) {
          throw invalid("triangular_solve: matrix ", bad->matrix, " of a: ", shape, " has a zero at [",
                        bad->index, ", ", bad->index, "]; the diagonal must not vanish");
        }
      },
      triangular_solve_workspace(p, r.threads));
  step->in_place = {1};
  return step;
}

// ---- determinants ----

template <bool Logarithm>
std::unique_ptr<Step> prepare_determinant(const Request& r) {
  const Arg& a = r.in[0];
  Determinant p{.dtype = a.dtype(), .batch = r.out[0].shape.elements(), .n = a.shape.dim(-1).value()};
  return make_step(
      [p](const Launch& l) {
        Determinant now = p;
        now.a = l.in[0];
        (Logarithm ? now.sign : now.value) = l.out[0];
        if (Logarithm) now.logarithm = l.out[1];
        determinant(l.team, now, l.workspace);
      },
      determinant_workspace(p, r.threads));
}

}  // namespace

void add_solve(KernelTable& table) {
  table.add<ops::Cholesky>({"cholesky_rows", accepts_real, prepare_cholesky});
  table.add<ops::BatchedDenseSolve>({"solve_lu", accepts_solve, prepare_solve<ops::BatchedDenseSolve>});
  table.add<ops::DenseSolve>({"solve_lu", accepts_solve, prepare_solve<ops::DenseSolve>});
  table.add<ops::Inverse>({"inverse_lu", accepts_solve, prepare_inverse});
  table.add<ops::Det>({"det_elimination", accepts_real, prepare_determinant<false>});
  table.add<ops::Slogdet>({"slogdet_elimination", accepts_real, prepare_determinant<true>});
  table.add<ops::TriangularSolve>({"triangular_solve_rows", accepts_solve, prepare_triangular});
  table.add<ops::Cholesky>(wide_kernel<accepts_real, prepare_cholesky>("cholesky_wide"));
  table.add<ops::BatchedDenseSolve>(
      wide_kernel<accepts_solve, prepare_solve<ops::BatchedDenseSolve>>("solve_wide"));
  table.add<ops::DenseSolve>(wide_kernel<accepts_solve, prepare_solve<ops::DenseSolve>>("solve_wide"));
  table.add<ops::Inverse>(wide_kernel<accepts_solve, prepare_inverse>("inverse_wide"));
  table.add<ops::Det>(wide_kernel<accepts_real, prepare_determinant<false>>("det_wide"));
  table.add<ops::Slogdet>(wide_kernel<accepts_real, prepare_determinant<true>>("slogdet_wide"));
  table.add<ops::TriangularSolve>(wide_kernel<accepts_solve, prepare_triangular>("triangular_solve_wide"));
}

}  // namespace rlx::cpu
