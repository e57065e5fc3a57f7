// The short causal convolution of state-space and delta-rule models.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct DepthwiseConv1dCausal {
  static constexpr std::string_view name = "depthwise_conv1d_causal",
                                    summary = "Causal convolution of each channel along the sequence.",
                                    operands = "input, weight, left_pad";
  static constexpr std::string_view doc =
      "y[b, s, c] = sum over k of z[b, s + k, c] weight[c, 0, 0, k], z = left_pad followed by input along "
      "the sequence. input is [B, S, C], weight [C, 1, 1, K], left_pad [B, K-1, C]: the last K-1 inputs "
      "before this call, zeros at the start";
  static constexpr Traits traits{.contraction = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr depthwise_conv1d_causal(Expr input, Expr weight, Expr left_pad);

}  // namespace rlx::ops
