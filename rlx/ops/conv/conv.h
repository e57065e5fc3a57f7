// The one convolution all others are made of.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// With i, k, o positions in x, w and y along a spatial axis, every term of
///   y[n, co, o] = sum of x[n, ci, i] w[co, ci, k]   over   o stride + k dilation = i input_dilation +
///   padding
/// is one solution of that equation; terms with i outside x are absent. The equation treats the three tensors
/// alike, so both gradients are convolutions again: x trades (stride, input_dilation) with y, w trades
/// (dilation, stride) with y. That is why the steps may be negative here: a kernel run backwards is a
/// negative dilation. An ordinary convolution has stride, dilation >= 1, input_dilation 1 and padding zeros
/// before x; a transposed one has stride 1, dilation < 0 and its stride as input_dilation.
struct Conv {
  static constexpr std::string_view name = "conv",
                                    summary = "Convolution over one to three axes, in its general form.",
                                    operands = "x, w";
  static constexpr std::string_view doc =
      "y[n, co, o] = sum over ci, k of x[n, g Ci/groups + ci, i] w[co, ci, k] with i input_dilation = "
      "o stride + k dilation - padding on each spatial axis, absent where i is not whole or not inside x; "
      "g = co / (Co/groups). x is [N, Ci, ..], w is [Co, Ci/groups, ..], y is [N, Co, size..]";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    std::vector<int64_t> stride, padding, dilation, input_dilation;
    Dim groups = 1;
    Dims size;
    static constexpr auto fields() {
      return std::tuple{
          field("stride", &Attrs::stride, "step of y's position, per spatial axis; default 1, never 0"),
          field("padding", &Attrs::padding, "zeros before x, per spatial axis; default 0; negative cuts x"),
          field("dilation", &Attrs::dilation,
                "step of the kernel's position; default 1, negative runs it backwards"),
          field("input_dilation", &Attrs::input_dilation, "step of x's position; default 1, never 0"),
          field("groups", &Attrs::groups, "parts into which the channels are split"),
          field("size", &Attrs::size,
                "spatial extents of y; default: as with equal padding before and after x")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr conv(Expr x, Expr w, Conv::Attrs attrs);

/// Operations of windows w[channels, window..] at that many places: two for each place and number of a window.
double window_operations(const Shape& places, const Shape& w);

/// The gradient of conv(x, w, a) in x, which has extents `x_dims`, and in w.
Expr conv_input_gradient(Expr dy, Expr w, const Dims& x_dims, const Conv::Attrs& a);
Expr conv_weight_gradient(Expr x, Expr dy, const Dims& w_dims, const Conv::Attrs& a);

/// w[A, B/groups, ..] seen from the other side: [B, A/groups, ..].
Expr swap_channels(Expr w, Dim groups);

}  // namespace rlx::ops
