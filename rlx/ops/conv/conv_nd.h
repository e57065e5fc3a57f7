// Convolutions as they are usually called: cross-correlation over one, two or three axes with zero padding,
// the transposed ones, and the gradients of the two-dimensional one under their own names.
#pragma once

#include "rlx/ops/conv/conv.h"

namespace rlx::ops {

/// What all of them have in common.
struct ConvSteps {
  std::vector<int64_t> kernel_size, stride, padding, dilation;
  int64_t groups = 1;

  template <class A>
  static constexpr auto fields_of() {
    using List = std::vector<int64_t>;
    return std::tuple{
        field<A, List>("kernel_size", &A::kernel_size, "extents of the kernel; left out, those of w"),
        field<A, List>("stride", &A::stride, "step between windows, per spatial axis; default 1"),
        field<A, List>("padding", &A::padding,
                       "zeros on both sides, per spatial axis; twice as many entries: all before, all after"),
        field<A, List>("dilation", &A::dilation, "step inside a window, per spatial axis; default 1"),
        field<A, int64_t>("groups", &A::groups, "parts into which the channels are split")};
  }
};

struct ConvAttrs : ConvSteps {
  static constexpr auto fields() { return fields_of<ConvAttrs>(); }
};

struct ConvTransposeAttrs : ConvSteps {
  std::vector<int64_t> output_padding;
  static constexpr auto fields() {
    return std::tuple_cat(fields_of<ConvTransposeAttrs>(),
                          std::tuple{field("output_padding", &ConvTransposeAttrs::output_padding,
                                           "positions added at the end, per spatial axis; default 0")});
  }
};

namespace detail {

Shapes infer_conv(Infer& c, ConvAttrs& a, int axes);
Exprs decompose_conv(const Lower& c, const ConvAttrs& a);
std::vector<OpSample<ConvAttrs>> conv_samples(int axes);
Shapes infer_conv_transpose(Infer& c, ConvTransposeAttrs& a, int axes);
Exprs decompose_conv_transpose(const Lower& c, const ConvTransposeAttrs& a);
std::vector<OpSample<ConvTransposeAttrs>> conv_transpose_samples(int axes);

}  // namespace detail

template <int Axes>
struct ConvNd {
  static constexpr std::string_view operands = "x, w";
  static constexpr std::string_view doc =
      "y[n, co, o] = sum over ci, k of x[n, ci, o stride + k dilation - padding] w[co, ci, k], zero outside "
      "x. x is [N, Ci, spatial..], w is [Co, Ci/groups, kernel..]; a spatial axis of y has floor((size + 2 "
      "padding - dilation (kernel - 1) - 1) / stride) + 1 positions";
  static constexpr Traits traits{.contraction = true};
  using Attrs = ConvAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return detail::infer_conv(c, a, Axes); }
  static Exprs decompose(const Lower& c, const Attrs& a) { return detail::decompose_conv(c, a); }
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
    return window_operations(out[0], in[1]);
  }
  static std::vector<OpSample<Attrs>> samples() { return detail::conv_samples(Axes); }
};

struct Conv1d : ConvNd<1> {
  static constexpr std::string_view name = "conv1d", summary = "Convolution along one axis, [N, C, L].";
};
struct Conv2d : ConvNd<2> {
  static constexpr std::string_view name = "conv2d", summary = "Convolution of images, [N, C, H, W].";
};
struct Conv3d : ConvNd<3> {
  static constexpr std::string_view name = "conv3d", summary = "Convolution of volumes, [N, C, D, H, W].";
};

template <int Axes>
struct ConvTransposeNd {
  static constexpr std::string_view operands = "x, w";
  static constexpr std::string_view doc =
      "y[n, co, i stride + k dilation - padding] += x[n, ci, i] w[ci, co, k]: the gradient of a convolution "
      "in its input. x is [N, Ci, spatial..], w is [Ci, Co/groups, kernel..]; a spatial axis of y has "
      "(size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1 positions";
  static constexpr Traits traits{.contraction = true};
  using Attrs = ConvTransposeAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return detail::infer_conv_transpose(c, a, Axes); }
  static Exprs decompose(const Lower& c, const Attrs& a) { return detail::decompose_conv_transpose(c, a); }
  static double operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
    return window_operations(in[0], in[1]);
  }
  static std::vector<OpSample<Attrs>> samples() { return detail::conv_transpose_samples(Axes); }
};

