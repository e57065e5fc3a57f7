// Products, contractions, determinants.
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
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

Items gemm(Call& c) {
  Tensor a = c.in(0), b = c.in(1);
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  c.ignore("broadcast");
  if (c.flag("transA")) a = a.t();
  if (c.flag("transB")) b = b.t();
  Tensor y = product_of(a, b);
  if (alpha != 1) y = is_float(y.dtype()) ? y * alpha : (y.cast(DType::f64) * alpha).cast(y.dtype());
  if (!c.has(2)) return {y};
  Tensor bias = c.in(2);
  if (beta != 1)
    bias = is_float(bias.dtype()) ? bias * beta : (bias.cast(DType::f64) * beta).cast(bias.dtype());
  return {y + bias};
}

namespace {

Items matmul(Call& c) { return {product_of(c.in(0), c.in(1))}; }

Items einsum(Call& c) {
  std::string equation;
  for (const char ch : c.text("equation", "")) {
    if (ch != ' ') equation.push_back(ch);
  }
  return {rlx::einsum(equation, c.all())};
}

Items determinant(Call& c) { return {rlx::det(c.in(0))}; }

}  // namespace

std::span<const Entry> linear_entries() {
  static const std::vector<Entry> kEntries{
      {"Det", 11, determinant},
      {"Einsum", 12, einsum},
      {"Gemm", 1, gemm},
      {"MatMul", 1, matmul},
  };
  return kEntries;
}

}  // namespace rlx::onnx
