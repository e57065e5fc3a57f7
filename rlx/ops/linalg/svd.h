// Singular value decomposition.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Svd {
  static constexpr std::string_view name = "svd", summary = "Reduced singular value decomposition.",
                                    operands = "a", results = "u, s, vt";
  static constexpr std::string_view doc =
      "a[.., M, N] = u[.., M, K] diag(s[.., K]) vt[.., K, N], K = min(M, N), s descending; the entry of "
      "largest modulus in each column of u is positive. In the gradient, terms 1 / (s_j^2 - s_i^2) of equal "
      "values and 1 / s of vanishing ones count as 0, so functions that do not depend on the choice of "
      "vectors stay finite";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct SvdValues {
  static constexpr std::string_view name = "svd_values", summary = "Singular values.", operands = "a";
  static constexpr std::string_view doc =
      "y[.., K] = the singular values of a[.., M, N], K = min(M, N), descending; da = u diag(dy) vt";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct SvdResult {
  Expr u, s, vt;
};
SvdResult svd(Expr a);
Expr svd_values(Expr a);

}  // namespace rlx::ops