struct ConvTranspose1d : ConvTransposeNd<1> {
  static constexpr std::string_view name = "conv_transpose1d",
                                    summary = "Transposed convolution along one axis, [N, C, L].";
};
struct ConvTranspose2d : ConvTransposeNd<2> {
  static constexpr std::string_view name = "conv_transpose2d",
                                    summary = "Transposed convolution of images, [N, C, H, W].";
};
struct ConvTranspose3d : ConvTransposeNd<3> {
  static constexpr std::string_view name = "conv_transpose3d",
                                    summary = "Transposed convolution of volumes, [N, C, D, H, W].";
};

struct Conv2dBackwardInput {
  static constexpr std::string_view name = "conv2d_backward_input",
                                    summary = "Gradient of conv2d in its input.", operands = "dy, w";
  static constexpr std::string_view doc =
      "dx[n, ci, i] = sum of dy[n, co, o] w[co, ci, k] over co and o stride + k dilation - padding = i";
  static constexpr Traits traits{.contraction = true};
  struct Attrs : ConvSteps {
    Dims x_shape;
    static constexpr auto fields() {
      return std::tuple_cat(fields_of<Attrs>(),
                            std::tuple{field("x_shape", &Attrs::x_shape, "extents of conv2d's input")});
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Conv2dBackwardWeight {
  static constexpr std::string_view name = "conv2d_backward_weight",
                                    summary = "Gradient of conv2d in its weight.", operands = "x, dy";
  static constexpr std::string_view doc =
      "dw[co, ci, k] = sum over n, o of x[n, ci, o stride + k dilation - padding] dy[n, co, o]";
  static constexpr Traits traits{.contraction = true};
  struct Attrs : ConvSteps {
    Dims w_shape;
    static constexpr auto fields() {
      return std::tuple_cat(fields_of<Attrs>(),
                            std::tuple{field("w_shape", &Attrs::w_shape, "extents of conv2d's weight")});
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

using Steps = std::vector<int64_t>;

Expr conv1d(Expr x, Expr w, Steps kernel_size = {}, Steps stride = {}, Steps padding = {},
            Steps dilation = {}, int64_t groups = 1);
Expr conv2d(Expr x, Expr w, Steps kernel_size = {}, Steps stride = {}, Steps padding = {},
            Steps dilation = {}, int64_t groups = 1);
Expr conv3d(Expr x, Expr w, Steps kernel_size = {}, Steps stride = {}, Steps padding = {},
            Steps dilation = {}, int64_t groups = 1);
Expr conv_transpose1d(Expr x, Expr w, Steps kernel_size = {}, Steps stride = {}, Steps padding = {},
                      Steps dilation = {}, Steps output_padding = {}, int64_t groups = 1);
Expr conv_transpose2d(Expr x, Expr w, Steps kernel_size = {}, Steps stride = {}, Steps padding = {},
                      Steps dilation = {}, Steps output_padding = {}, int64_t groups = 1);
Expr conv_transpose3d(Expr x, Expr w, Steps kernel_size = {}, Steps stride = {}, Steps padding = {},
                      Steps dilation = {}, Steps output_padding = {}, int64_t groups = 1);
Expr conv2d_backward_input(Expr dy, Expr w, Dims x_shape, Steps kernel_size = {}, Steps stride = {},
                           Steps padding = {}, Steps dilation = {}, int64_t groups = 1);
Expr conv2d_backward_weight(Expr x, Expr dy, Dims w_shape, Steps kernel_size = {}, Steps stride = {},
                            Steps padding = {}, Steps dilation = {}, int64_t groups = 1);

}  // namespace rlx::ops
