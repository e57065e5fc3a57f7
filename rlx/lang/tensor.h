// Tensors of a trace: values that know their graph, with methods and operators. Nothing is consumed by use.
//
//   const Tensor y = (x.matmul(w) + b).gelu();
//
// Operators mix tensors and numbers on either side; a number becomes a scalar of the tensor's dtype, and one that
// the dtype cannot hold (0.5 for an integer tensor) is an error. rlx/lang/operators.h has every operator as a
// free function of tensors; the common ones are methods too.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <source_location>

#include "rlx/ir/graph.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx {

using ir::Value;
using ir::Values;
using Loc = std::source_location;

class Operand;

/// A place on an axis: a number, from the end when it is negative, or a symbolic size.
struct Border {
  Border(int64_t place) : number(place) {}  // NOLINT: places are written as numbers
  Border(Dim place) : symbol(place) {}      // NOLINT
  int64_t number = 0;
  std::optional<Dim> symbol;
};

/// Part of an axis: elements start, start + step, ... before stop. Negative numbers count from the end; what is
/// left out reaches to the border.
struct Slice {
  std::optional<Border> start = {}, stop = {};
  int64_t step = 1;
  Loc loc = Loc::current();  // where it was written
};

/// A row of axis 0 by its number, with the place where it was written.
struct RowIndex {
  template <std::integral Int>
  RowIndex(Int i, const Loc& where = Loc::current()) : row(int64_t(i)), loc(where) {}  // NOLINT: x[3]
  int64_t row;
  Loc loc;
};

/// A value of a graph with methods and operators.
class Tensor {
 public:
  /// An empty tensor stands for an operand that is left out; using it for anything else is an error.
  Tensor() = default;
  Tensor(const ir::Expr& e);  // NOLINT: the same thing with methods

  /// Whether it stands for no tensor.
  bool is_empty() const { return anchor_ == nullptr; }
  // clang-format off
  explicit operator bool() const = delete;  // a tensor has no value while a graph is built: use where(), if_else() or while_loop(); is_empty() tells an empty one
  // clang-format on

  // What it is. A tensor outlives no graph: all of this, and every use, is an error once its graph is gone.
  operator ir::Expr() const { return {&graph(), value_}; }  // NOLINT: operator functions take it
  operator Value() const { return graph(), value_; }        // NOLINT: builders take it
  ir::Graph& graph() const;
  const Shape& shape() const { return graph().shape(value_); }
  DType dtype() const { return shape().dtype(); }
  int rank() const { return shape().rank(); }
  Dim dim(int axis) const;

  // Products.
  Tensor matmul(const Tensor& rhs, const Loc& loc = Loc::current()) const;
  /// matmul under its short name.
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
  Tensor max(const Operand& other, const Loc& loc = Loc::current()) const;
  Tensor min(const Operand& other, const Loc& loc = Loc::current()) const;
  Tensor pow(const Operand& exponent, const Loc& loc = Loc::current()) const;
  Tensor rem(const Operand& divisor, const Loc& loc = Loc::current()) const;
  Tensor eq(const Operand& other, const Loc& loc = Loc::current()) const;
  Tensor ne(const Operand& other, const Loc& loc = Loc::current()) const;
  Tensor lt(const Operand& other, const Loc& loc = Loc::current()) const;
  Tensor le(const Operand& other, const Loc& loc = Loc::current()) const;
  Tensor gt(const Operand& other, const Loc& loc = Loc::current()) const;
  Tensor ge(const Operand& other, const Loc& loc = Loc::current()) const;
  Tensor compare(ops::CompareOp kind, const Operand& other, const Loc& loc = Loc::current()) const;
  /// Of a condition: a where it holds, else b.
  Tensor where(const Operand& a, const Operand& b, const Loc& loc = Loc::current()) const;

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
  Tensor rms_norm(const Tensor& gamma, double eps = 1e-5, const Loc& loc = Loc::current()) const;
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
  /// Row i of axis 0, which goes away; negative i count from the end.
  Tensor operator[](const RowIndex& i) const;
  /// Part of axis 0: x[{.start = 1, .stop = 3}], x[{.step = 2}].
  Tensor operator[](const Slice& part) const;
  /// Part of each axis, from the first on: x.slice({{1, 3}, {}, {.step = 2}}).
  Tensor slice(const std::vector<Slice>& parts, const Loc& loc = Loc::current()) const;
  Tensor zeros_like(const Loc& loc = Loc::current()) const;
  Tensor ones_like(const Loc& loc = Loc::current()) const;
  Tensor full_like(double value, const Loc& loc = Loc::current()) const;
  Tensor unsqueeze(int axis, const Loc& loc = Loc::current()) const;
  Tensor squeeze(int axis, const Loc& loc = Loc::current()) const;

  // Arithmetic, element by element with broadcasting.
  friend Tensor operator+(const Operand& a, const Operand& b);
  friend Tensor operator-(const Operand& a, const Operand& b);
  friend Tensor operator*(const Operand& a, const Operand& b);
  friend Tensor operator/(const Operand& a, const Operand& b);
  friend Tensor operator-(const Operand& a);
  // Comparisons give a bool tensor, element by element.
  friend Tensor operator<(const Operand& a, const Operand& b);
  friend Tensor operator<=(const Operand& a, const Operand& b);
  friend Tensor operator>(const Operand& a, const Operand& b);
  friend Tensor operator>=(const Operand& a, const Operand& b);

  // The tensor becomes the result; other tensors that share its value stay.
  Tensor& operator+=(const Operand& other);
  Tensor& operator-=(const Operand& other);
  Tensor& operator*=(const Operand& other);
  Tensor& operator/=(const Operand& other);

 private:
  std::shared_ptr<ir::GraphAnchor> anchor_;  // empty: the tensor is
  Value value_;
};

/// A tensor or a number in an expression, with the place where it was written.
class Operand {
 public:
  Operand(const Tensor& t, const Loc& loc = Loc::current()) : tensor_(t), loc_(loc) {}    // NOLINT
  Operand(const ir::Expr& e, const Loc& loc = Loc::current()) : tensor_(e), loc_(loc) {}  // NOLINT
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Operand(Number v, const Loc& loc = Loc::current())  // NOLINT
      : number_(double(v)), is_number_(true), loc_(loc) {}

  bool is_number() const { return is_number_; }
  /// Of a number; of a tensor 0.
  double number() const { return number_; }
  /// Of a tensor; empty for a number.
  const Tensor& tensor() const { return tensor_; }
  /// Where it was written.
  const Loc& loc() const { return loc_; }

 private:
  Tensor tensor_;
  double number_ = 0;
  bool is_number_ = false;
  Loc loc_;
};

using Tensors = std::vector<Tensor>;

}  // namespace rlx
