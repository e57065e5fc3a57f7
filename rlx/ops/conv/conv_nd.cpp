#include "rlx/ops/conv/conv_nd.h"

#include "rlx/base/checked.h"
#include "rlx/ops/conv/extent.h"

namespace rlx::ops {
namespace {

int spatial_axes(const Dims& dims) { return int(dims.size()) - 2; }

// Full lists, `kernel_size` as the weight has it.
void complete_steps(Infer& c, ConvSteps& a, const Dims& weight) {
  const int axes = spatial_axes(weight);
  if (a.kernel_size.empty()) {
    for (int i = 0; i < axes; ++i) {
      const Dim k = weight[size_t(i + 2)];
      if (!k.is_static()) c.fail("w has the symbolic kernel size ", k, "; give kernel_size");
      a.kernel_size.push_back(k.value());
    }
  }
  complete_list(c, a.kernel_size, "kernel_size", axes, 1, 1);
  for (int i = 0; i < axes; ++i) c.same(a.kernel_size[size_t(i)], weight[size_t(i + 2)], "kernel sizes");
  complete_list(c, a.stride, "stride", axes, 1, 1);
  complete_list(c, a.dilation, "dilation", axes, 1, 1);
  if (a.groups < 1) c.fail("groups ", a.groups, " must be 1 or more");
}

// One entry per axis when both sides are equal, else those before and then those after.
void complete_padding(Infer& c, ConvSteps& a, int axes) {
  const auto n = size_t(axes);
  if (a.padding.size() == 2 * n) {
    complete_list(c, a.padding, "padding", 2 * axes, 0, 0);
    if (std::equal(a.padding.begin(), a.padding.begin() + axes, a.padding.begin() + axes))
      a.padding.resize(n);
  } else {
    complete_list(c, a.padding, "padding", axes, 0, 0);
  }
}

int64_t window(const ConvSteps& a, size_t axis) {
  return checked_add(checked_mul(a.kernel_size[axis] - 1, a.dilation[axis]), 1);
}
int64_t high_padding(const ConvSteps& a, size_t axis) {
  return a.padding.size() == a.stride.size() ? a.padding[axis] : a.padding[a.stride.size() + axis];
}

// Spatial extents of the convolution of an input [N, Ci, ..].
Dims positions(Infer& c, const ConvSteps& a, const Dims& input) {
  Dims out;
  for (size_t i = 0; i < a.stride.size(); ++i) {
    out.push_back(
        window_positions(c, input[i + 2], a.padding[i], high_padding(a, i), window(a, i), a.stride[i]));
  }
  return out;
}

Conv::Attrs general_form(const ConvSteps& a, Dims size) {
  const std::vector<int64_t> low(a.padding.begin(), a.padding.begin() + ptrdiff_t(a.stride.size()));
  return {a.stride, low, a.dilation, std::vector<int64_t>(a.stride.size(), 1), a.groups, std::move(size)};
}

Dims spatial(const Shape& s) { return Dims(s.dims().begin() + 2, s.dims().end()); }

void require_operands(Infer& c, int axes) {
  c.same_dtype({0, 1});
  c.require_numeric(0);
  c.require_rank(0, axes + 2);
  c.require_rank(1, axes + 2);
}

// Channels that a weight [Co, Ci/groups, ..] joins; `input` and `output` say what is compared in messages.
void check_channels(Infer& c, const ConvSteps& a, Dim inputs, Dim outputs, const Dims& weight) {
  const Dim taken = weight[1] * Dim(a.groups);
  if (decide_equal(inputs, taken) == false)
    c.fail("the input has ", inputs, " channels; the weight with groups ", a.groups, " takes ", taken);
  c.same(inputs, taken, "channels of input and weight");
  const Dim rest = mod(weight[0], a.groups);
  if (decide_equal(rest, 0) == false)
    c.fail("the weight has ", weight[0], " output channels, not divisible by groups ", a.groups);
  c.same(rest, 0, "output channels modulo groups and 0");
  c.same(outputs, weight[0], "channels of the weight and of the result");
}

}  // namespace

namespace detail {

Shapes infer_conv(Infer& c, ConvAttrs& a, int axes) {
  require_operands(c, axes);
  const Dims &x = c.in(0).dims(), &w = c.in(1).dims();
  complete_steps(c, a, w);
  complete_padding(c, a, axes);
  check_channels(c, a, x[1], w[0], w);
  Dims dims{x[0], w[0]};
  for (const Dim d : positions(c, a, x)) dims.push_back(d);
  return {c.in(0).with_dims(std::move(dims))};
}

Exprs decompose_conv(const Lower& c, const ConvAttrs& a) {
  return {conv(c.in(0), c.in(1), general_form(a, spatial(c.out())))};
}

std::vector<OpSample<ConvAttrs>> conv_samples(int axes) {
  if (axes == 1) {
    return {{{}, {"f32[2,3,7]", "f32[4,3,3]"}},
            {{{{4}, {2}, {3}, {1}, 1}}, {"f64[1,2,5]", "f64[3,2,4]"}},
            {{{{2}, {1}, {2, 0}, {2}, 2}}, {"f32[1,4,5]", "f32[2,2,2]"}},
            {{}, {"f32[0,2,3]", "f32[1,2,2]"}},
            {{{{1}}}, {"f16[1,1,1]", "f16[1,1,1]"}},
            {{{{3}, {1}, {1}}}, {"c64[1,2,4]", "c64[2,2,3]"}}};
  }
  if (axes == 2) {
    return {{{}, {"f32[2,3,5,4]", "f32[2,3,3,2]"}},
            {{{{4, 3}, {3, 2}, {0, 1}, {2, 2}, 2}}, {"f64[1,4,8,7]", "f64[2,2,4,3]"}},
            {{{{2, 2}, {1}, {1, 0, 0, 2}}}, {"f32[1,1,3,3]", "f32[1,1,2,2]"}},
            {{{{2, 1}, {1, 2}, {2, 2}, {2, 1}, 2}}, {"f32[1,4,5,3]", "f32[4,2,2,1]"}},
            {{}, {"f32[0,1,2,2]", "f32[1,1,2,2]"}},
            {{}, {"bf16[1,1,1,1]", "bf16[1,1,1,1]"}},
            {{{{2}, {2}}}, {"i32[1,2,4,4]", "i32[1,2,2,2]"}}};
  }
  return {{{}, {"f32[1,2,3,3,2]", "f32[2,2,2,2,2]"}},
          {{{{2, 3, 2}, {1, 2, 1}, {1, 0, 1}}}, {"f64[1,1,2,4,2]", "f64[2,1,2,3,2]"}},
          {{{{1}, {1}, {0}, {1}, 2}}, {"f32[2,2,1,2,1]", "f32[2,1,1,1,1]"}},
          {{}, {"f32[0,1,2,2,2]", "f32[1,1,1,2,1]"}},
          {{{{2}, {1}, {1}, {2}}}, {"f16[1,1,1,1,1]", "f16[1,1,2,2,2]"}}};
}

Shapes infer_conv_transpose(Infer& c, ConvTransposeAttrs& a, int axes) {
  require_operands(c, axes);
  const Dims &x = c.in(0).dims(), &w = c.in(1).dims();
  complete_steps(c, a, w);
  complete_padding(c, a, axes);
  complete_list(c, a.output_padding, "output_padding", axes, 0, 0);
  const Dim outputs = w[1] * Dim(a.groups);
  c.same(x[1], w[0], "channels of x and w");
  const Dim rest = mod(w[0], a.groups);
  if (decide_equal(rest, 0) == false)
    c.fail("w: ", c.in(1), " has ", w[0], " input channels, not divisible by groups ", a.groups);
  c.same(rest, 0, "input channels modulo groups and 0");
  Dims dims{x[0], outputs};
  for (size_t i = 0; i < size_t(axes); ++i) {
    if (a.output_padding[i] >= std::max(a.stride[i], a.dilation[i])) {
      c.fail("output_padding ", a.output_padding, " must be smaller than stride ", a.stride, " or dilation ",
             a.dilation);
    }
    const int64_t more = window(a, i) - a.stride[i] - a.padding[i] - high_padding(a, i) + a.output_padding[i];
    const Dim spread = x[i + 2] * Dim(a.stride[i]);
    if (spread.is_static() && spread.value() + more < 0)
      c.fail("padding ", a.padding, " leaves nothing of x: ", c.in(0));
    dims.push_back(shifted(spread, more));
  }
  return {c.in(0).with_dims(std::move(dims))};
}

// y[i stride + k dilation - padding] in the general form: o - k dilation = i stride - padding.
Exprs decompose_conv_transpose(const Lower& c, const ConvTransposeAttrs& a) {
  Conv::Attrs general = general_form(a, spatial(c.out()));
  std::swap(general.stride, general.input_dilation);
  for (int64_t& d : general.dilation) d = -d;
  for (int64_t& p : general.padding) p = -p;
  return {conv(c.in(0), swap_channels(c.in(1), a.groups), general)};
}

std::vector<OpSample<ConvTransposeAttrs>> conv_transpose_samples(int axes) {
  if (axes == 1) {
    return {{{}, {"f32[2,3,4]", "f32[3,2,3]"}},
            {{{{4}, {3}, {1}, {1}, 1}, {2}}, {"f64[1,2,3]", "f64[2,3,4]"}},
            {{{{2}, {2}, {1, 0}, {2}, 2}, {1}}, {"f32[1,4,3]", "f32[4,1,2]"}},
            {{}, {"f32[0,1,3]", "f32[1,1,2]"}},
            {{}, {"f16[1,1,1]", "f16[1,1,1]"}}};
  }
  if (axes == 2) {
    return {{{}, {"f32[1,2,3,2]", "f32[2,2,2,3]"}},
            {{{{4, 3}, {3, 2}, {0, 1}, {2, 2}, 2}, {1, 1}}, {"f64[1,4,2,3]", "f64[4,1,4,3]"}},
            {{{{2, 1}, {1, 2}, {1, 0}}}, {"f32[2,1,3,3]", "f32[1,2,2,1]"}},
            {{}, {"f32[0,1,2,2]", "f32[1,1,2,2]"}},
            {{}, {"bf16[1,1,1,1]", "bf16[1,1,1,1]"}}};
  }
  return {{{}, {"f32[1,2,2,1,2]", "f32[2,1,2,2,1]"}},
          {{{{1, 2, 2}, {1, 2, 1}, {0, 1, 0}}, {0, 1, 0}}, {"f64[1,1,2,2,2]", "f64[1,2,1,2,2]"}},
          {{{{1}, {1}, {0}, {1}, 2}}, {"f32[2,2,1,2,1]", "f32[2,1,1,1,1]"}},
          {{}, {"f32[0,1,1,1,1]", "f32[1,1,1,2,1]"}},
          {{}, {"f16[1,1,1,1,1]", "f16[1,1,2,2,2]"}}};
}

}  // namespace detail

Shapes Conv2dBackwardInput::infer(Infer& c, Attrs& a) {
  require_operands(c, 2);
  if (a.x_shape.size() != 4) c.fail("x_shape ", a.x_shape, " must have 4 entries, [N, C, H, W]");
  const Dims &dy = c.in(0).dims(), &w = c.in(1).dims();
  complete_steps(c, a, w);
  complete_padding(c, a, 2);
  check_channels(c, a, a.x_shape[1], dy[1], w);
  c.same(dy[0], a.x_shape[0], "batches of dy and x_shape");
  const Dims size = positions(c, a, a.x_shape);
  for (size_t i = 0; i < 2; ++i) c.same(dy[i + 2], size[i], "spatial sizes of dy and of the convolution");
  return {c.in(0).with_dims(a.x_shape)};
}

Exprs Conv2dBackwardInput::decompose(const Lower& c, const Attrs& a) {
  return {conv_input_gradient(c.in(0), c.in(1), a.x_shape, general_form(a, spatial(c.in(0).shape())))};
}

double Conv2dBackwardInput::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
  return window_operations(in[0], in[1]);
}

