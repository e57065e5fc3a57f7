#include "rlx/lang/builders/backward.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/conv/pool.h"
#include "rlx/ops/elementwise/activation_backward.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/loss/cross_entropy.h"
#include "rlx/ops/norm/axis_norm_backward.h"
#include "rlx/ops/norm/group_norm.h"
#include "rlx/ops/reduce/cumulative.h"

namespace rlx {

Value BackwardBuilder::relu_backward(Value x, Value dy, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::relu_backward(t(x), t(dy)); });
}

Value BackwardBuilder::activation_backward(ops::Activation kind, Value x, Value dy, const Declared& shape,
                                           const Loc& loc) {
  return one(shape, loc, [&] { return ops::activation_backward(kind, t(x), t(dy)); });
}

Value BackwardBuilder::complex_norm_sq_backward(Value z, Value g, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::complex_norm_sq_backward(t(z), t(g)); });
}

Value BackwardBuilder::layer_norm_backward_input(Value x, Value gamma, Value dy, int axis, double eps,
                                                 const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::layer_norm_backward_input(t(x), t(gamma), t(dy), axis, eps); });
}

Value BackwardBuilder::layer_norm_backward_gamma(Value x, Value dy, Dims gamma_shape, int axis, double eps,
                                                 const Declared& shape, const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::layer_norm_backward_gamma(t(x), t(dy), std::move(gamma_shape), axis, eps); });
}

Value BackwardBuilder::rms_norm_backward_input(Value x, Value gamma, Value beta, Value dy, int axis,
                                               double eps, const Declared& shape, const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::rms_norm_backward_input(t(x), t(gamma), t(beta), t(dy), axis, eps); });
}

Value BackwardBuilder::rms_norm_backward_gamma(Value x, Value gamma, Value beta, Value dy, int axis,
                                               double eps, const Declared& shape, const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::rms_norm_backward_gamma(t(x), t(gamma), t(beta), t(dy), axis, eps); });
}

Value BackwardBuilder::rms_norm_backward_beta(Value x, Value gamma, Value beta, Value dy, int axis,
                                              double eps, const Declared& shape, const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::rms_norm_backward_beta(t(x), t(gamma), t(beta), t(dy), axis, eps); });
}

Value BackwardBuilder::group_norm_backward_input(Value x, Value gamma, Value beta, Value dy,
                                                 int64_t num_groups, double eps, const Declared& shape,
                                                 const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::group_norm_backward_input(t(x), t(gamma), t(beta), t(dy), num_groups, eps); });
}

Value BackwardBuilder::group_norm_backward_gamma(Value x, Value dy, Dims parameter_shape, int64_t num_groups,
                                                 double eps, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::group_norm_backward_gamma(t(x), t(dy), std::move(parameter_shape), num_groups, eps);
  });
}

Value BackwardBuilder::group_norm_backward_beta(Value x, Value dy, Dims parameter_shape, int64_t num_groups,
                                                double eps, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::group_norm_backward_beta(t(x), t(dy), std::move(parameter_shape), num_groups, eps);
  });
}

Value BackwardBuilder::rope_backward(Value dy, Value cos, Value sin, int64_t head_dim, int64_t n_rot,
                                     const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::rope_backward(t(dy), t(cos), t(sin), head_dim, n_rot); });
}

Value BackwardBuilder::cumsum_backward(Value dy, int axis, bool exclusive, const Declared& shape,
                                       const Loc& loc) {
  return one(shape, loc, [&] { return ops::cumsum_backward(t(dy), axis, exclusive); });
}

Value BackwardBuilder::gather_backward(Value dy, Value indices, Dims table_shape, int axis,
                                       const Declared& shape, const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::gather_backward(t(dy), t(indices), std::move(table_shape), axis); });
}

Value BackwardBuilder::maxpool2d_backward(Value x, Value dy, std::vector<int64_t> kernel_size,
                                          std::vector<int64_t> stride, std::vector<int64_t> padding,
                                          const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::maxpool2d_backward(t(x), t(dy), std::move(kernel_size), std::move(stride),
                                   std::move(padding));
  });
}

Value BackwardBuilder::conv2d_backward_input(Value dy, Value w, Dims x_shape,
                                             std::vector<int64_t> kernel_size, std::vector<int64_t> stride,
                                             std::vector<int64_t> padding, std::vector<int64_t> dilation,
                                             int64_t groups, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::conv2d_backward_input(t(dy), t(w), std::move(x_shape), std::move(kernel_size),
                                      std::move(stride), std::move(padding), std::move(dilation), groups);
  });
}

Value BackwardBuilder::conv2d_backward_weight(Value x, Value dy, Dims w_shape,
                                              std::vector<int64_t> kernel_size, std::vector<int64_t> stride,
                                              std::vector<int64_t> padding, std::vector<int64_t> dilation,
                                              int64_t groups, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::conv2d_backward_weight(t(x), t(dy), std::move(w_shape), std::move(kernel_size),
                                       std::move(stride), std::move(padding), std::move(dilation), groups);
  });
}

Value BackwardBuilder::softmax_cross_entropy_backward(Value logits, Value labels, Value d_loss,
                                                      const Declared& shape, const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::softmax_cross_entropy_backward(t(logits), t(labels), t(d_loss)); });
}

Value BackwardBuilder::attention_backward(ops::AttentionWrt wrt, Value q, Value k, Value v, Value dy,
                                          int64_t num_heads, int64_t head_dim, ops::MaskKind mask_kind,
                                          std::optional<Value> mask, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::attention_backward(wrt, t(q), t(k), t(v), t(dy), num_heads, head_dim, mask_kind, t(mask));
  });
}

Values BackwardBuilder::attention_backward_all(Value q, Value k, Value v, Value dy, int64_t num_heads,
                                               int64_t head_dim, ops::MaskKind mask_kind,
                                               std::optional<Value> mask, const Loc& loc) {
  return many(loc, [&] {
    const auto r =
        ops::attention_backward_all(t(q), t(k), t(v), t(dy), num_heads, head_dim, mask_kind, t(mask));
    return ir::Exprs{r.dq, r.dk, r.dv};
  });
}

}  // namespace rlx
