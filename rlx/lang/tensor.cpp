#include "rlx/lang/tensor.h"

#include "rlx/lang/builders/builder.h"
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
#include "rlx/ops/shape/transpose.h"

namespace rlx {
namespace {

ir::Expr swap_last_two(ir::Expr x) {
  if (x.rank() < 2) throw invalid("t: ", x.shape(), " has rank ", x.rank(), "; it must have two or more");
  std::vector<int> perm(size_t(x.rank()));
  for (int i = 0; i < x.rank(); ++i) perm[size_t(i)] = i;
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return ops::transpose(x, std::move(perm));
}

}  // namespace

Tensor Tensor::matmul(const Tensor& rhs, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::matmul(*this, rhs); });
}

Tensor Tensor::mm(const Tensor& rhs, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::matmul(*this, rhs); });
}

Tensor Tensor::neg(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::neg(*this); });
}

Tensor Tensor::abs(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::abs(*this); });
}

Tensor Tensor::exp(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::exp(*this); });
}

Tensor Tensor::expm1(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::expm1(*this); });
}

Tensor Tensor::log(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::log(*this); });
}

Tensor Tensor::log1p(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::log1p(*this); });
}

Tensor Tensor::sqrt(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::sqrt(*this); });
}

Tensor Tensor::rsqrt(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::rsqrt(*this); });
}

Tensor Tensor::sin(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::sin(*this); });
}

Tensor Tensor::cos(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::cos(*this); });
}

Tensor Tensor::tan(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::tan(*this); });
}

Tensor Tensor::atan(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::atan(*this); });
}

Tensor Tensor::tanh(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::tanh(*this); });
}

Tensor Tensor::erf(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::erf(*this); });
}

Tensor Tensor::floor(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::floor(*this); });
}

Tensor Tensor::ceil(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::ceil(*this); });
}

Tensor Tensor::round(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::round(*this); });
}

Tensor Tensor::sign(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::sign(*this); });
}

Tensor Tensor::square(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::square(*this); });
}

Tensor Tensor::relu(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::relu(*this); });
}

Tensor Tensor::sigmoid(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::sigmoid(*this); });
}

Tensor Tensor::silu(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::silu(*this); });
}

Tensor Tensor::gelu(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::gelu(*this); });
}

Tensor Tensor::gelu_approx(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::gelu_approx(*this); });
}

Tensor Tensor::softplus(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::softplus(*this); });
}

Tensor Tensor::activation(ops::Activation kind, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::activation(kind, *this); });
}

Tensor Tensor::clamp(double lo, double hi, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::clamp(*this, lo, hi); });
}

Tensor Tensor::stop_gradient(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::stop_gradient(*this); });
}

Tensor Tensor::cast(DType to, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::cast(*this, to); });
}

Tensor Tensor::max(const Tensor& other, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::max(*this, other); });
}

Tensor Tensor::min(const Tensor& other, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::min(*this, other); });
}

Tensor Tensor::pow(const Tensor& exponent, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::pow(*this, exponent); });
}

Tensor Tensor::pow(double exponent, const Loc& loc) const {
  return build_at(*graph, loc,
                  [&]() -> Tensor { return ops::pow(*this, ops::scalar_like(*this, exponent)); });
}

Tensor Tensor::eq(const Tensor& other, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::equal(*this, other); });
}

Tensor Tensor::lt(const Tensor& other, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::less(*this, other); });
}

Tensor Tensor::gt(const Tensor& other, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::greater(*this, other); });
}

Tensor Tensor::compare(ops::CompareOp kind, const Tensor& other, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::compare(kind, *this, other); });
}

Tensor Tensor::where(const Tensor& a, const Tensor& b, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::where(*this, a, b); });
}

Tensor Tensor::sum(std::vector<int> axes, bool keep_dim, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor {
    return ops::reduce(*this, ops::ReduceOp::sum, std::move(axes), keep_dim);
  });
}

Tensor Tensor::mean(std::vector<int> axes, bool keep_dim, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor {
    return ops::reduce(*this, ops::ReduceOp::mean, std::move(axes), keep_dim);
  });
}

Tensor Tensor::reduce(ops::ReduceOp kind, std::vector<int> axes, bool keep_dim, const Loc& loc) const {
  return build_at(*graph, loc,
                  [&]() -> Tensor { return ops::reduce(*this, kind, std::move(axes), keep_dim); });
}

Tensor Tensor::cumsum(int axis, bool exclusive, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::cumsum(*this, axis, exclusive); });
}

Tensor Tensor::variance(std::vector<int> axes, bool keep_dim, double correction, const Loc& loc) const {
  return build_at(*graph, loc,
                  [&]() -> Tensor { return ops::variance(*this, std::move(axes), keep_dim, correction); });
}

Tensor Tensor::logsumexp(std::vector<int> axes, bool keep_dim, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::logsumexp(*this, std::move(axes), keep_dim); });
}

Tensor Tensor::softmax(int axis, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::softmax(*this, axis); });
}

Tensor Tensor::log_softmax(int axis, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::log_softmax(*this, axis); });
}

