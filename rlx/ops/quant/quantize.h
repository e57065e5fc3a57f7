// Conversion between floats and i8 codes: code = round(x / scale) + zero_point.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct TensorScale {
  double scale = 1;
  int64_t zero_point = 0;
  static constexpr auto fields() {
    return std::tuple{field("scale", &TensorScale::scale, "what one step of the code is worth"),
                      field("zero_point", &TensorScale::zero_point, "the code of 0, -128 .. 127")};
  }
};

struct ChannelScales {
  int axis = 0;
  std::vector<double> scales;
  std::vector<int64_t> zero_points;
  static constexpr auto fields() {
    return std::tuple{
        field("axis", &ChannelScales::axis, "axis of the channels; negative counts from the end"),
        field("scales", &ChannelScales::scales, "what one step of the code is worth, per channel"),
        field("zero_points", &ChannelScales::zero_points, "the code of 0, per channel")};
  }
};

struct Quantize {
  static constexpr std::string_view name = "quantize", summary = "Floats to i8 codes.", operands = "x";
  static constexpr std::string_view doc =
      "y = round(x / scale) + zero_point, halves to even, saturated to -128 .. 127; NaN is 0. No gradient: "
      "fake_quantize has one";
  static constexpr Traits traits{.elementwise = true, .zero_gradient = true};
  using Attrs = TensorScale;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct QuantizePerChannel {
  static constexpr std::string_view name = "quantize_per_channel",
                                    summary = "Floats to i8 codes, a scale per channel.", operands = "x";
  static constexpr std::string_view doc =
      "y = round(x / scales[c]) + zero_points[c] for c the position along `axis`, as quantize";
  static constexpr Traits traits{.zero_gradient = true};
  using Attrs = ChannelScales;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Dequantize {
  static constexpr std::string_view name = "dequantize", summary = "i8 codes to f32.", operands = "q";
  static constexpr std::string_view doc = "y = (q - zero_point) scale, f32";
  static constexpr Traits traits{.elementwise = true, .zero_gradient = true};
  using Attrs = TensorScale;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct DequantizePerChannel {
  static constexpr std::string_view name = "dequantize_per_channel",
                                    summary = "i8 codes to f32, a scale per channel.", operands = "q";
  static constexpr std::string_view doc =
      "y = (q - zero_points[c]) scales[c], f32, for c the position along `axis`";
  static constexpr Traits traits{.zero_gradient = true};
  using Attrs = ChannelScales;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr quantize(Expr x, double scale, int64_t zero_point);
Expr quantize_per_channel(Expr x, int axis, std::vector<double> scales, std::vector<int64_t> zero_points);
Expr dequantize(Expr q, double scale, int64_t zero_point);
Expr dequantize_per_channel(Expr q, int axis, std::vector<double> scales, std::vector<int64_t> zero_points);

/// The extents that put n channels on `axis` of a tensor of that rank, size 1 elsewhere.
Dims channel_dims(int rank, int axis, Dim n);

}  // namespace rlx::ops
