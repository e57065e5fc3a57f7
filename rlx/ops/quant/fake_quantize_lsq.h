// Learned step size quantisation (Esser et al. 2020): the scale is a parameter with a gradient.
#pragma once

#include <optional>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct LsqAttrs {
  int bits = 8;
  std::optional<int> axis;
  static constexpr auto fields() {
    return std::tuple{field("bits", &LsqAttrs::bits, "8, 4 or 2"),
                      field("axis", &LsqAttrs::axis, "axis of the channels; left out: one scale for all")};
  }
};

struct FakeQuantizeLsq {
  static constexpr std::string_view name = "fake_quantize_lsq",
                                    summary = "Rounding to a few bits with a learned scale.",
                                    operands = "x, scale";
  static constexpr std::string_view doc =
      "y = clamp(round(x / s), -Q, Q) s with s = scale[C] along `axis`, or scale[1]. With z = x / s: dx = dy "
      "where |z| <= Q, else 0; ds = sum of dy (round(z) - z where |z| <= Q, else Q sign(z))";
  static constexpr Traits traits{.surrogate_gradient = true};
  using Attrs = LsqAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct FakeQuantizeLsqBackwardX {
  static constexpr std::string_view name = "fake_quantize_lsq_backward_x",
                                    summary = "Gradient of fake_quantize_lsq in x.",
                                    operands = "x, scale, dy";
  static constexpr std::string_view doc = "dx = dy where |x / scale| <= Q, else 0";
  static constexpr Traits traits{.surrogate_gradient = true};
  using Attrs = LsqAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct FakeQuantizeLsqBackwardScale {
  static constexpr std::string_view name = "fake_quantize_lsq_backward_scale",
                                    summary = "Gradient of fake_quantize_lsq in its scale.",
                                    operands = "x, scale, dy";
  static constexpr std::string_view doc =
      "ds = sum of dy f(x / scale), f(z) = round(z) - z where |z| <= Q, else Q sign(z)";
  static constexpr Traits traits{.surrogate_gradient = true};
  using Attrs = LsqAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr fake_quantize_lsq(Expr x, Expr scale, int bits, std::optional<int> axis = {});
Expr fake_quantize_lsq_backward_x(Expr x, Expr scale, Expr dy, int bits, std::optional<int> axis = {});
Expr fake_quantize_lsq_backward_scale(Expr x, Expr scale, Expr dy, int bits, std::optional<int> axis = {});

}  // namespace rlx::ops
