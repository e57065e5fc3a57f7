// Layer norm and RMS norm: one axis is normalised, then scaled and shifted element by element.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct AxisNormAttrs {
  int axis = -1;
  double eps = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("axis", &AxisNormAttrs::axis, "axis to normalise; negative counts from the end"),
                      field("eps", &AxisNormAttrs::eps, "added to the mean square before the root")};
  }
};

namespace detail {

// x, gamma?, beta?
Shapes infer_axis_norm(Infer& c, AxisNormAttrs& a);
Exprs decompose_axis_norm(const Lower& c, const AxisNormAttrs& a, bool centred);
std::vector<OpSample<AxisNormAttrs>> axis_norm_samples();

}  // namespace detail

struct LayerNorm {
  static constexpr std::string_view name = "layer_norm", summary = "Layer normalisation over one axis.",
                                    operands = "x, gamma?, beta?";
  static constexpr std::string_view doc =
      "y = gamma (x - m) / sqrt(v + eps) + beta, m and v the mean and the biased variance along the axis; "
      "gamma and beta have its size and are 1 and 0 when left out";
  using Attrs = AxisNormAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return detail::infer_axis_norm(c, a); }
  static Exprs decompose(const Lower& c, const Attrs& a) { return detail::decompose_axis_norm(c, a, true); }
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples() { return detail::axis_norm_samples(); }
};

struct RmsNorm {
  static constexpr std::string_view name = "rms_norm",
                                    summary = "Root-mean-square normalisation over an axis.",
                                    operands = "x, gamma?, beta?";
  static constexpr std::string_view doc =
      "y = gamma x / sqrt(mean(x^2) + eps) + beta along the axis; gamma and beta have its size and are 1 and "
      "0 when left out";
  using Attrs = AxisNormAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return detail::infer_axis_norm(c, a); }
  static Exprs decompose(const Lower& c, const Attrs& a) { return detail::decompose_axis_norm(c, a, false); }
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples() { return detail::axis_norm_samples(); }
};

struct LayerNorm2d {
  static constexpr std::string_view name = "layer_norm2d",
                                    summary = "Layer normalisation of the channels of [N, C, H, W].",
                                    operands = "x, gamma?, beta?";
  static constexpr std::string_view doc =
      "y[n, :, h, w] = layer_norm of x[n, :, h, w]: mean and variance over C at each place";
  struct Attrs {
    double eps = 1e-5;
    static constexpr auto fields() {
      return std::tuple{field("eps", &Attrs::eps, "added to the variance before the root")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr layer_norm(Expr x, Expr gamma, Expr beta, int axis, double eps);
Expr rms_norm(Expr x, Expr gamma, Expr beta, int axis, double eps);
Expr layer_norm2d(Expr x, Expr gamma, Expr beta, double eps);

}  // namespace rlx::ops
