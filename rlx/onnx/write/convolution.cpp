// Convolutions and pools as nodes of ONNX.
#include <algorithm>
#include <limits>

#include "rlx/lang/operators.h"
#include "rlx/onnx/write/writer.h"
#include "rlx/ops/conv/conv.h"
#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/conv/pool.h"

namespace rlx::onnx {
namespace {

const Shape& type(const Writer& w, ir::Value v) { return w.graph().shape(v); }

template <class Op>
std::vector<file::Attribute> steps(const typename Op::Attrs& a, int axes) {
  std::vector<file::Attribute> out;
  if (!a.stride.empty()) out.push_back(attribute("strides", a.stride));
  if (!a.dilation.empty()) out.push_back(attribute("dilations", a.dilation));
  if (!a.padding.empty()) {
    std::vector<int64_t> pads = a.padding;
    if (int(pads.size()) == axes) pads.insert(pads.end(), a.padding.begin(), a.padding.end());
    out.push_back(attribute("pads", pads));
  }
  out.push_back(attribute("group", int64_t(a.groups)));
  return out;
}

template <class Op>
Names conv(Writer& w, const ir::Node& n) {
  const int axes = n.shapes[0].rank() - 2;
  return {w.node("Conv", {w.name(n.inputs[0]), w.name(n.inputs[1])}, steps<Op>(n.as<Op>(), axes))};
}

template <class Op>
Names conv_transpose(Writer& w, const ir::Node& n) {
  const auto& a = n.as<Op>();
  auto attributes = steps<Op>(a, n.shapes[0].rank() - 2);
  if (!a.output_padding.empty()) attributes.push_back(attribute("output_padding", a.output_padding));
  return {w.node("ConvTranspose", {w.name(n.inputs[0]), w.name(n.inputs[1])}, attributes)};
}

int64_t entry(const std::vector<int64_t>& v, size_t i, int64_t otherwise) {
  return v.empty() ? otherwise : v[i];
}

// Steps of the general form along one axis.
struct Steps {
  int64_t stride = 1, padding = 0, dilation = 1, input_dilation = 1;
  bool is_plain() const { return stride > 0 && dilation > 0 && input_dilation == 1 && padding >= 0; }
};

Steps steps_along(const ops::Conv::Attrs& a, size_t i) {
  return {entry(a.stride, i, 1), entry(a.padding, i, 0), entry(a.dilation, i, 1),
          entry(a.input_dilation, i, 1)};
}

// x with d - 1 zeros between its elements.
Tensor spread(const Tensor& x, int axis, int64_t d) {
  Dims high(size_t(x.rank()) + 1, 0), joined = x.shape().dims();
  high[size_t(axis) + 1] = d - 1;
  joined[size_t(axis)] = x.dim(axis) * Dim(d);
  return x.unsqueeze(axis + 1)
      .pad(Dims(high.size(), 0), high)
      .reshape(joined)
      .narrow(axis, 0, (x.dim(axis) - 1) * Dim(d) + 1);
}

// What runs backwards is turned around, what is spread is filled with zeros, what is cut off is left out: the rest is plain.
//   i e = o s + k d - p;  with d = -|d|: k' = K - 1 - k and p' = p + (K - 1) |d|;  with s and e alike
ir::Graph plain_form(const ops::Conv::Attrs& a, const Shape& x_type, const Shape& k_type,
                     const Shape& y_type) {
  ir::Graph g("conv");
  Tensor x(ir::Expr{&g, g.input("x", x_type)}), k(ir::Expr{&g, g.input("k", k_type)});
  ops::Conv::Attrs plain = a;
  std::vector<int> turned;
  plain.stride.clear(), plain.padding.clear(), plain.dilation.clear(), plain.input_dilation.clear(),
      plain.size.clear();
  for (int axis = 2; axis < x_type.rank(); ++axis) {
    Steps s = steps_along(a, size_t(axis) - 2);
    const int64_t size = x_type.dim(axis).value(), out = y_type.dim(axis).value();
    if (s.dilation < 0) {
      k = k.flip({axis}), s.dilation = -s.dilation;
      s.padding += (k_type.dim(axis).value() - 1) * s.dilation;
    }
    if (s.stride < 0) {
      turned.push_back(axis), s.stride = -s.stride;
      s.padding += (out - 1) * s.stride;
    }
    if (s.input_dilation < 0) {
      x = x.flip({axis}), s.input_dilation = -s.input_dilation;
      s.padding -= (size - 1) * s.input_dilation;
    }
    if (s.input_dilation > 1) x = spread(x, axis, s.input_dilation);
    if (s.padding < 0) {
      const int64_t have = x.dim(axis).value(), cut = std::min(-s.padding, have - 1);
      x = x.narrow(axis, cut, have - cut);
      // Beyond the end there is nothing: one element of it, which counts as 0, stands for that.
      if (cut < -s.padding) x = x * 0.0;
      s.padding = 0;
    }
    plain.stride.push_back(s.stride), plain.padding.push_back(s.padding),
        plain.dilation.push_back(s.dilation);
    plain.size.push_back(out);
  }
  Tensor y = rlx::conv(x, k, plain);
  if (!turned.empty()) y = y.flip(turned);
  g.set_outputs({y});
  return g;
}

// The general form, whose size may leave out windows or reach beyond the input.
Names general_conv(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Conv>();
  const Shape &x = type(w, n.inputs[0]), &k = type(w, n.inputs[1]), &out = n.shapes[0];
  const size_t axes = size_t(x.rank() - 2);
  bool plain = true;
  for (size_t i = 0; i < axes; ++i) {
    const int axis = int(i) + 2;
    if (!a.groups.is_static() || !x.dim(axis).is_static() || !k.dim(axis).is_static() ||
        !out.dim(axis).is_static())
      throw invalid("onnx: a general convolution of sizes that are symbols has no counterpart");
    plain = plain && steps_along(a, i).is_plain();
  }
  if (!plain) return w.inlined(plain_form(a, x, k, out), {w.name(n.inputs[0]), w.name(n.inputs[1])});
  std::vector<int64_t> stride, dilation, low, high, first(axes, 0), end, along;
  for (size_t i = 0; i < axes; ++i) {
    const Steps s = steps_along(a, i);
    const int axis = int(i) + 2;
    stride.push_back(s.stride), dilation.push_back(s.dilation), low.push_back(s.padding);
    // What the last window needs behind the input; a rest that no window reaches needs nothing.
    const int64_t reach = (out.dim(axis).value() - 1) * s.stride + s.dilation * (k.dim(axis).value() - 1) + 1;
    high.push_back(std::max<int64_t>(0, reach - s.padding - x.dim(axis).value()));
    end.push_back(out.dim(axis).value()), along.push_back(axis);
  }
  low.insert(low.end(), high.begin(), high.end());
  const std::string y = w.node("Conv", {w.name(n.inputs[0]), w.name(n.inputs[1])},
                               {attribute("strides", stride), attribute("dilations", dilation),
                                attribute("pads", low), attribute("group", a.groups.value())});
  return {w.node("Slice", {y, w.ints(first), w.ints(end), w.ints(along)})};
}

// What takes no part in a reduction.
double neutral(ops::ReduceOp kind, DType t) {
  const double largest = is_float(t)       ? std::numeric_limits<double>::infinity()
                         : t == DType::i8  ? 127
                         : t == DType::u8  ? 255
                         : t == DType::i16 ? 32767
                                           : 2147483647;
  const double smallest = is_float(t) ? -largest : t == DType::u8 ? 0 : -largest - 1;
  switch (kind) {
    case ops::ReduceOp::max:
      return smallest;
    case ops::ReduceOp::min:
      return largest;
    case ops::ReduceOp::prod:
      return 1;
    default:
      return 0;
  }
}

// By windows: for kinds that ONNX has no pool for.
ir::Graph pool_by_windows(const ops::Pool::Attrs& a, const Shape& type) {
  ir::Graph g("pool");
  Tensor x(ir::Expr{&g, g.input("x", type)});
  const int axes = int(a.kernel_size.size()), first = x.rank() - axes;
  Dims pads(size_t(x.rank()), 0);
  std::vector<int> last;
  for (int i = 0; i < axes; ++i)
    pads[size_t(first + i)] = entry(a.padding, size_t(i), 0), last.push_back(x.rank() + i);
  x = x.pad(pads, pads, neutral(a.kind, type.dtype()));
  const Tensor w =
      rlx::windows(x, {.kernel_size = a.kernel_size, .stride = a.stride.empty() ? a.kernel_size : a.stride});
  g.set_outputs({rlx::reduce(w, {.kind = a.kind, .axes = last, .keep_dim = false})});
  return g;
}

// ONNX pools [N, C, spatial..] of floats: other axes in front are joined to one.
Names pool(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Pool>();
  using ops::ReduceOp;
  const int axes = int(a.kernel_size.size());
  const Shape& x = type(w, n.inputs[0]);
  const bool max = a.kind == ReduceOp::max, mean = a.kind == ReduceOp::mean, sum = a.kind == ReduceOp::sum;
  if ((!max && !mean && !sum) || (!is_float(x.dtype()) && !mean))
    return w.inlined(pool_by_windows(a, x), {w.name(n.inputs[0])});
  const bool reshaped = x.rank() != axes + 2;
  std::string in = w.name(n.inputs[0]);
  if (reshaped) {
    Dims dims{1, 1};
    for (int i = 0; i < x.rank() - axes; ++i) dims[1] = dims[1] * x.dim(i);
    dims.insert(dims.end(), x.dims().end() - axes, x.dims().end());
    in = w.node("Reshape", {in, w.dims(dims)});
  }
  std::vector<int64_t> pads = a.padding;
  pads.resize(size_t(axes), 0);
  const std::vector<int64_t> half = pads;
  pads.insert(pads.end(), half.begin(), half.end());
  std::vector<file::Attribute> attributes{attribute("kernel_shape", a.kernel_size), attribute("pads", pads),
                                          attribute("strides", a.stride.empty() ? a.kernel_size : a.stride)};
  if (!max) attributes.push_back(attribute("count_include_pad", int64_t(a.count_include_pad || sum)));
  std::string y = w.node(max ? "MaxPool" : "AveragePool", {in}, attributes);
  double size = 1;
  for (const int64_t k : a.kernel_size) size *= double(k);
  if (sum) y = w.node("Mul", {y, w.scalar(x.dtype(), size)});
  return {reshaped ? w.node("Reshape", {y, w.dims(n.shapes[0].dims())}) : y};
}

}  // namespace

const std::map<std::string_view, WriteNode>& convolution_writers() {
  static const std::map<std::string_view, WriteNode> kWriters{
      {"conv", general_conv},
      {"conv1d", conv<ops::Conv1d>},
      {"conv2d", conv<ops::Conv2d>},
      {"conv3d", conv<ops::Conv3d>},
      {"conv_transpose1d", conv_transpose<ops::ConvTranspose1d>},
      {"conv_transpose2d", conv_transpose<ops::ConvTranspose2d>},
      {"conv_transpose3d", conv_transpose<ops::ConvTranspose3d>},
      {"pool", pool},
  };
  return kWriters;
}

}  // namespace rlx::onnx
