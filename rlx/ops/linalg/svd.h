// Singular value decomposition.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Svd {
  static constexpr std::string_view name = "svd", summary = "Reduced singular value decomposition.",
                                    operands = "a", results = "u, s, vt";
  static constexpr std::string_view doc =
      "a[.., M, N] = u[.., M, K] diag(s[.., K]) vt[.., K, N], K = min(M, N), s real and descending, vt = v^H; the entry "
      "of largest modulus in each column of u is positive. The gradient is NaN where it depends on vectors that belong "
      "to equal values, or to a value of 0 where there are more of them than K, or tells equal values apart: none is a "
      "smooth function of a. A value that is 0 has derivative 0, as the absolute value has";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct SvdValues {
  static constexpr std::string_view name = "svd_values", summary = "Singular values.", operands = "a";
  static constexpr std::string_view doc =
      "y[.., K] = the singular values of a[.., M, N], K = min(M, N), real and descending; da = u diag(dy) vt (half of it "
      "where a is complex), NaN where equal values have different dy; a value that is 0 has derivative 0";
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