std::vector<OpSample<Conv2dBackwardInput::Attrs>> Conv2dBackwardInput::samples() {
  return {{{{}, {1, 2, 4, 3}}, {"f32[1,3,3,2]", "f32[3,2,2,2]"}},
          {{{{3, 2}, {2, 1}, {1, 0}, {1, 2}, 2}, {1, 4, 6, 5}}, {"f64[1,2,3,3]", "f64[2,2,3,2]"}},
          {{{{2}, {3}}, {2, 1, 7, 4}}, {"f32[2,1,2,1]", "f32[1,1,2,2]"}},
          {{{}, {0, 1, 2, 2}}, {"f32[0,1,1,1]", "f32[1,1,2,2]"}},
          {{{}, {1, 1, 1, 1}}, {"f16[1,1,1,1]", "f16[1,1,1,1]"}}};
}

Shapes Conv2dBackwardWeight::infer(Infer& c, Attrs& a) {
  require_operands(c, 2);
  if (a.w_shape.size() != 4) c.fail("w_shape ", a.w_shape, " must have 4 entries, [Co, Ci/groups, kH, kW]");
  const Dims &x = c.in(0).dims(), &dy = c.in(1).dims();
  complete_steps(c, a, a.w_shape);
  complete_padding(c, a, 2);
  check_channels(c, a, x[1], dy[1], a.w_shape);
  c.same(x[0], dy[0], "batches of x and dy");
  const Dims size = positions(c, a, x);
  for (size_t i = 0; i < 2; ++i) c.same(dy[i + 2], size[i], "spatial sizes of dy and of the convolution");
  return {c.in(0).with_dims(a.w_shape)};
}

