// Eigenvalues and eigenvectors of symmetric matrices.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Eigh {
  static constexpr std::string_view name = "eigh", summary = "Eigen decomposition of symmetric matrices.",
                                    operands = "a", results = "w, v";
  static constexpr std::string_view doc =
      "(a + a^T) / 2 = v diag(w) v^T for each a[.., N, N], w[.., N] ascending, v orthogonal; the entry of "
      "largest modulus in each column of v is positive. In the gradient, terms 1 / (w_j - w_i) of equal "
      "values count as 0, so functions that do not depend on the choice of vectors stay finite";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct EighValues {
  static constexpr std::string_view name = "eigh_values", summary = "Eigenvalues of symmetric matrices.",
                                    operands = "a";
  static constexpr std::string_view doc =
      "y[.., N] = the eigenvalues of (a + a^T) / 2, ascending; da = v diag(dy) v^T";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct EighResult {
  Expr w, v;
};
EighResult eigh(Expr a);
Expr eigh_values(Expr a);

}  // namespace rlx::ops
