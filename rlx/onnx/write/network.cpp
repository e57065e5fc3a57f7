// Products, convolutions, pools, norms and softmax as nodes of ONNX.
#include <algorithm>

#include "rlx/onnx/write/writer.h"
#include "rlx/ops/conv/conv.h"
#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/conv/pool.h"
#include "rlx/ops/conv/resize.h"
#include "rlx/ops/fft/fft.h"
#include "rlx/ops/linalg/dot_general.h"
#include "rlx/ops/linalg/einsum.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/reduce/softmax.h"

namespace rlx::onnx {
namespace {

const Shape& type(const Writer& w, ir::Value v) { return w.graph().shape(v); }

// Codes of 8 bits are multiplied as integers.
Names matmul(Writer& w, const ir::Node& n) {
  const DType t = type(w, n.inputs[0]).dtype();
  const bool codes = t == DType::i8 || t == DType::u8;
  return {w.node(codes ? "MatMulInteger" : "MatMul", {w.name(n.inputs[0]), w.name(n.inputs[1])})};
}

Names einsum(Writer& w, const ir::Node& n) {
  Names in;
  for (const ir::Value v : n.inputs) in.push_back(w.name(v));
  return {w.node("Einsum", in, {attribute("equation", n.as<ops::Einsum>().equation)})};
}

// Contraction over any axes, in index notation.
Names dot_general(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::DotGeneral>();
  const int lr = type(w, n.inputs[0]).rank(), rr = type(w, n.inputs[1]).rank();
  std::string left(size_t(lr), '?'), right(size_t(rr), '?'), out;
  char next = 'a';
  const auto pair = [&](const auto& l, const auto& r, bool stays) {
    for (size_t i = 0; i < l.size(); ++i) {
      left[size_t(l[i])] = right[size_t(r[i])] = next;
      if (stays) out.push_back(next);
      ++next;
    }
  };
  pair(a.lhs_batch, a.rhs_batch, true);
  pair(a.lhs_contracting, a.rhs_contracting, false);
  for (std::string* side : {&left, &right}) {
    for (char& c : *side) {
      if (c == '?') out.push_back(c = next++);
    }
  }
  return {w.node("Einsum", {w.name(n.inputs[0]), w.name(n.inputs[1])},
                 {attribute("equation", left + "," + right + "->" + out)})};
}

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

// The general form, as far as it is an ordinary convolution.
Names general_conv(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Conv>();
  const Shape &x = type(w, n.inputs[0]), &k = type(w, n.inputs[1]);
  const size_t axes = size_t(x.rank() - 2);
  const auto entry = [](const std::vector<int64_t>& v, size_t i, int64_t otherwise) {
    return v.empty() ? otherwise : v[i];
  };
  std::vector<int64_t> stride, dilation, low, high;
  for (size_t i = 0; i < axes; ++i) {
    stride.push_back(entry(a.stride, i, 1));
    dilation.push_back(entry(a.dilation, i, 1));
    low.push_back(entry(a.padding, i, 0));
    const int axis = int(i) + 2;
    if (stride[i] < 1 || dilation[i] < 1 || low[i] < 0 || entry(a.input_dilation, i, 1) != 1 ||
        !a.groups.is_static() || !x.dim(axis).is_static())
      throw invalid("onnx: a convolution that runs backwards or spreads its input has no counterpart");
    // What the last window needs behind the input; a rest that no window reaches needs nothing.
    const int64_t reach =
        (n.shapes[0].dim(axis).value() - 1) * stride[i] + dilation[i] * (k.dim(axis).value() - 1) + 1;
    high.push_back(std::max<int64_t>(0, reach - low[i] - x.dim(axis).value()));
  }
  low.insert(low.end(), high.begin(), high.end());
  std::string y = w.node("Conv", {w.name(n.inputs[0]), w.name(n.inputs[1])},
                         {attribute("strides", stride), attribute("dilations", dilation),
                          attribute("pads", low), attribute("group", a.groups.value())});
  std::vector<int64_t> first(axes, 0), end, along;
  for (size_t i = 0; i < axes; ++i)
    end.push_back(n.shapes[0].dim(int(i) + 2).value()), along.push_back(int64_t(i) + 2);
  return {w.node("Slice", {y, w.ints(first), w.ints(end), w.ints(along)})};
}

Names resize(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Resize>();
  const bool linear = a.mode == ops::ResizeMode::linear;
  const std::string coordinates = !linear ? "asymmetric" : a.align_corners ? "align_corners" : "half_pixel";
  return {w.node("Resize", {w.name(n.inputs[0]), "", "", w.dims(n.shapes[0].dims())},
                 {attribute("mode", std::string(linear ? "linear" : "nearest")),
                  attribute("nearest_mode", std::string("floor")),
                  attribute("coordinate_transformation_mode", coordinates)})};
}

Names determinant(Writer& w, const ir::Node& n) { return {w.node("Det", {w.name(n.inputs[0])})}; }

// Real tensors hold the real parts, then the imaginary parts; ONNX holds pairs.
Names fft(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Fft>();
  const Shape& x = type(w, n.inputs[0]);
  if (is_complex(x.dtype())) throw invalid("onnx: transforms of complex numbers have no counterpart");
  const int rank = x.rank();
  const Dim length = floordiv(x.dim(-1), 2);
  Dims split = x.dims();
  split.back() = 2;
  split.push_back(length);
  std::vector<int64_t> perm;
  for (int i = 0; i + 1 < rank; ++i) perm.push_back(i);
  perm.insert(perm.end(), {int64_t(rank), int64_t(rank) - 1});
  const std::string pairs = w.node("Transpose", {w.node("Reshape", {w.name(n.inputs[0]), w.dims(split)})},
                                   {attribute("perm", perm)});
  // In front of the transformed axis stands one of the batch.
  const std::string flat = w.node(
      "Reshape",
      {pairs, w.node("Concat", {w.ints({-1}), w.dim(length), w.ints({2})}, {attribute("axis", int64_t(0))})});
  std::string y = w.node("DFT", {flat, "", w.constant(Literal::of<int64_t>({}, {1}))},
                         {attribute("inverse", int64_t(a.inverse))});
  const std::string size = w.cast(w.dim(length), x.dtype());
  // ONNX divides the inverse by the length.
  if (a.norm == ops::FftNorm::backward && a.inverse) y = w.node("Mul", {y, size});
  if (a.norm == ops::FftNorm::ortho) y = w.node(a.inverse ? "Mul" : "Div", {y, w.node("Sqrt", {size})});
  Dims with_pairs = x.dims();
  with_pairs.back() = length;
  with_pairs.push_back(2);
  const std::string back =
      w.node("Transpose", {w.node("Reshape", {y, w.dims(with_pairs)})}, {attribute("perm", perm)});
  return {w.node("Reshape", {back, w.dims(x.dims())})};
}

Names pool(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Pool>();
  using ops::ReduceOp;
  const int axes = int(a.kernel_size.size());
  const Shape& x = type(w, n.inputs[0]);
  const bool max = a.kind == ReduceOp::max, mean = a.kind == ReduceOp::mean, sum = a.kind == ReduceOp::sum;
  if ((!max && !mean && !sum) || x.rank() != axes + 2)
    throw invalid("onnx: a pool of this kind, or of a tensor with ", x.rank(), " axes, has no counterpart");
  std::vector<int64_t> pads = a.padding;
  pads.resize(size_t(axes), 0);
  const std::vector<int64_t> half = pads;
  pads.insert(pads.end(), half.begin(), half.end());
  std::vector<file::Attribute> attributes{attribute("kernel_shape", a.kernel_size), attribute("pads", pads),
                                          attribute("strides", a.stride.empty() ? a.kernel_size : a.stride)};
  if (!max) attributes.push_back(attribute("count_include_pad", int64_t(a.count_include_pad || sum)));
  const std::string y = w.node(max ? "MaxPool" : "AveragePool", {w.name(n.inputs[0])}, attributes);
  if (!sum) return {y};
  double size = 1;
  for (const int64_t k : a.kernel_size) size *= double(k);
  return {w.node("Mul", {y, w.scalar(x.dtype(), size)})};
}

template <class Op>
Names along_axis(Writer& w, const ir::Node& n) {
  const char* const op = std::is_same_v<Op, ops::Softmax> ? "Softmax" : "LogSoftmax";
  return {w.node(op, {w.name(n.inputs[0])}, {attribute("axis", int64_t(n.as<Op>().axis))})};
}

// The last axis alone has an operator; another one is moved there.
Names layer_norm(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::LayerNorm>();
  const Shape& x = type(w, n.inputs[0]);
  const int rank = x.rank(), axis = a.axis < 0 ? a.axis + rank : a.axis;
  std::vector<int64_t> perm, back;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) perm.push_back(i);
  }
  perm.push_back(axis);
  for (int i = 0; i < rank; ++i) back.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  const bool last = axis == rank - 1;
  Names in{last ? w.name(n.inputs[0])
                : w.node("Transpose", {w.name(n.inputs[0])}, {attribute("perm", perm)})};
  if (n.inputs.size() > 1) {
    for (size_t i = 1; i < n.inputs.size(); ++i) in.push_back(w.name(n.inputs[i]));
  } else {
    in.push_back(w.node("Expand", {w.scalar(x.dtype(), 1), w.dim(x.dim(axis))}));
  }
  const std::string y =
      w.node("LayerNormalization", in, {attribute("axis", int64_t(-1)), attribute("epsilon", a.eps)});
  return {last ? y : w.node("Transpose", {y}, {attribute("perm", back)})};
}

}  // namespace

const std::map<std::string_view, WriteNode>& network_writers() {
  static const std::map<std::string_view, WriteNode> kWriters{
      {"conv", general_conv},
      {"conv1d", conv<ops::Conv1d>},
      {"conv2d", conv<ops::Conv2d>},
      {"conv3d", conv<ops::Conv3d>},
      {"conv_transpose1d", conv_transpose<ops::ConvTranspose1d>},
      {"conv_transpose2d", conv_transpose<ops::ConvTranspose2d>},
      {"conv_transpose3d", conv_transpose<ops::ConvTranspose3d>},
      {"det", determinant},
      {"dot_general", dot_general},
      {"einsum", einsum},
      {"fft", fft},
      {"layer_norm", layer_norm},
      {"log_softmax", along_axis<ops::LogSoftmax>},
      {"matmul", matmul},
      {"pool", pool},
      {"resize", resize},
      {"softmax", along_axis<ops::Softmax>},
  };
  return kWriters;
}

}  // namespace rlx::onnx
