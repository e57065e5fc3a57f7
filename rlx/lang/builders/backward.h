// Gradients to be called by hand; the transforms find their own.
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/elementwise/activation.h"

namespace rlx {

/// Gradients to be called by hand.
class BackwardBuilder : public BuilderTheme<BackwardBuilder> {
 public:
  Value relu_backward(Value x, Value dy, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value activation_backward(ops::Activation kind, Value x, Value dy, const Declared& shape = {},
                            const Loc& loc = Loc::current());
  /// g z
  Value complex_norm_sq_backward(Value z, Value g, const Declared& shape = {},
                                 const Loc& loc = Loc::current());
  Value layer_norm_backward_input(Value x, Value gamma, Value dy, int axis, double eps,
                                  const Declared& shape = {}, const Loc& loc = Loc::current());
  Value layer_norm_backward_gamma(Value x, Value dy, Dims gamma_shape, int axis, double eps,
                                  const Declared& shape = {}, const Loc& loc = Loc::current());
  Value rms_norm_backward_input(Value x, Value gamma, Value beta, Value dy, int axis, double eps,
                                const Declared& shape = {}, const Loc& loc = Loc::current());
  Value rms_norm_backward_gamma(Value x, Value gamma, Value beta, Value dy, int axis, double eps,
                                const Declared& shape = {}, const Loc& loc = Loc::current());
  Value rms_norm_backward_beta(Value x, Value gamma, Value beta, Value dy, int axis, double eps,
                               const Declared& shape = {}, const Loc& loc = Loc::current());
  Value group_norm_backward_input(Value x, Value gamma, Value beta, Value dy, int64_t num_groups, double eps,
                                  const Declared& shape = {}, const Loc& loc = Loc::current());
  Value group_norm_backward_gamma(Value x, Value dy, Dims parameter_shape, int64_t num_groups, double eps,
                                  const Declared& shape = {}, const Loc& loc = Loc::current());
  Value group_norm_backward_beta(Value x, Value dy, Dims parameter_shape, int64_t num_groups, double eps,
                                 const Declared& shape = {}, const Loc& loc = Loc::current());
  Value rope_backward(Value dy, Value cos, Value sin, int64_t head_dim, int64_t n_rot,
                      const Declared& shape = {}, const Loc& loc = Loc::current());
  Value cumsum_backward(Value dy, int axis, bool exclusive = false, const Declared& shape = {},
                        const Loc& loc = Loc::current());
  Value gather_backward(Value dy, Value indices, Dims table_shape, int axis, const Declared& shape = {},
                        const Loc& loc = Loc::current());
  Value maxpool2d_backward(Value x, Value dy, std::vector<int64_t> kernel_size,
                           std::vector<int64_t> stride = {}, std::vector<int64_t> padding = {},
                           const Declared& shape = {}, const Loc& loc = Loc::current());
  Value conv2d_backward_input(Value dy, Value w, Dims x_shape, std::vector<int64_t> kernel_size,
                              std::vector<int64_t> stride = {}, std::vector<int64_t> padding = {},
                              std::vector<int64_t> dilation = {}, int64_t groups = 1,
                              const Declared& shape = {}, const Loc& loc = Loc::current());
  Value conv2d_backward_weight(Value x, Value dy, Dims w_shape, std::vector<int64_t> kernel_size,
                               std::vector<int64_t> stride = {}, std::vector<int64_t> padding = {},
                               std::vector<int64_t> dilation = {}, int64_t groups = 1,
                               const Declared& shape = {}, const Loc& loc = Loc::current());
  Value softmax_cross_entropy_backward(Value logits, Value labels, Value d_loss, const Declared& shape = {},
                                       const Loc& loc = Loc::current());
  Value attention_backward(ops::AttentionWrt wrt, Value q, Value k, Value v, Value dy, int64_t num_heads,
                           int64_t head_dim, ops::MaskKind mask_kind, std::optional<Value> mask = {},
                           const Declared& shape = {}, const Loc& loc = Loc::current());
  /// dq, dk, dv
  Values attention_backward_all(Value q, Value k, Value v, Value dy, int64_t num_heads, int64_t head_dim,
                                ops::MaskKind mask_kind, std::optional<Value> mask = {},
                                const Loc& loc = Loc::current());
};

}  // namespace rlx
