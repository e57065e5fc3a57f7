// Determinants.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Det {
  static constexpr std::string_view name = "det", summary = "Determinant of square matrices.", operands = "a";
  static constexpr std::string_view doc =
      "y = det a for each a[.., N, N]; da = dy adj(a)^H with the adjugate, which singular matrices have too";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Slogdet {
  static constexpr std::string_view name = "slogdet", summary = "Sign and logarithm of the determinant.",
                                    operands = "a", results = "sign, logabs";
  static constexpr std::string_view doc =
      "det a = sign exp(logabs) for each a[.., N, N], the sign of a complex one a phase; a singular matrix has sign 0 and "
      "logabs -inf. da = dlogabs a^-T for real a, an error where a is singular";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Logdet {
  static constexpr std::string_view name = "logdet", summary = "Logarithm of the determinant.",
                                    operands = "a";
  static constexpr std::string_view doc =
      "y = ln det a for each a[.., N, N]; NaN where the determinant is negative, -inf where it is 0";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct SlogdetResult {
  Expr sign, logabs;
};
Expr det(Expr a);
SlogdetResult slogdet(Expr a);
Expr logdet(Expr a);

}  // namespace rlx::ops
