// Eigenvalues and eigenvectors of symmetric matrices.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Eigh {
  static constexpr std::string_view name = "eigh",
                                    summary = "Eigen decomposition of symmetric or Hermitian matrices.",
                                    operands = "a", results = "w, v";
  static constexpr std::string_view doc =
      "(a + a^H) / 2 = v diag(w) v^H for each a[.., N, N], w[.., N] real and ascending, v unitary; the entry of "
      "largest modulus in each column of v is positive. The gradient is NaN where it depends on vectors that belong "
      "to equal values, or tells equal values apart: neither is a smooth function of a";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct EighValues {
  static constexpr std::string_view name = "eigh_values",
                                    summary = "Eigenvalues of symmetric or Hermitian matrices.",
                                    operands = "a";
  static constexpr std::string_view doc =
      "y[.., N] = the eigenvalues of (a + a^H) / 2, real and ascending; da = v diag(dy) v^H (half of it where a is "
      "complex), NaN where equal values have different dy";
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
