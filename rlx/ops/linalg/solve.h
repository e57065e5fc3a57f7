// Linear systems with a general square matrix.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct BatchedDenseSolve {
  static constexpr std::string_view name = "batched_dense_solve",
                                    summary = "Solutions of square linear systems, one per batch entry.",
                                    operands = "a, b";
  static constexpr std::string_view doc =
      "a[.., N, N] x = b for b[.., N] or [.., N, K], by LU with partial pivoting; a singular matrix is an "
      "error. db = solve(a^H, dx), da = -db x^H";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct DenseSolve {
  static constexpr std::string_view name = "dense_solve", summary = "Solution of one square linear system.",
                                    operands = "a, b";
  static constexpr std::string_view doc =
      "a[N, N] x = b for b[N] or [N, K], by LU with partial pivoting; a singular matrix is an error";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Inverse {
  static constexpr std::string_view name = "inverse", summary = "Inverse of square matrices.", operands = "a";
  static constexpr std::string_view doc = "y = a^-1 for each a[.., N, N]; a singular matrix is an error";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr dense_solve(Expr a, Expr b);
Expr batched_dense_solve(Expr a, Expr b);
Expr inverse(Expr a);

}  // namespace rlx::ops