Tensor Tensor::argmax(int axis, bool keep_dim, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::argmax(*this, axis, keep_dim); });
}

Tensor Tensor::argmin(int axis, bool keep_dim, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::argmin(*this, axis, keep_dim); });
}

Tensor Tensor::layer_norm(const Tensor& gamma, const Tensor& beta, double eps, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::layer_norm(*this, gamma, beta, -1, eps); });
}

Tensor Tensor::rms_norm(const Tensor& gamma, const Tensor& beta, double eps, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::rms_norm(*this, gamma, beta, -1, eps); });
}

Tensor Tensor::group_norm(const Tensor& gamma, const Tensor& beta, int64_t num_groups, double eps,
                          const Loc& loc) const {
  return build_at(*graph, loc,
                  [&]() -> Tensor { return ops::group_norm(*this, gamma, beta, num_groups, eps); });
}

Tensor Tensor::layer_norm2d(const Tensor& gamma, const Tensor& beta, double eps, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::layer_norm2d(*this, gamma, beta, eps); });
}

Tensor Tensor::attention(const Tensor& k, const Tensor& v, const Tensor& mask, int64_t num_heads,
                         int64_t head_dim, const Loc& loc) const {
  return build_at(*graph, loc,
                  [&]() -> Tensor { return ops::attention(*this, k, v, mask, num_heads, head_dim); });
}

Tensor Tensor::attention_kind(const Tensor& k, const Tensor& v, int64_t num_heads, int64_t head_dim,
                              ops::MaskKind kind, int64_t window, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor {
    return ops::attention_kind(*this, k, v, num_heads, head_dim, kind, window);
  });
}

Tensor Tensor::attention_bias(const Tensor& k, const Tensor& v, const Tensor& bias, int64_t num_heads,
                              int64_t head_dim, const Loc& loc) const {
  return build_at(*graph, loc,
                  [&]() -> Tensor { return ops::attention_bias(*this, k, v, bias, num_heads, head_dim); });
}

Tensor Tensor::rope(const Tensor& cos, const Tensor& sin, int64_t head_dim, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::rope(*this, cos, sin, head_dim); });
}

Tensor Tensor::rope_n(const Tensor& cos, const Tensor& sin, int64_t head_dim, int64_t n_rot,
                      const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::rope_n(*this, cos, sin, head_dim, n_rot); });
}

Tensor Tensor::reshape(Dims shape, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::reshape(*this, std::move(shape)); });
}

Tensor Tensor::transpose(std::vector<int> perm, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::transpose(*this, std::move(perm)); });
}

Tensor Tensor::permute(std::vector<int> perm, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::transpose(*this, std::move(perm)); });
}

Tensor Tensor::t(const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return swap_last_two(*this); });
}

Tensor Tensor::narrow(int axis, Dim start, Dim len, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::narrow(*this, axis, start, len); });
}

Tensor Tensor::gather(const Tensor& indices, int axis, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::gather(*this, indices, axis); });
}

Tensor Tensor::flip(std::vector<int> axes, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::flip(*this, std::move(axes)); });
}

Tensor Tensor::pad(Dims low, Dims high, double value, const Loc& loc) const {
  return build_at(*graph, loc,
                  [&]() -> Tensor { return ops::pad(*this, std::move(low), std::move(high), value); });
}

Tensor Tensor::expand(Dims shape, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::expand(*this, std::move(shape)); });
}

Tensor Tensor::unsqueeze(int axis, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::unsqueeze(*this, axis); });
}

Tensor Tensor::squeeze(int axis, const Loc& loc) const {
  return build_at(*graph, loc, [&]() -> Tensor { return ops::squeeze(*this, axis); });
}

// The operators, in one place that may look into operands.
struct Arithmetic {
  template <class Op>
  static Tensor apply(const Operand& a, const Operand& b, Op op) {
    ir::Graph& g = a.tensor_ ? *a.tensor_.graph : *b.tensor_.graph;
    return build_at(g, a.loc_, [&]() -> Tensor {
      if (!a.tensor_) return op(ops::scalar_like(b.tensor_, a.number_), b.tensor_);
      if (!b.tensor_) return op(a.tensor_, ops::scalar_like(a.tensor_, b.number_));
      return op(a.tensor_, b.tensor_);
    });
  }
  static Tensor negate(const Operand& a) {
    return build_at(*a.tensor_.graph, a.loc_, [&]() -> Tensor { return ops::neg(a.tensor_); });
  }
};

Tensor operator+(const Operand& a, const Operand& b) { return Arithmetic::apply(a, b, ops::add); }
Tensor operator-(const Operand& a, const Operand& b) { return Arithmetic::apply(a, b, ops::sub); }
Tensor operator*(const Operand& a, const Operand& b) { return Arithmetic::apply(a, b, ops::mul); }
Tensor operator/(const Operand& a, const Operand& b) { return Arithmetic::apply(a, b, ops::div); }
Tensor operator-(const Operand& a) { return Arithmetic::negate(a); }

}  // namespace rlx
