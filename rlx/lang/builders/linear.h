// Products, solutions of linear systems, factorisations, linear layers.
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/linalg/dot_general.h"

namespace rlx {

/// Products, factorisations, linear layers.
class LinearBuilder : public BuilderTheme<LinearBuilder> {
 public:
  Value matmul(Value lhs, Value rhs, const Declared& shape = {}, const Loc& loc = Loc::current());
  /// matmul under its short name.
  Value mm(Value lhs, Value rhs, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value einsum(const std::string& equation, const Values& operands, const Declared& shape = {},
               const Loc& loc = Loc::current());
  Value dot_general(Value lhs, Value rhs, const ops::DotGeneral::Attrs& attrs, const Declared& shape = {},
                    const Loc& loc = Loc::current());
  Value dense_solve(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value batched_dense_solve(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value triangular_solve(Value a, Value b, bool lower = true, const Declared& shape = {},
                         const Loc& loc = Loc::current());
  Value cholesky(Value a, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value inverse(Value a, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value det(Value a, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value logdet(Value a, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value svd_values(Value a, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value eigh_values(Value a, const Declared& shape = {}, const Loc& loc = Loc::current());
  /// q, r
  Values qr(Value a, const Loc& loc = Loc::current());
  /// Eigenvalues in ascending order and eigenvectors as columns, of symmetric matrices.
  std::pair<Value, Value> eigh(Value a, const Loc& loc = Loc::current());
  /// Sign and logarithm of the modulus of the determinant.
  std::pair<Value, Value> slogdet(Value a, const Loc& loc = Loc::current());
  /// u, s, vt
  Values svd(Value a, const Loc& loc = Loc::current());

  Value linear_bias(Value input, Value weight, std::optional<Value> bias = {}, const Declared& shape = {},
                    const Loc& loc = Loc::current());
  Value linear_bias_act(Value input, Value weight, std::optional<Value> bias = {},
                        std::optional<ops::Activation> activation = {}, const Declared& shape = {},
                        const Loc& loc = Loc::current());
  Value linear_fused(Value input, Value weight, Value bias, std::optional<ops::Activation> activation = {},
                     const Declared& shape = {}, const Loc& loc = Loc::current());
  Value fused_matmul_bias_act(Value input, Value weight, Value bias,
                              std::optional<ops::Activation> activation = {}, const Declared& shape = {},
                              const Loc& loc = Loc::current());
  std::pair<Value, Value> shared_matmul_pair(Value input, Value w_first, Value w_second,
                                             const Loc& loc = Loc::current());
  Value swiglu_ffn(Value input, Value up_w, Value gate_w, Value down_w, const Declared& shape = {},
                   const Loc& loc = Loc::current());
  Value fused_swiglu_ffn(Value input, Value up_w, Value gate_w, Value down_w, const Declared& shape = {},
                         const Loc& loc = Loc::current());
  Value lora_matmul(Value x, Value w, Value a, Value b, double scale, const Declared& shape = {},
                    const Loc& loc = Loc::current());
  Value grouped_matmul(Value x, Value w, Value experts, const Declared& shape = {},
                       const Loc& loc = Loc::current());
};

}  // namespace rlx
