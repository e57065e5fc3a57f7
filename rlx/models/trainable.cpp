#include "rlx/models/trainable.h"

#include <algorithm>

#include "rlx/ir/leaves.h"
#include "rlx/lang/control.h"
#include "rlx/lang/operators.h"
#include "rlx/ops/control/custom_fn.h"

namespace rlx::models {
namespace {

// Rows of W that are decoded together: a divisor of n whose numbers take at most a megabyte, which stays in a cache beside the rows of
// dy that meet them.
int64_t rows_together(int64_t n, int64_t k) {
  constexpr int64_t kNumbers = 1 << 18;
  const int64_t most = std::max<int64_t>(kNumbers / k, 1);
  for (int64_t rows = std::min(n, most); rows > std::min<int64_t>(most, 64); --rows) {
    if (n % rows == 0) return rows;
  }
  return n;
}

// dx [m, k] = sum over parts of dy[:, part] W[part, :].
Tensor gradient(const Tensor& dy, const Tensor& packed, const std::string& scheme, int64_t k) {
  const int64_t n = dy.dim(1).value(), rows = rows_together(n, k), parts = n / rows;
  const Dim m = dy.dim(0), bytes = packed.dim(-1);
  const Tensor by_part = dy.reshape({m, parts, rows}).transpose({1, 0, 2});
  const Tensor zero = ir::full(dy.graph(), Shape(dy.dtype(), {m, k}), 0);
  return scan(zero, {.xs = {packed.reshape({parts, rows, bytes}), by_part}},
              [&](const Tensor& sum, const Tensor& blocks, const Tensor& part) {
                const Tensor w = dequantize_blocks(blocks, {.scheme = scheme, .shape = {rows, k, 1}});
                return sum + part.matmul(w.reshape({rows, k}));
              });
}

}  // namespace

Tensor trainable_product(const Tensor& x, const Tensor& packed, const ops::DequantMatmul::Attrs& how) {
  Graph forward("packed_product"), backward("packed_product_gradient");
  {
    Tracer t(forward);
    const Tensor a = t.input("x", x.shape().dims(), x.dtype());
    const Tensor w = t.input("w", packed.shape().dims(), packed.dtype());
    forward.set_outputs({dequant_matmul(a, w, {}, {}, how)});
  }
  {
    Tracer t(backward);
    const int64_t k = x.dim(-1).value();
    const Dim n = packed.dim(0);
    Dims result = x.shape().dims();
    Dim m = 1;
    for (size_t i = 0; i + 1 < result.size(); ++i) m = m * result[i];
    result.back() = n;
    t.input("x", x.shape().dims(), x.dtype());
    const Tensor w = t.input("w", packed.shape().dims(), packed.dtype());
    t.input("primal_output", result, x.dtype());
    const Tensor dy = t.input("d_output", result, x.dtype());
    const Tensor dx = gradient(dy.reshape({m, n}), w, how.scheme, k).reshape(x.shape().dims());
    backward.set_outputs({dx, w.zeros_like()});
  }
  return ops::custom_fn(x.graph(), {x, packed}, std::move(forward), std::move(backward))[0];
}

}  // namespace rlx::models
