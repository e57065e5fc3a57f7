// Convolutions over one to three axes and their gradients, in f32.
//
// Every operator becomes a ConvShape and a pass. The zeros behind x are those that give the wanted number of
// positions, so that a remainder that no window reaches, or positions beyond the last window, are negative
// padding.
#include "rlx/backend/cpu/kernels/conv/conv.h"

#include <cstring>

#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/nodes/conv_packing.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/conv/conv_nd.h"

namespace rlx::cpu {
namespace {

int axes_of(const Arg& x) { return x.shape.rank() - 2; }

Extents spatial(const Arg& x) {
  Extents out{1, 1, 1};
  const int axes = axes_of(x);
  for (int i = 0; i < axes; ++i) out[size_t(3 - axes + i)] = x.shape.dim(i + 2).value();
  return out;
}

Extents spread(const std::vector<int64_t>& list, int axes, int64_t fill) {
  Extents out{fill, fill, fill};
  for (int i = 0; i < axes; ++i) out[size_t(3 - axes + i)] = list[size_t(i)];
  return out;
}

// A convolution from `input` to `output`, whichever of them is computed.
ConvShape shape_between(const Arg& input, const Arg& output, const Extents& kernel, const Extents& stride,
                        const Extents& dilation, const Extents& low, int64_t groups) {
  ConvShape s{.batch = input.shape.dim(0).value(), .groups = groups};
  s.in_channels = input.shape.dim(1).value();
  s.out_channels = output.shape.dim(1).value();
  s.size = spatial(input);
  s.kernel = kernel;
  s.stride = stride;
  s.dilation = dilation;
  s.low = low;
  const Extents out = spatial(output);
  for (size_t i = 0; i < 3; ++i)
    s.high[i] = (out[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 - s.size[i] - low[i];
  return s;
}

ConvShape shape_between(const Arg& input, const Arg& output, const Extents& kernel, const ops::ConvSteps& a) {
  const int axes = axes_of(input);
  return shape_between(input, output, kernel, spread(a.stride, axes, 1), spread(a.dilation, axes, 1),
                       spread(a.padding, axes, 0), a.groups);
}

bool empty(const Request& r) {
  return r.in[0].shape.elements() == 0 || r.in[1].shape.elements() == 0 || r.out[0].shape.elements() == 0;
}

// A sum of nothing.
std::unique_ptr<Step> zeros(const Arg& y) {
  return make_step(
      [bytes = size_t(y.shape.size_bytes())](const Launch& l) { std::memset(l.out[0], 0, bytes); });
}

const float* f32(const std::byte* p) { return reinterpret_cast<const float*>(p); }

Conv product(const ConvPlan& plan, const PackedConvWeights* weights, const Launch& l) {
  Conv c{.plan = &plan, .weights = weights};
  (plan.pass() == ConvPass::forward ? c.x : c.dy) = f32(l.in[0]);
  c.out = reinterpret_cast<float*>(l.out[0]);
  return c;
}

// Operand 0 with the weights of operand 1.
std::unique_ptr<Step> prepare_product(const Request& r, const ConvShape& shape, ConvPass pass, bool swapped) {
  const auto plan = std::make_shared<const ConvPlan>(shape, pass);
  const size_t workspace = conv_workspace({.plan = plan.get()}, r.threads);
  if (!r.in[1].fixed) {
    const size_t weights = (PackedConvWeights::bytes(*plan) + 63) / 64 * 64;
    return make_step(
        [plan, swapped, weights](const Launch& l) {
          PackedConvWeights packed(*plan, l.workspace);
          packed.pack(l.team, f32(l.in[1]), swapped);
          conv(l.team, product(*plan, &packed, l), l.workspace + weights);
        },
        weights + workspace);
  }
  auto step = make_step(
      [plan](const Launch& l) {
        const auto* weights = static_cast<const FixedConvWeights*>(l.packed[0]);
        conv(l.team, product(*plan, &weights->packed, l), l.workspace);
      },
      workspace, {conv_packing(plan, 1, swapped)});
  step->note = "packed weights";
  return step;
}

Support accepts(const Request& r) {
  if (const Support s = all_of(r, DType::f32); !s) return s;
  return all_row_major(r);
}

template <class Op>
std::unique_ptr<Step> prepare_forward(const Request& r) {
  if (empty(r)) return zeros(r.out[0]);
  const ConvShape s = shape_between(r.in[0], r.out[0], spatial(r.in[1]), r.node.as<Op>());
  return prepare_product(r, s, ConvPass::forward, false);
}

// Also the transposed convolution, whose input is the output of the convolution that it is the gradient of.
template <class Op>
std::unique_ptr<Step> prepare_input_gradient(const Request& r) {
  if (empty(r)) return zeros(r.out[0]);
  const ConvShape s = shape_between(r.out[0], r.in[0], spatial(r.in[1]), r.node.as<Op>());
  return prepare_product(r, s, ConvPass::backward_data, false);
}

std::unique_ptr<Step> prepare_weight_gradient(const Request& r) {
  if (empty(r)) return zeros(r.out[0]);
  const ConvShape s =
      shape_between(r.in[0], r.in[1], spatial(r.out[0]), r.node.as<ops::Conv2dBackwardWeight>());
  const auto plan = std::make_shared<const ConvPlan>(s, ConvPass::backward_weights);
  return make_step(
      [plan](const Launch& l) {
        Conv c{.plan = plan.get(), .x = f32(l.in[0]), .dy = f32(l.in[1])};
        c.out = reinterpret_cast<float*>(l.out[0]);
        conv(l.team, c, l.workspace);
      },
      conv_workspace({.plan = plan.get()}, r.threads));
}

// ---- the general form ----

// Steps of one place need no direction.
Extents kernel_steps(const std::vector<int64_t>& dilation, const Arg& w, int64_t sign) {
  Extents out = spread(dilation, axes_of(w), 1);
  const Extents kernel = spatial(w);
  for (size_t i = 0; i < 3; ++i) out[i] = kernel[i] == 1 ? 1 : out[i] * sign;
  for (int i = 0; i < 3 - axes_of(w); ++i) out[size_t(i)] = 1;
  return out;
}

bool all_positive(const Extents& e) { return e[0] > 0 && e[1] > 0 && e[2] > 0; }
bool all_one(const std::vector<int64_t>& list) {
  for (const int64_t v : list) {
    if (v != 1) return false;
  }
  return true;
}

bool is_forward(const Request& r) {
  const auto& a = r.node.as<ops::Conv>();
  return all_one(a.input_dilation) && all_positive(spread(a.stride, axes_of(r.in[0]), 1)) &&
         all_positive(kernel_steps(a.dilation, r.in[1], 1));
}

// o + k |dilation| ... : the gradient of a convolution with input_dilation as its stride.
bool is_transposed(const Request& r) {
  const auto& a = r.node.as<ops::Conv>();
  return all_one(a.stride) && all_positive(spread(a.input_dilation, axes_of(r.in[0]), 1)) &&
         all_positive(kernel_steps(a.dilation, r.in[1], -1));
}

Support accepts_general(const Request& r) {
  if (const Support s = accepts(r); !s) return s;
  if (is_forward(r) || is_transposed(r)) return Support::yes();
  const auto& a = r.node.as<ops::Conv>();
  return Support::no("no pass has stride ", a.stride, ", dilation ", a.dilation, " and input_dilation ",
                     a.input_dilation);
}

std::unique_ptr<Step> prepare_general(const Request& r) {
  if (empty(r)) return zeros(r.out[0]);
  const auto& a = r.node.as<ops::Conv>();
  const int axes = axes_of(r.in[0]);
  const Extents kernel = spatial(r.in[1]);
  Extents low = spread(a.padding, axes, 0);
  if (is_forward(r)) {
    const ConvShape s = shape_between(r.in[0], r.out[0], kernel, spread(a.stride, axes, 1),
                                      kernel_steps(a.dilation, r.in[1], 1), low, a.groups.value());
    return prepare_product(r, s, ConvPass::forward, false);
  }
  for (int64_t& p : low) p = -p;
  const ConvShape s = shape_between(r.out[0], r.in[0], kernel, spread(a.input_dilation, axes, 1),
                                    kernel_steps(a.dilation, r.in[1], -1), low, a.groups.value());
  return prepare_product(r, s, ConvPass::backward_data, true);
}

// ---- the gradient of weights as derivatives write it: images and gradients with batch and channels
// exchanged ----

// x with its first two axes exchanged, so that it is row-major.
Arg exchanged(const Arg& x) {
  Arg y = x;
  Dims dims = x.shape.dims();
  std::swap(dims[0], dims[1]);
  y.shape = x.shape.with_dims(dims);
  std::swap(y.layout.strides[0], y.layout.strides[1]);
  return y;
}

Support accepts_exchanged(const Request& r) {
  if (const Support s = all_of(r, DType::f32); !s) return s;
  if (empty(r)) return Support::no("an operand is empty");
  const auto& a = r.node.as<ops::Conv>();
  if (!is_forward(r)) return Support::no("no plain convolution");
  if (a.groups != Dim(1)) return Support::no(a.groups, " groups");
  const Extents k = spatial(r.in[1]), y = spatial(r.out[0]);
  if (k[0] * k[1] * k[2] < y[0] * y[1] * y[2]) return Support::no("the kernel is smaller than the result");
  for (size_t i = 0; i < 2; ++i) {
    if (!exchanged(r.in[i]).is_row_major()) return Support::no("operand ", i, " lies at ", r.in[i].layout);
  }
  return Support::yes();
}

std::unique_ptr<Step> prepare_exchanged(const Request& r) {
  const auto& a = r.node.as<ops::Conv>();
  const int axes = axes_of(r.in[0]);
  const Arg x = exchanged(r.in[0]), dy = exchanged(r.in[1]), dw = exchanged(r.out[0]);
  const ConvShape s = shape_between(x, dy, spatial(dw), kernel_steps(a.dilation, r.in[1], 1),
                                    spread(a.stride, axes, 1), spread(a.padding, axes, 0), 1);
  const auto plan = std::make_shared<const ConvPlan>(s, ConvPass::backward_weights);
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  StridedCopy turn{.rank = 3, .element_bytes = 4};
  const int64_t sizes[] = {s.in_channels, s.out_channels, taps};
  const int64_t from[] = {taps, s.in_channels * taps, 1}, to[] = {s.out_channels * taps, taps, 1};
  for (int i = 0; i < 3; ++i)
    turn.size[i] = sizes[i], turn.from_stride[i] = from[i], turn.to_stride[i] = to[i];
  const size_t result = (size_t(dw.shape.size_bytes()) + 63) / 64 * 64;
  auto step = make_step(
      [plan, turn, result](const Launch& l) {
        Conv c{.plan = plan.get(), .x = f32(l.in[0]), .dy = f32(l.in[1])};
        c.out = reinterpret_cast<float*>(l.workspace);
        conv(l.team, c, l.workspace + result);
        StridedCopy now = turn;
        now.from = l.workspace;
        now.to = l.out[0];
        strided_copy(l.team, now);
      },
      result + conv_workspace({.plan = plan.get()}, r.threads));
  step->note = "gradient of weights";
  return step;
}

template <class Op>
void add_forward(KernelTable& table) {
  table.add<Op>({"conv_f32", accepts, prepare_forward<Op>});
  table.add<Op>(wide_kernel<accepts, prepare_forward<Op>>("conv_wide"));
}
template <class Op>
void add_input_gradient(KernelTable& table) {
  table.add<Op>({"conv_input_gradient_f32", accepts, prepare_input_gradient<Op>});
  table.add<Op>(wide_kernel<accepts, prepare_input_gradient<Op>>("conv_input_gradient_wide"));
}

}  // namespace

void add_conv(KernelTable& table) {
  add_forward<ops::Conv1d>(table);
  add_forward<ops::Conv2d>(table);
  add_forward<ops::Conv3d>(table);
  add_input_gradient<ops::ConvTranspose1d>(table);
  add_input_gradient<ops::ConvTranspose2d>(table);
  add_input_gradient<ops::ConvTranspose3d>(table);
  add_input_gradient<ops::Conv2dBackwardInput>(table);
  table.add<ops::Conv2dBackwardWeight>({"conv_weight_gradient_f32", accepts, prepare_weight_gradient});
  table.add<ops::Conv>({"conv_weight_gradient_f32", accepts_exchanged, prepare_exchanged});
  table.add<ops::Conv>({"conv_general_f32", accepts_general, prepare_general});
  table.add<ops::Conv>(wide_kernel<accepts_general, prepare_general>("conv_general_wide"));
  table.add<ops::Conv2dBackwardWeight>(
      wide_kernel<accepts, prepare_weight_gradient>("conv_weight_gradient_wide"));
}

}  // namespace rlx::cpu
