#include "rlx/lang/tensor.h"

#include <algorithm>

#include "rlx/ir/leaves.h"
#include "rlx/lang/apply.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/norm/group_norm.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/extreme.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/reduce/variance.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/flip.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/slice.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx {

using detail::compose;
using ops::CompareOp;
using ops::ReduceOp;

Tensor::Tensor(const ir::Expr& e) : value_(e.value) {
  if (e) anchor_ = e.graph->anchor();
}

ir::Graph& Tensor::graph() const {
  if (!anchor_) throw invalid("tensor: it is empty; a tensor comes from a Tracer or from an operator");
  if (anchor_->graph == nullptr) {
    throw invalid("tensor: its graph '", anchor_->name,
                  "' is gone; a tensor is of use as long as the graph it was made in");
  }
  return *anchor_->graph;
}

Dim Tensor::dim(int axis) const {
  int i = axis;
  if (!normalize_axis(i, rank())) throw invalid("dim: axis ", axis, " is out of range for ", shape());
  return shape().dim(i);
}

Tensor Tensor::matmul(const Tensor& rhs, const Loc& loc) const {
  return apply<ops::Matmul>({}, {*this, rhs}, loc);
}
Tensor Tensor::mm(const Tensor& rhs, const Loc& loc) const { return matmul(rhs, loc); }

Tensor Tensor::neg(const Loc& loc) const { return apply<ops::Neg>({}, {*this}, loc); }
Tensor Tensor::abs(const Loc& loc) const { return apply<ops::Abs>({}, {*this}, loc); }
Tensor Tensor::exp(const Loc& loc) const { return apply<ops::Exp>({}, {*this}, loc); }
Tensor Tensor::expm1(const Loc& loc) const { return apply<ops::Expm1>({}, {*this}, loc); }
Tensor Tensor::log(const Loc& loc) const { return apply<ops::Log>({}, {*this}, loc); }
Tensor Tensor::log1p(const Loc& loc) const { return apply<ops::Log1p>({}, {*this}, loc); }
Tensor Tensor::sqrt(const Loc& loc) const { return apply<ops::Sqrt>({}, {*this}, loc); }
Tensor Tensor::rsqrt(const Loc& loc) const { return apply<ops::Rsqrt>({}, {*this}, loc); }
Tensor Tensor::sin(const Loc& loc) const { return apply<ops::Sin>({}, {*this}, loc); }
Tensor Tensor::cos(const Loc& loc) const { return apply<ops::Cos>({}, {*this}, loc); }
Tensor Tensor::tan(const Loc& loc) const { return apply<ops::Tan>({}, {*this}, loc); }
Tensor Tensor::atan(const Loc& loc) const { return apply<ops::Atan>({}, {*this}, loc); }
Tensor Tensor::tanh(const Loc& loc) const { return apply<ops::Tanh>({}, {*this}, loc); }
Tensor Tensor::erf(const Loc& loc) const { return apply<ops::Erf>({}, {*this}, loc); }
Tensor Tensor::floor(const Loc& loc) const { return apply<ops::Floor>({}, {*this}, loc); }
Tensor Tensor::ceil(const Loc& loc) const { return apply<ops::Ceil>({}, {*this}, loc); }
Tensor Tensor::round(const Loc& loc) const { return apply<ops::Round>({}, {*this}, loc); }
Tensor Tensor::sign(const Loc& loc) const { return apply<ops::Sign>({}, {*this}, loc); }
Tensor Tensor::square(const Loc& loc) const { return apply<ops::Mul>({}, {*this, *this}, loc); }
Tensor Tensor::relu(const Loc& loc) const { return apply<ops::Relu>({}, {*this}, loc); }
Tensor Tensor::sigmoid(const Loc& loc) const { return apply<ops::Sigmoid>({}, {*this}, loc); }
Tensor Tensor::silu(const Loc& loc) const { return apply<ops::Silu>({}, {*this}, loc); }
Tensor Tensor::gelu(const Loc& loc) const { return apply<ops::Gelu>({}, {*this}, loc); }
Tensor Tensor::gelu_approx(const Loc& loc) const { return apply<ops::GeluApprox>({}, {*this}, loc); }
Tensor Tensor::softplus(const Loc& loc) const { return apply<ops::Softplus>({}, {*this}, loc); }

Tensor Tensor::activation(ops::Activation kind, const Loc& loc) const {
  return compose("activation", {*this}, loc, [&](const auto& in) { return ops::activation(kind, in[0]); });
}
Tensor Tensor::clamp(double lo, double hi, const Loc& loc) const {
  return apply<ops::Clamp>({.lo = lo, .hi = hi}, {*this}, loc);
}
Tensor Tensor::stop_gradient(const Loc& loc) const { return apply<ops::StopGradient>({}, {*this}, loc); }
Tensor Tensor::cast(DType to, const Loc& loc) const { return apply<ops::Cast>({.to = to}, {*this}, loc); }

