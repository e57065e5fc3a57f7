// The gradients of layer norm and RMS norm under their own names.
#pragma once

#include "rlx/ops/norm/axis_norm.h"

namespace rlx::ops {

struct LayerNormBackwardInput {
  static constexpr std::string_view name = "layer_norm_backward_input",
                                    summary = "Gradient of layer_norm in x.", operands = "x, gamma, dy";
  static constexpr std::string_view doc =
      "dx = r (g - mean(g) - hat mean(g hat)), g = gamma dy, hat = (x - m) r, r = 1 / sqrt(v + eps)";
  using Attrs = AxisNormAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct LayerNormBackwardGamma {
  static constexpr std::string_view name = "layer_norm_backward_gamma",
                                    summary = "Gradient of layer_norm in gamma.", operands = "x, dy";
  static constexpr std::string_view doc = "dgamma = sum of dy (x - m) / sqrt(v + eps) over all other axes";
  struct Attrs {
    int axis = -1;
    double eps = 1e-5;
    Dims gamma_shape;
    static constexpr auto fields() {
      return std::tuple{field("axis", &Attrs::axis, "normalised axis; negative counts from the end"),
                        field("eps", &Attrs::eps, "added to the variance before the root"),
                        field("gamma_shape", &Attrs::gamma_shape, "extents of gamma; left out, inferred")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

namespace detail {

// x, gamma, beta, dy; beta does not enter, it is there so that all three have one signature.
Shapes infer_rms_backward(Infer& c, AxisNormAttrs& a);
std::vector<OpSample<AxisNormAttrs>> rms_backward_samples();

}  // namespace detail

struct RmsNormBackwardInput {
  static constexpr std::string_view name = "rms_norm_backward_input", summary = "Gradient of rms_norm in x.",
                                    operands = "x, gamma, beta, dy";
  static constexpr std::string_view doc =
      "dx = r (g - x r^2 mean(g x)), g = gamma dy, r = 1 / sqrt(mean(x^2) + eps)";
  using Attrs = AxisNormAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return detail::infer_rms_backward(c, a); }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples() { return detail::rms_backward_samples(); }
};

struct RmsNormBackwardGamma {
  static constexpr std::string_view name = "rms_norm_backward_gamma",
                                    summary = "Gradient of rms_norm in gamma.",
                                    operands = "x, gamma, beta, dy";
  static constexpr std::string_view doc = "dgamma = sum of dy x / sqrt(mean(x^2) + eps) over all other axes";
  using Attrs = AxisNormAttrs;
  static Shapes infer(Infer& c, Attrs& a) {
    detail::infer_rms_backward(c, a);
    return {c.in(1)};
  }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples() { return detail::rms_backward_samples(); }
};

struct RmsNormBackwardBeta {
  static constexpr std::string_view name = "rms_norm_backward_beta",
                                    summary = "Gradient of rms_norm in beta.",
                                    operands = "x, gamma, beta, dy";
  static constexpr std::string_view doc = "dbeta = sum of dy over all axes but the normalised one";
  using Attrs = AxisNormAttrs;
  static Shapes infer(Infer& c, Attrs& a) {
    detail::infer_rms_backward(c, a);
    return {c.in(2)};
  }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples() { return detail::rms_backward_samples(); }
};

Expr layer_norm_backward_input(Expr x, Expr gamma, Expr dy, int axis, double eps);
/// An empty gamma_shape is inferred; a given one is checked.
Expr layer_norm_backward_gamma(Expr x, Expr dy, Dims gamma_shape, int axis, double eps);
Expr rms_norm_backward_input(Expr x, Expr gamma, Expr beta, Expr dy, int axis, double eps);
Expr rms_norm_backward_gamma(Expr x, Expr gamma, Expr beta, Expr dy, int axis, double eps);
Expr rms_norm_backward_beta(Expr x, Expr gamma, Expr beta, Expr dy, int axis, double eps);

}  // namespace rlx::ops
