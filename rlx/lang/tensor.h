// Tensors of a trace: values that know their graph, with methods and operators. Nothing is consumed by use.
//
//   const Tensor y = (x.matmul(w) + b).gelu();
//
// Operators mix tensors and numbers on either side; a number becomes a scalar of the tensor's dtype.
#pragma once

#include <source_location>

#include "rlx/ir/graph.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx {

using Loc = std::source_location;

class Operand;

struct Tensor : ir::Expr {
  Tensor() = default;
  Tensor(const ir::Expr& t) : ir::Expr(t) {}  // NOLINT: the same thing with methods

  // Products.
  Tensor matmul(const Tensor& rhs, const Loc& loc = Loc::current()) const;
  Tensor mm(const Tensor& rhs, const Loc& loc = Loc::current()) const;

  // Functions of one element.
  Tensor neg(const Loc& loc = Loc::current()) const;
  Tensor abs(const Loc& loc = Loc::current()) const;
  Tensor exp(const Loc& loc = Loc::current()) const;
  Tensor expm1(const Loc& loc = Loc::current()) const;
  Tensor log(const Loc& loc = Loc::current()) const;
  Tensor log1p(const Loc& loc = Loc::current()) const;
  Tensor sqrt(const Loc& loc = Loc::current()) const;
  Tensor rsqrt(const Loc& loc = Loc::current()) const;
  Tensor sin(const Loc& loc = Loc::current()) const;
  Tensor cos(const Loc& loc = Loc::current()) const;
  Tensor tan(const Loc& loc = Loc::current()) const;
  Tensor atan(const Loc& loc = Loc::current()) const;
  Tensor tanh(const Loc& loc = Loc::current()) const;
  Tensor erf(const Loc& loc = Loc::current()) const;
  Tensor floor(const Loc& loc = Loc::current()) const;
  Tensor ceil(const Loc& loc = Loc::current()) const;
  Tensor round(const Loc& loc = Loc::current()) const;
  Tensor sign(const Loc& loc = Loc::current()) const;
  Tensor square(const Loc& loc = Loc::current()) const;
  Tensor relu(const Loc& loc = Loc::current()) const;
  Tensor sigmoid(const Loc& loc = Loc::current()) const;
  Tensor silu(const Loc& loc = Loc::current()) const;
  Tensor gelu(const Loc& loc = Loc::current()) const;
  Tensor gelu_approx(const Loc& loc = Loc::current()) const;
  Tensor softplus(const Loc& loc = Loc::current()) const;
  Tensor activation(ops::Activation kind, const Loc& loc = Loc::current()) const;
  Tensor clamp(double lo, double hi, const Loc& loc = Loc::current()) const;
  Tensor stop_gradient(const Loc& loc = Loc::current()) const;
  Tensor cast(DType to, const Loc& loc = Loc::current()) const;

  // Functions of two; a number may stand for either.
  Tensor max(const Tensor& other, const Loc& loc = Loc::current()) const;
  Tensor min(const Tensor& other, const Loc& loc = Loc::current()) const;
  Tensor pow(const Tensor& exponent, const Loc& loc = Loc::current()) const;
  Tensor pow(double exponent, const Loc& loc = Loc::current()) const;
  Tensor eq(const Tensor& other, const Loc& loc = Loc::current()) const;
  Tensor lt(const Tensor& other, const Loc& loc = Loc::current()) const;
  Tensor gt(const Tensor& other, const Loc& loc = Loc::current()) const;
  Tensor compare(ops::CompareOp kind, const Tensor& other, const Loc& loc = Loc::current()) const;
  /// Of a condition: a where it holds, else b.
  Tensor where(const Tensor& a, const Tensor& b, const Loc& loc = Loc::current()) const;