Tensor Tensor::max(const Operand& other, const Loc& loc) const {
  return apply<ops::Max>({}, {*this, other}, loc);
}
Tensor Tensor::min(const Operand& other, const Loc& loc) const {
  return apply<ops::Min>({}, {*this, other}, loc);
}
Tensor Tensor::pow(const Operand& exponent, const Loc& loc) const {
  return apply<ops::Pow>({}, {*this, exponent}, loc);
}
Tensor Tensor::rem(const Operand& divisor, const Loc& loc) const {
  return apply<ops::Rem>({}, {*this, divisor}, loc);
}
Tensor Tensor::compare(CompareOp kind, const Operand& other, const Loc& loc) const {
  return apply<ops::Compare>({.kind = kind}, {*this, other}, loc);
}
Tensor Tensor::eq(const Operand& other, const Loc& loc) const { return compare(CompareOp::eq, other, loc); }
Tensor Tensor::ne(const Operand& other, const Loc& loc) const { return compare(CompareOp::ne, other, loc); }
Tensor Tensor::lt(const Operand& other, const Loc& loc) const { return compare(CompareOp::lt, other, loc); }
Tensor Tensor::le(const Operand& other, const Loc& loc) const { return compare(CompareOp::le, other, loc); }
Tensor Tensor::gt(const Operand& other, const Loc& loc) const { return compare(CompareOp::gt, other, loc); }
Tensor Tensor::ge(const Operand& other, const Loc& loc) const { return compare(CompareOp::ge, other, loc); }
Tensor Tensor::where(const Operand& a, const Operand& b, const Loc& loc) const {
  return apply<ops::Where>({}, {*this, a, b}, loc);
}

Tensor Tensor::sum(std::vector<int> axes, bool keep_dim, const Loc& loc) const {
  return reduce(ReduceOp::sum, std::move(axes), keep_dim, loc);
}
Tensor Tensor::mean(std::vector<int> axes, bool keep_dim, const Loc& loc) const {
  return reduce(ReduceOp::mean, std::move(axes), keep_dim, loc);
}
Tensor Tensor::reduce(ReduceOp kind, std::vector<int> axes, bool keep_dim, const Loc& loc) const {
  return apply<ops::Reduce>({.kind = kind, .axes = std::move(axes), .keep_dim = keep_dim}, {*this}, loc);
}
Tensor Tensor::cumsum(int axis, bool exclusive, const Loc& loc) const {
  return apply<ops::Cumsum>({.axis = axis, .exclusive = exclusive}, {*this}, loc);
}
Tensor Tensor::variance(std::vector<int> axes, bool keep_dim, double correction, const Loc& loc) const {
  return apply<ops::Variance>({.axes = std::move(axes), .keep_dim = keep_dim, .correction = correction},
                              {*this}, loc);
}
Tensor Tensor::logsumexp(std::vector<int> axes, bool keep_dim, const Loc& loc) const {
  return apply<ops::Logsumexp>({.axes = std::move(axes), .keep_dim = keep_dim}, {*this}, loc);
}
Tensor Tensor::softmax(int axis, const Loc& loc) const {
  return apply<ops::Softmax>({.axis = axis}, {*this}, loc);
}
Tensor Tensor::log_softmax(int axis, const Loc& loc) const {
  return apply<ops::LogSoftmax>({.axis = axis}, {*this}, loc);
}
Tensor Tensor::argmax(int axis, bool keep_dim, const Loc& loc) const {
  return compose("argmax", {*this}, loc, [&](const auto& in) { return ops::argmax(in[0], axis, keep_dim); });
}
Tensor Tensor::argmin(int axis, bool keep_dim, const Loc& loc) const {
  return compose("argmin", {*this}, loc, [&](const auto& in) { return ops::argmin(in[0], axis, keep_dim); });
}

