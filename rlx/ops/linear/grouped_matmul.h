// Rows multiplied by a matrix each of them chooses: the experts of a mixture.
#pragma once

#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct GroupedMatmul {
  static constexpr std::string_view name = "grouped_matmul",
                                    summary = "Each row times the matrix of its expert.",
                                    operands = "x, w, e";
  static constexpr std::string_view doc =
      "y[i, :] = x[i, :] w[e[i]]: x is [M, K], w [E, K, N], e [M] whole numbers in 0 .. E-1";
  static constexpr Traits traits{.contraction = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
    return product_operations(in, out);
  }
  static std::vector<OpSample<Attrs>> samples();
};

struct GroupedOuter {
  static constexpr std::string_view name = "grouped_outer",
                                    summary = "Outer products of rows, summed per expert.",
                                    operands = "x, y, e";
  static constexpr std::string_view doc =
      "w[k] = sum of x[i, :]^T y[i, :] over the rows i with e[i] = k: x is [M, K], y [M, N], w [experts, K, "
      "N]; the gradient of grouped_matmul in its matrices";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    Dim experts = 1;
    static constexpr auto fields() {
      return std::tuple{field("experts", &Attrs::experts, "number of matrices")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr grouped_matmul(Expr x, Expr w, Expr e);
Expr grouped_outer(Expr x, Expr y, Expr e, Dim experts);

}  // namespace rlx::ops
