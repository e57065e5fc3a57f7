// Products, transforms, norms and softmax as nodes of ONNX.
#include "rlx/onnx/write/writer.h"
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
  // A sum of nothing.
  if (type(w, n.inputs[0]).dim(-1) == Dim(0))
    return {w.node("Expand", {w.scalar(n.shapes[0].dtype(), 0), w.dims(n.shapes[0].dims())})};
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
  // Codes of two types meet in the type of the result.
  const bool mixed = type(w, n.inputs[0]).dtype() != type(w, n.inputs[1]).dtype();
  const auto operand = [&](int i) {
    const std::string& x = w.name(n.inputs[size_t(i)]);
    return mixed ? w.cast(x, n.shapes[0].dtype()) : x;
  };
  return {
      w.node("Einsum", {operand(0), operand(1)}, {attribute("equation", left + "," + right + "->" + out)})};
}

// Engines take linear samples of [N, C, height, width] or [N, C, depth, height, width] only: other axes are joined.
Names resize(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Resize>();
  const bool linear = a.mode == ops::ResizeMode::linear;
  const std::string coordinates = !linear ? "asymmetric" : a.align_corners ? "align_corners" : "half_pixel";
  const Shape &x = type(w, n.inputs[0]), &y = n.shapes[0];
  const int axes = a.scale ? x.rank() - 2 : int(a.size.size());
  const bool joined = linear && (x.rank() != axes + 2 || axes == 1);
  const auto pixels = [&](const Shape& s) {
    Dims out{1, 1};
    for (int i = 0; i < s.rank() - axes; ++i) out[1] = out[1] * s.dim(i);
    if (axes == 1) out.emplace_back(1);
    out.insert(out.end(), s.dims().end() - axes, s.dims().end());
    return out;
  };
  const std::string in =
      joined ? w.node("Reshape", {w.name(n.inputs[0]), w.dims(pixels(x))}) : w.name(n.inputs[0]);
  const std::string out = w.node("Resize", {in, "", "", w.dims(joined ? pixels(y) : y.dims())},
                                 {attribute("mode", std::string(linear ? "linear" : "nearest")),
                                  attribute("nearest_mode", std::string("floor")),
                                  attribute("coordinate_transformation_mode", coordinates)});
  return {joined ? w.node("Reshape", {out, w.dims(y.dims())}) : out};
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
      {"det", determinant}, {"dot_general", dot_general}, {"einsum", einsum},
      {"fft", fft},         {"layer_norm", layer_norm},   {"log_softmax", along_axis<ops::LogSoftmax>},
      {"matmul", matmul},   {"resize", resize},           {"softmax", along_axis<ops::Softmax>},
  };
  return kWriters;
}

}  // namespace rlx::onnx