Tensor Tensor::layer_norm(const Tensor& gamma, const Tensor& beta, double eps, const Loc& loc) const {
  return apply<ops::LayerNorm>({.axis = -1, .eps = eps}, {*this, gamma, beta}, loc);
}
Tensor Tensor::rms_norm(const Tensor& gamma, const Tensor& beta, double eps, const Loc& loc) const {
  return apply<ops::RmsNorm>({.axis = -1, .eps = eps}, {*this, gamma, beta}, loc);
}
Tensor Tensor::rms_norm(const Tensor& gamma, double eps, const Loc& loc) const {
  return apply<ops::RmsNorm>({.axis = -1, .eps = eps}, {*this, gamma}, loc);
}
Tensor Tensor::group_norm(const Tensor& gamma, const Tensor& beta, int64_t num_groups, double eps,
                          const Loc& loc) const {
  return compose("group_norm", {*this, gamma, beta}, loc,
                 [&](const auto& in) { return ops::group_norm(in[0], in[1], in[2], num_groups, eps); });
}
Tensor Tensor::layer_norm2d(const Tensor& gamma, const Tensor& beta, double eps, const Loc& loc) const {
  return apply<ops::LayerNorm2d>({.eps = eps}, {*this, gamma, beta}, loc);
}

Tensor Tensor::attention(const Tensor& k, const Tensor& v, const Tensor& mask, int64_t num_heads,
                         int64_t head_dim, const Loc& loc) const {
  return compose("attention", {*this, k, v, mask}, loc, [&](const auto& in) {
    return ops::attention(in[0], in[1], in[2], in[3], num_heads, head_dim);
  });
}
Tensor Tensor::attention_kind(const Tensor& k, const Tensor& v, int64_t num_heads, int64_t head_dim,
                              ops::MaskKind kind, int64_t window, const Loc& loc) const {
  return compose("attention", {*this, k, v}, loc, [&](const auto& in) {
    return ops::attention_kind(in[0], in[1], in[2], num_heads, head_dim, kind, window);
  });
}
Tensor Tensor::attention_bias(const Tensor& k, const Tensor& v, const Tensor& bias, int64_t num_heads,
                              int64_t head_dim, const Loc& loc) const {
  return compose("attention", {*this, k, v, bias}, loc, [&](const auto& in) {
    return ops::attention_bias(in[0], in[1], in[2], in[3], num_heads, head_dim);
  });
}
Tensor Tensor::rope(const Tensor& cos, const Tensor& sin, int64_t head_dim, const Loc& loc) const {
  return compose("rope", {*this, cos, sin}, loc,
                 [&](const auto& in) { return ops::rope(in[0], in[1], in[2], head_dim); });
}
Tensor Tensor::rope_n(const Tensor& cos, const Tensor& sin, int64_t head_dim, int64_t n_rot,
                      const Loc& loc) const {
  return compose("rope", {*this, cos, sin}, loc,
                 [&](const auto& in) { return ops::rope_n(in[0], in[1], in[2], head_dim, n_rot); });
}

Tensor Tensor::reshape(Dims shape, const Loc& loc) const {
  return apply<ops::Reshape>({.shape = std::move(shape)}, {*this}, loc);
}
Tensor Tensor::transpose(std::vector<int> perm, const Loc& loc) const {
  return apply<ops::Transpose>({.perm = std::move(perm)}, {*this}, loc);
}
Tensor Tensor::permute(std::vector<int> perm, const Loc& loc) const {
  return transpose(std::move(perm), loc);
}
Tensor Tensor::t(const Loc& loc) const {
  return compose("t", {*this}, loc, [](const auto& in) {
    const ir::Expr x = in[0];
    if (x.rank() < 2) throw invalid("t: ", x.shape(), " has rank ", x.rank(), "; it must have two or more");
    return ops::swap_last(x);
  });
}
Tensor Tensor::narrow(int axis, Dim start, Dim len, const Loc& loc) const {
  return apply<ops::Narrow>({.axis = axis, .start = start, .len = len}, {*this}, loc);
}
Tensor Tensor::gather(const Tensor& indices, int axis, const Loc& loc) const {
  return apply<ops::Gather>({.axis = axis}, {*this, indices}, loc);
}
Tensor Tensor::flip(std::vector<int> axes, const Loc& loc) const {
  return apply<ops::Flip>({.axes = std::move(axes)}, {*this}, loc);
}
Tensor Tensor::pad(Dims low, Dims high, double value, const Loc& loc) const {
  return apply<ops::Pad>({.low = std::move(low), .high = std::move(high), .value = value}, {*this}, loc);
}
Tensor Tensor::expand(Dims shape, const Loc& loc) const {
  return apply<ops::Expand>({.shape = std::move(shape)}, {*this}, loc);
}
Tensor Tensor::unsqueeze(int axis, const Loc& loc) const {
  return compose("unsqueeze", {*this}, loc, [&](const auto& in) { return ops::unsqueeze(in[0], axis); });
}
Tensor Tensor::squeeze(int axis, const Loc& loc) const {
  return compose("squeeze", {*this}, loc, [&](const auto& in) { return ops::squeeze(in[0], axis); });
}

