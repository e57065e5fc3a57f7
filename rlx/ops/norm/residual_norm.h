// A residual sum and its normalisation in one operator: both are results, because the next layer adds to
// the sum.
#pragma once

#include <utility>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct ResidualNormAttrs {
  bool has_bias = false;
  double eps = 1e-5;
  static constexpr auto fields() {
    return std::tuple{
        field("has_bias", &ResidualNormAttrs::has_bias, "the operands are x, residual, bias, gamma, beta"),
        field("eps", &ResidualNormAttrs::eps, "added to the mean square before the root")};
  }
};

namespace detail {

Shapes infer_residual_norm(Infer& c, ResidualNormAttrs& a);
Exprs decompose_residual_norm(const Lower& c, const ResidualNormAttrs& a, bool centred);
std::vector<OpSample<ResidualNormAttrs>> residual_norm_samples();

}  // namespace detail

template <bool Centred>
struct ResidualNorm {
  static constexpr std::string_view operands = "x, residual, bias_or_gamma, gamma_or_beta, beta?";
  static constexpr std::string_view results = "y, sum";
  using Attrs = ResidualNormAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return detail::infer_residual_norm(c, a); }
  static Exprs decompose(const Lower& c, const Attrs& a) {
    return detail::decompose_residual_norm(c, a, Centred);
  }
  static std::vector<OpSample<Attrs>> samples() { return detail::residual_norm_samples(); }
};

struct FusedResidualLn : ResidualNorm<true> {
  static constexpr std::string_view name = "fused_residual_ln",
                                    summary = "Residual sum, and its layer norm over the last axis.";
  static constexpr std::string_view doc =
      "sum = x + residual + bias, y = layer_norm(sum, gamma, beta); the bias only with has_bias. Operands: "
      "x, residual, [bias], gamma, beta";
};

struct FusedResidualRmsNorm : ResidualNorm<false> {
  static constexpr std::string_view name = "fused_residual_rms_norm",
                                    summary = "Residual sum, and its RMS norm over the last axis.";
  static constexpr std::string_view doc =
      "sum = x + residual + bias, y = rms_norm(sum, gamma, beta); the bias only with has_bias. Operands: x, "
      "residual, [bias], gamma, beta";
};

/// The normalised sum and the sum itself. An empty bias is none.
std::pair<Expr, Expr> fused_residual_ln(Expr x, Expr residual, Expr bias, Expr gamma, Expr beta, double eps);
std::pair<Expr, Expr> fused_residual_rms_norm(Expr x, Expr residual, Expr bias, Expr gamma, Expr beta,
                                              double eps);

}  // namespace rlx::ops