  // Over axes; none listed means all.
  Tensor sum(std::vector<int> axes = {}, bool keep_dim = false, const Loc& loc = Loc::current()) const;
  Tensor mean(std::vector<int> axes = {}, bool keep_dim = false, const Loc& loc = Loc::current()) const;
  Tensor reduce(ops::ReduceOp kind, std::vector<int> axes = {}, bool keep_dim = false,
                const Loc& loc = Loc::current()) const;
  Tensor cumsum(int axis, bool exclusive = false, const Loc& loc = Loc::current()) const;
  Tensor variance(std::vector<int> axes = {}, bool keep_dim = false, double correction = 0,
                  const Loc& loc = Loc::current()) const;
  Tensor logsumexp(std::vector<int> axes = {}, bool keep_dim = false, const Loc& loc = Loc::current()) const;
  Tensor softmax(int axis = -1, const Loc& loc = Loc::current()) const;
  Tensor log_softmax(int axis = -1, const Loc& loc = Loc::current()) const;
  Tensor argmax(int axis, bool keep_dim = false, const Loc& loc = Loc::current()) const;
  Tensor argmin(int axis, bool keep_dim = false, const Loc& loc = Loc::current()) const;

  // Norms over the last axis, or over channels; attention with packed heads; rotary positions.
  Tensor layer_norm(const Tensor& gamma, const Tensor& beta, double eps = 1e-5,
                    const Loc& loc = Loc::current()) const;
  Tensor rms_norm(const Tensor& gamma, const Tensor& beta, double eps = 1e-5,
                  const Loc& loc = Loc::current()) const;
  Tensor group_norm(const Tensor& gamma, const Tensor& beta, int64_t num_groups, double eps = 1e-5,
                    const Loc& loc = Loc::current()) const;
  Tensor layer_norm2d(const Tensor& gamma, const Tensor& beta, double eps = 1e-6,
                      const Loc& loc = Loc::current()) const;
  /// Of queries; an empty mask blocks nothing.
  Tensor attention(const Tensor& k, const Tensor& v, const Tensor& mask, int64_t num_heads, int64_t head_dim,
                   const Loc& loc = Loc::current()) const;
  Tensor attention_kind(const Tensor& k, const Tensor& v, int64_t num_heads, int64_t head_dim,
                        ops::MaskKind kind, int64_t window = 0, const Loc& loc = Loc::current()) const;
  Tensor attention_bias(const Tensor& k, const Tensor& v, const Tensor& bias, int64_t num_heads,
                        int64_t head_dim, const Loc& loc = Loc::current()) const;
  Tensor rope(const Tensor& cos, const Tensor& sin, int64_t head_dim, const Loc& loc = Loc::current()) const;
  Tensor rope_n(const Tensor& cos, const Tensor& sin, int64_t head_dim, int64_t n_rot,
                const Loc& loc = Loc::current()) const;

  // Where elements lie.
  Tensor reshape(Dims shape, const Loc& loc = Loc::current()) const;
  Tensor transpose(std::vector<int> perm, const Loc& loc = Loc::current()) const;
  Tensor permute(std::vector<int> perm, const Loc& loc = Loc::current()) const;
  /// Of a matrix, or a stack of them: the last two axes swapped.
  Tensor t(const Loc& loc = Loc::current()) const;
  Tensor narrow(int axis, Dim start, Dim len, const Loc& loc = Loc::current()) const;
  /// Rows of a table by index.
  Tensor gather(const Tensor& indices, int axis = 0, const Loc& loc = Loc::current()) const;
  Tensor flip(std::vector<int> axes, const Loc& loc = Loc::current()) const;
  Tensor pad(Dims low, Dims high, double value = 0, const Loc& loc = Loc::current()) const;
  Tensor expand(Dims shape, const Loc& loc = Loc::current()) const;
  Tensor unsqueeze(int axis, const Loc& loc = Loc::current()) const;
  Tensor squeeze(int axis, const Loc& loc = Loc::current()) const;

  friend Tensor operator+(const Operand& a, const Operand& b);
  friend Tensor operator-(const Operand& a, const Operand& b);
  friend Tensor operator*(const Operand& a, const Operand& b);
  friend Tensor operator/(const Operand& a, const Operand& b);
  friend Tensor operator-(const Operand& a);
};

/// A tensor or a number in an expression, with the place where it was written.
class Operand {
 public:
  Operand(const Tensor& t, const Loc& loc = Loc::current()) : tensor_(t), loc_(loc) {}  // NOLINT
  Operand(double v, const Loc& loc = Loc::current()) : number_(v), loc_(loc) {}         // NOLINT

 private:
  friend struct Arithmetic;
  ir::Expr tensor_;  // empty: the number
  double number_ = 0;
  Loc loc_;
};

using Tensors = std::vector<Tensor>;

}  // namespace rlx