namespace {

// A border of a part as a place on the axis: negative numbers count from the end, and what is beyond the axis is
// its end.
Dim place_on(const std::optional<Border>& given, Dim otherwise, Dim extent) {
  if (!given) return otherwise;
  if (given->symbol) return *given->symbol;
  const int64_t i = given->number;
  if (!extent.is_static()) return i < 0 ? extent - Dim(-i) : Dim(i);
  return std::clamp<int64_t>(i < 0 ? extent.value() + i : i, 0, extent.value());
}

ir::Expr part_of(ir::Expr x, const std::vector<Slice>& parts) {
  if (int(parts.size()) > x.rank())
    throw invalid("slice: ", parts.size(), " parts for ", x.shape(), "; at most one per axis");
  Dims start(size_t(x.rank()), 0), stop = x.shape().dims();
  std::vector<int64_t> step(size_t(x.rank()), 1);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].step < 1)
      throw invalid("slice: step ", parts[i].step, " on axis ", i,
                    "; it must be 1 or more, and flip turns an axis");
    const Dim extent = x.dim(int(i));
    start[i] = place_on(parts[i].start, 0, extent);
    stop[i] = place_on(parts[i].stop, extent, extent);
    if (start[i].is_static() && stop[i].is_static() && stop[i].value() < start[i].value()) stop[i] = start[i];
    step[i] = parts[i].step;
  }
  return ops::slice(x, std::move(start), std::move(stop), std::move(step));
}

}  // namespace

Tensor Tensor::slice(const std::vector<Slice>& parts, const Loc& loc) const {
  return compose("slice", {*this}, loc, [&](const auto& in) { return part_of(in[0], parts); });
}
Tensor Tensor::operator[](const Slice& part) const { return slice({part}, part.loc); }
Tensor Tensor::operator[](const RowIndex& index) const {
  return compose("index", {*this}, index.loc, [&](const auto& in) {
    const int64_t i = index.row;
    const ir::Expr x = in[0];
    if (x.rank() == 0) throw invalid("index: ", x.shape(), " has no axis to index");
    const Dim extent = x.dim(0);
    if (extent.is_static() && (i >= extent.value() || i < -extent.value()))
      throw invalid("index: ", i, " is out of range for ", x.shape());
    return ops::squeeze(ops::narrow(x, 0, place_on(Border(i), 0, extent), 1), 0);
  });
}

Tensor Tensor::zeros_like(const Loc& loc) const { return full_like(0, loc); }
Tensor Tensor::ones_like(const Loc& loc) const { return full_like(1, loc); }
Tensor Tensor::full_like(double value, const Loc& loc) const {
  return compose("full", {*this}, loc,
                 [&](const auto& in) { return ir::full(*in[0].graph, in[0].shape(), value); });
}

Tensor operator+(const Operand& a, const Operand& b) { return apply<ops::Add>({}, {a, b}, a.loc()); }
Tensor operator-(const Operand& a, const Operand& b) { return apply<ops::Sub>({}, {a, b}, a.loc()); }
Tensor operator*(const Operand& a, const Operand& b) { return apply<ops::Mul>({}, {a, b}, a.loc()); }
Tensor operator/(const Operand& a, const Operand& b) { return apply<ops::Div>({}, {a, b}, a.loc()); }
Tensor operator-(const Operand& a) { return apply<ops::Neg>({}, {a}, a.loc()); }

Tensor operator<(const Operand& a, const Operand& b) {
  return apply<ops::Compare>({.kind = CompareOp::lt}, {a, b}, a.loc());
}
Tensor operator<=(const Operand& a, const Operand& b) {
  return apply<ops::Compare>({.kind = CompareOp::le}, {a, b}, a.loc());
}
Tensor operator>(const Operand& a, const Operand& b) {
  return apply<ops::Compare>({.kind = CompareOp::gt}, {a, b}, a.loc());
}
Tensor operator>=(const Operand& a, const Operand& b) {
  return apply<ops::Compare>({.kind = CompareOp::ge}, {a, b}, a.loc());
}

Tensor& Tensor::operator+=(const Operand& other) {
  return *this = apply<ops::Add>({}, {*this, other}, other.loc());
}
Tensor& Tensor::operator-=(const Operand& other) {
  return *this = apply<ops::Sub>({}, {*this, other}, other.loc());
}
Tensor& Tensor::operator*=(const Operand& other) {
  return *this = apply<ops::Mul>({}, {*this, other}, other.loc());
}
Tensor& Tensor::operator/=(const Operand& other) {
  return *this = apply<ops::Div>({}, {*this, other}, other.loc());
}

}  // namespace rlx