Exprs Conv2dBackwardWeight::decompose(const Lower& c, const Attrs& a) {
  return {conv_weight_gradient(c.in(0), c.in(1), a.w_shape, general_form(a, spatial(c.in(1).shape())))};
}

double Conv2dBackwardWeight::operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
  return window_operations(in[1], out[0]);
}

std::vector<OpSample<Conv2dBackwardWeight::Attrs>> Conv2dBackwardWeight::samples() {
  return {{{{}, {3, 2, 2, 2}}, {"f32[1,2,4,3]", "f32[1,3,3,2]"}},
          {{{{3, 2}, {2, 1}, {1, 0}, {1, 2}, 2}, {2, 2, 3, 2}}, {"f64[1,4,6,5]", "f64[1,2,3,3]"}},
          {{{{2}, {3}}, {1, 1, 2, 2}}, {"f32[2,1,7,4]", "f32[2,1,2,1]"}},
          {{{}, {1, 1, 2, 2}}, {"f32[0,1,2,2]", "f32[0,1,1,1]"}},
          {{{}, {1, 1, 1, 1}}, {"f16[1,1,1,1]", "f16[1,1,1,1]"}}};
}

namespace {

template <class Op>
Expr make_conv(Expr x, Expr w, ConvSteps steps) {
  return make<Op>(*x.graph, {std::move(steps)}, {x, w});
}

template <class Op>
Expr make_transposed(Expr x, Expr w, ConvSteps steps, Steps output_padding) {
  return make<Op>(*x.graph, {std::move(steps), std::move(output_padding)}, {x, w});
}

}  // namespace

