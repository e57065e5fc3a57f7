// Linear systems with a triangular matrix.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct TriangularSolve {
  static constexpr std::string_view name = "triangular_solve",
                                    summary = "Solutions of triangular linear systems.", operands = "a, b";
  static constexpr std::string_view doc =
      "op(a) x = b for each a[.., N, N] and b[.., N] or [.., N, K]; op is the transpose (not conjugated) "
      "when asked. Only the lower (or upper) triangle of a is read; with unit_diagonal its diagonal counts "
      "as ones. A zero on the diagonal is an error";
  struct Attrs {
    bool lower = true;
    bool transpose = false;
    bool unit_diagonal = false;
    static constexpr auto fields() {
      return std::tuple{field("lower", &Attrs::lower, "a is lower triangular, else upper"),
                        field("transpose", &Attrs::transpose, "solve with the transpose of a"),
                        field("unit_diagonal", &Attrs::unit_diagonal, "take the diagonal of a as ones")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr triangular_solve(Expr a, Expr b, bool lower = true, bool transpose = false, bool unit_diagonal = false);

}  // namespace rlx::ops
