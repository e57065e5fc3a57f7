// Linear systems with a general square matrix.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ops {

using namespace ir;  // NOLINT

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
  static Tensors vjp(const Vjp&, const Attrs&);
  static Tensors jvp(const Jvp&, const Attrs&);
  static Tensors vmap(const Vmap&, const Attrs&);
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
  static Tensors decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Inverse {
  static constexpr std::string_view name = "inverse", summary = "Inverse of square matrices.", operands = "a";
  static constexpr std::string_view doc = "y = a^-1 for each a[.., N, N]; a singular matrix is an error";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Tensors decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Tensor dense_solve(Tensor a, Tensor b);
Tensor batched_dense_solve(Tensor a, Tensor b);
Tensor inverse(Tensor a);

}  // namespace rlx::ops
