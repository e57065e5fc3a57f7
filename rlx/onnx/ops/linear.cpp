// Products, contractions, determinants.
#include <algorithm>
#include <map>

#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/product.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {

Tensor product_of(const Tensor& left, const Tensor& right) {
  Tensor a = left, b = right;
  const DType type = a.dtype();
  // Sums of whole numbers are exact in f64 up to 2^53.
  const bool whole = !is_float(type) && !is_complex(type);
  if (whole) a = a.cast(DType::f64), b = b.cast(DType::f64);
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = a.unsqueeze(0);
  if (column) b = b.unsqueeze(1);
  Tensor y = rlx::matmul(a, b);
  if (column) y = y.squeeze(-1);
  if (row) y = y.squeeze(column ? -1 : -2);
  return whole ? y.cast(type) : y;
}

// Operand i with 0 in the places that are not meant along the axis that is summed over.
static Tensor factor(const Call& c, int i, int axis) { return masked(c, i, {axis}, 0); }

Items gemm(Call& c) {
  const bool left = c.flag("transA"), right = c.flag("transB");
  Tensor a = factor(c, 0, left ? 0 : 1), b = factor(c, 1, right ? 1 : 0);
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  c.ignore("broadcast");
  if (left) a = a.t();
  if (right) b = b.t();
  Tensor y = product_of(a, b);
  if (alpha != 1) y = is_float(y.dtype()) ? y * alpha : (y.cast(DType::f64) * alpha).cast(y.dtype());
  if (c.has(2)) {
    Tensor bias = c.in(2);
    if (beta != 1)
      bias = is_float(bias.dtype()) ? bias * beta : (bias.cast(DType::f64) * beta).cast(bias.dtype());
    y = y + bias;
  }
  Item out(y);
  if (const Bound* rows = bound_at(c.item(0), left ? 1 : 0)) out.bounds.push_back({0, rows->count});
  if (const Bound* columns = bound_at(c.item(1), right ? 0 : 1)) out.bounds.push_back({1, columns->count});
  return {std::move(out)};
}

namespace {

Items matmul(Call& c) {
  const int ra = c.rank(0), rb = c.rank(1), summed = std::max(0, rb - 2);
  Item out(product_of(factor(c, 0, ra - 1), factor(c, 1, summed)));
  const int rank = out.shape().rank(), rows = rb == 1 ? rank - 1 : rank - 2;
  for (const Bound& b : c.item(0).bounds) {
    if (b.axis != ra - 1) add_bound(out, {rows - (ra - 2 - b.axis), b.count});
  }
  for (const Bound& b : c.item(1).bounds) {
    if (b.axis == rb - 1 && rb > 1) add_bound(out, {rank - 1, b.count});
    if (b.axis < summed) add_bound(out, {rank - (ra == 1 ? rb - 1 : rb) + b.axis, b.count});
  }
  return {std::move(out)};
}

Items einsum(Call& c) {
  std::string equation;
  for (const char ch : c.text("equation", "")) {
    if (ch != ' ') equation.push_back(ch);
  }
  const bool bounded =
      std::any_of(c.items().begin(), c.items().end(), [](const Item& it) { return !it.bounds.empty(); });
  if (!bounded) return {rlx::einsum(equation, c.all())};
  if (equation.find('.') != std::string::npos)
    c.unsupported("'...' with an operand whose size depends on data");
  // Places that are not meant add nothing to sums; axes that stay keep their bounds by their letters.
  std::map<char, Tensor> counts;
  Tensors operands;
  size_t at = 0;
  for (int i = 0; i < c.count(); ++i, ++at) {
    std::vector<int> axes;
    for (const Bound& b : c.item(i).bounds) {
      axes.push_back(b.axis);
      if (at + size_t(b.axis) < equation.size()) counts.emplace(equation[at + size_t(b.axis)], b.count);
    }
    operands.push_back(masked(c, i, axes, 0));
    at = std::min(equation.find_first_of(",-", at), equation.size());
  }
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos)
    c.unsupported("an equation without '->' with an operand whose size depends on data");
  Item out(rlx::einsum(equation, operands));
  for (size_t k = arrow + 2; k < equation.size(); ++k) {
    if (const auto count = counts.find(equation[k]); count != counts.end())
      out.bounds.push_back({int(k - arrow - 2), count->second});
  }
  return {std::move(out)};
}

Items determinant(Call& c) { return {rlx::det(c.in(0))}; }

}  // namespace

std::span<const Entry> linear_entries() {
  static const std::vector<Entry> kEntries{
      {"Det", 11, determinant},
      {"Einsum", 12, einsum, BoundsRule::by_hand},
      {"Gemm", 1, gemm, BoundsRule::by_hand},
      {"MatMul", 1, matmul, BoundsRule::by_hand},
  };
  return kEntries;
}

}  // namespace rlx::onnx
