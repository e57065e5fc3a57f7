// Rows multiplied by a matrix each of them chooses: the experts of a mixture.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ops {

using namespace ir;  // NOLINT

struct GroupedMatmul {
  static constexpr std::string_view name = "grouped_matmul",
                                    summary = "Each row times the matrix of its expert.",
                                    operands = "x, w, e";
  static constexpr std::string_view doc =
      "y[i, :] = x[i, :] w[e[i]]: x is [M, K], w [E, K, N], e [M] whole numbers in 0 .. E-1";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Tensors decompose(const Lower&, const Attrs&);
  static Tensors vjp(const Vjp&, const Attrs&);
  static Tensors jvp(const Jvp&, const Attrs&);
  static Tensors vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct GroupedOuter {
  static constexpr std::string_view name = "grouped_outer",
                                    summary = "Outer products of rows, summed per expert.",
                                    operands = "x, y, e";
  static constexpr std::string_view doc =
      "w[k] = sum of x[i, :]^T y[i, :] over the rows i with e[i] = k: x is [M, K], y [M, N], w [experts, K, "
      "N]; the gradient of grouped_matmul in its matrices";
  struct Attrs {
    Dim experts = 1;
    static constexpr auto fields() {
      return std::tuple{field("experts", &Attrs::experts, "number of matrices")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Tensors decompose(const Lower&, const Attrs&);
  static Tensors vjp(const Vjp&, const Attrs&);
  static Tensors jvp(const Jvp&, const Attrs&);
  static Tensors vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Tensor grouped_matmul(Tensor x, Tensor w, Tensor e);
Tensor grouped_outer(Tensor x, Tensor y, Tensor e, Dim experts);

}  // namespace rlx::ops
