// With a = u diag(s) v^H, g = det(u) det(v^H) and P_ij the product of all s but s_i and s_j (0 for i = j):
//
//   adj(a)    = g v diag(product of the other s) u^H
//   d adj(a)  = g v (diag(P diag(h)) - P o h) u^H,   h = u^H da v
//
// Nothing is divided by a value of s or by a difference of two, so both hold for every matrix. The
// derivatives are given to the graph by hand, for those of u and v alone do not always exist.
#include "rlx/ops/linalg/adjugate.h"

#include "rlx/ops/control/body.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/linalg/det.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/linalg/svd.h"
#include "rlx/ops/reduce/product_others.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

struct Factors {
  Expr u, s, v, g;  // g [.., 1, 1]
  explicit Factors(Expr a) {
    const SvdResult f = svd(a);
    u = f.u, s = f.s, v = adjoint(f.vt);
    const Expr phase = det(f.u) * det(f.vt);
    g = unsqueeze(unsqueeze(phase, -1), -1);
  }
};

// P of the values s[.., N].
Expr products_of_others(Expr s) {
  const Expr i = index_vector(*s.graph, s.dim(-1)), row = unsqueeze(unsqueeze(i, 1), 2),
             column = unsqueeze(i, 1);
  const Expr skipped = logical_or(equal(row, i), equal(column, i));  // [N, N, N]
  const Expr products =
      reduce(where(skipped, scalar_like(s, 1), unsqueeze(unsqueeze(s, -2), -2)), ReduceOp::prod, {-1}, false);
  return where(equal(column, i), scalar_like(s, 0), products);
}

// diag(P diag(h)) - P o h; the same form serves the transpose, for P is symmetric.
Expr mixed(Expr p, Expr h) {
  return diagonal_matrix(squeeze(matmul(p, unsqueeze(diagonal_of(h), -1)), -1)) - p * h;
}

GraphRef with_derivative(std::string name, const Shape& type, std::vector<std::string> inputs,
                         bool transposed) {
  auto g = std::make_shared<Graph>(std::move(name));
  Exprs x;
  for (const std::string& input : inputs) x.push_back({g.get(), g->input(input, type)});
  const Factors f(x[0]);
  const Expr p = cast(products_of_others(f.s), type.dtype()), d = x.back();
  const Expr out =
      transposed
          ? matmul(matmul(f.u, mixed(p, conj_of(f.g) * matmul(matmul(adjoint(f.v), d), f.u))), adjoint(f.v))
          : f.g * matmul(matmul(f.v, mixed(p, matmul(matmul(adjoint(f.u), d), f.v))), adjoint(f.u));
  g->set_outputs({out});
  return g;
}

}  // namespace

Expr adjugate(Expr a) {
  const Shape& type = a.shape();
  const GraphRef forward = make_body("adjugate", {type}, [](Graph&, const Exprs& x) {
    const Factors f(x[0]);
    const Expr others = cast(unsqueeze(product_others(f.s, {f.s.rank() - 1}), -2), x[0].dtype());
    return Exprs{f.g * matmul(f.v * others, adjoint(f.u))};
  });
  return make<CustomFn>(
      *a.graph,
      {forward, with_derivative("adjugate_vjp", type, {"a", "primal_output", "d_output"}, true),
       with_derivative("adjugate_jvp", type, {"a", "tangent_0"}, false)},
      {a});
}

}  // namespace rlx::ops
