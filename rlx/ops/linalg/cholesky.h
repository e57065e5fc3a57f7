// The triangular square root of a positive definite matrix.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Cholesky {
  static constexpr std::string_view name = "cholesky",
                                    summary = "Lower triangular factor of positive definite matrices.",
                                    operands = "a";
  static constexpr std::string_view doc =
      "y y^H = (a + a^H) / 2 for each a[.., N, N], y lower triangular with a positive diagonal; a matrix "
      "that is not positive definite is an error. da is the Hermitian part of y^-H P(y^H dy) y^-1, P the "
      "lower triangle with half the diagonal";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr cholesky(Expr a);

}  // namespace rlx::ops