Expr conv1d(Expr x, Expr w, Steps kernel_size, Steps stride, Steps padding, Steps dilation, int64_t groups) {
  return make_conv<Conv1d>(x, w, {kernel_size, stride, padding, dilation, groups});
}
Expr conv2d(Expr x, Expr w, Steps kernel_size, Steps stride, Steps padding, Steps dilation, int64_t groups) {
  return make_conv<Conv2d>(x, w, {kernel_size, stride, padding, dilation, groups});
}
Expr conv3d(Expr x, Expr w, Steps kernel_size, Steps stride, Steps padding, Steps dilation, int64_t groups) {
  return make_conv<Conv3d>(x, w, {kernel_size, stride, padding, dilation, groups});
}
Expr conv_transpose1d(Expr x, Expr w, Steps kernel_size, Steps stride, Steps padding, Steps dilation,
                      Steps output_padding, int64_t groups) {
  return make_transposed<ConvTranspose1d>(x, w, {kernel_size, stride, padding, dilation, groups},
                                          output_padding);
}
Expr conv_transpose2d(Expr x, Expr w, Steps kernel_size, Steps stride, Steps padding, Steps dilation,
                      Steps output_padding, int64_t groups) {
  return make_transposed<ConvTranspose2d>(x, w, {kernel_size, stride, padding, dilation, groups},
                                          output_padding);
}
Expr conv_transpose3d(Expr x, Expr w, Steps kernel_size, Steps stride, Steps padding, Steps dilation,
                      Steps output_padding, int64_t groups) {
  return make_transposed<ConvTranspose3d>(x, w, {kernel_size, stride, padding, dilation, groups},
                                          output_padding);
}
Expr conv2d_backward_input(Expr dy, Expr w, Dims x_shape, Steps kernel_size, Steps stride, Steps padding,
                           Steps dilation, int64_t groups) {
  return make<Conv2dBackwardInput>(
      *dy.graph, {{kernel_size, stride, padding, dilation, groups}, std::move(x_shape)}, {dy, w});
}
Expr conv2d_backward_weight(Expr x, Expr dy, Dims w_shape, Steps kernel_size, Steps stride, Steps padding,
                            Steps dilation, int64_t groups) {
  return make<Conv2dBackwardWeight>(
      *x.graph, {{kernel_size, stride, padding, dilation, groups}, std::move(w_shape)}, {x, dy});
}

}  // namespace rlx::ops
