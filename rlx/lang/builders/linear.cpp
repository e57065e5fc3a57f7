#include "rlx/lang/builders/linear.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/linalg/cholesky.h"
#include "rlx/ops/linalg/det.h"
#include "rlx/ops/linalg/eigh.h"
#include "rlx/ops/linalg/einsum.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/qr.h"
#include "rlx/ops/linalg/solve.h"
#include "rlx/ops/linalg/svd.h"
#include "rlx/ops/linalg/triangular_solve.h"
#include "rlx/ops/linear/blocks.h"
#include "rlx/ops/linear/fused_linear.h"
#include "rlx/ops/linear/grouped_matmul.h"

namespace rlx {

Value LinearBuilder::matmul(Value lhs, Value rhs, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::matmul(t(lhs), t(rhs)); });
}

Value LinearBuilder::mm(Value lhs, Value rhs, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::matmul(t(lhs), t(rhs)); });
}

Value LinearBuilder::einsum(const std::string& equation, const Values& operands, const Declared& shape,
                            const Loc& loc) {
  return one(shape, loc, [&] { return ops::einsum(equation, ts(operands)); });
}

Value LinearBuilder::dot_general(Value lhs, Value rhs, const ops::DotGeneral::Attrs& attrs,
                                 const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::dot_general(t(lhs), t(rhs), attrs); });
}

Value LinearBuilder::dense_solve(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::dense_solve(t(a), t(b)); });
}

Value LinearBuilder::batched_dense_solve(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::batched_dense_solve(t(a), t(b)); });
}

Value LinearBuilder::triangular_solve(Value a, Value b, bool lower, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::triangular_solve(t(a), t(b), lower); });
}

Value LinearBuilder::cholesky(Value a, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::cholesky(t(a)); });
}

Value LinearBuilder::inverse(Value a, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::inverse(t(a)); });
}

Value LinearBuilder::det(Value a, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::det(t(a)); });
}

Value LinearBuilder::logdet(Value a, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::logdet(t(a)); });
}

Value LinearBuilder::svd_values(Value a, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::svd_values(t(a)); });
}

Value LinearBuilder::eigh_values(Value a, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::eigh_values(t(a)); });
}

std::pair<Value, Value> LinearBuilder::eigh(Value a, const Loc& loc) {
  return two(loc, [&] { return ops::eigh(t(a)); });
}

std::pair<Value, Value> LinearBuilder::slogdet(Value a, const Loc& loc) {
  return two(loc, [&] { return ops::slogdet(t(a)); });
}

Values LinearBuilder::qr(Value a, const Loc& loc) {
  return many(loc, [&] {
    const auto r = ops::qr(t(a));
    return ir::Exprs{r.q, r.r};
  });
}

Values LinearBuilder::svd(Value a, const Loc& loc) {
  return many(loc, [&] {
    const auto r = ops::svd(t(a));
    return ir::Exprs{r.u, r.s, r.vt};
  });
}

Value LinearBuilder::linear_bias(Value input, Value weight, std::optional<Value> bias, const Declared& shape,
                                 const Loc& loc) {
  return one(shape, loc, [&] { return ops::linear_bias(t(input), t(weight), t(bias)); });
}

Value LinearBuilder::linear_bias_act(Value input, Value weight, std::optional<Value> bias,
                                     std::optional<ops::Activation> activation, const Declared& shape,
                                     const Loc& loc) {
  return one(shape, loc, [&] { return ops::linear_bias_act(t(input), t(weight), t(bias), activation); });
}

Value LinearBuilder::linear_fused(Value input, Value weight, Value bias,
                                  std::optional<ops::Activation> activation, const Declared& shape,
                                  const Loc& loc) {
  return one(shape, loc, [&] { return ops::linear_fused(t(input), t(weight), t(bias), activation); });
}

Value LinearBuilder::fused_matmul_bias_act(Value input, Value weight, Value bias,
                                           std::optional<ops::Activation> activation, const Declared& shape,
                                           const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::fused_matmul_bias_act(t(input), t(weight), t(bias), activation); });
}

std::pair<Value, Value> LinearBuilder::shared_matmul_pair(Value input, Value w_first, Value w_second,
                                                          const Loc& loc) {
  return two(loc, [&] { return ops::shared_matmul_pair(t(input), t(w_first), t(w_second)); });
}

Value LinearBuilder::swiglu_ffn(Value input, Value up_w, Value gate_w, Value down_w, const Declared& shape,
                                const Loc& loc) {
  return one(shape, loc, [&] { return ops::swiglu_ffn(t(input), t(up_w), t(gate_w), t(down_w)); });
}

Value LinearBuilder::fused_swiglu_ffn(Value input, Value up_w, Value gate_w, Value down_w,
                                      const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::fused_swiglu_ffn(t(input), t(up_w), t(gate_w), t(down_w)); });
}

Value LinearBuilder::lora_matmul(Value x, Value w, Value a, Value b, double scale, const Declared& shape,
                                 const Loc& loc) {
  return one(shape, loc, [&] { return ops::lora_matmul(t(x), t(w), t(a), t(b), scale); });
}

Value LinearBuilder::grouped_matmul(Value x, Value w, Value experts, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::grouped_matmul(t(x), t(w), t(experts)); });
}

}  // namespace rlx
