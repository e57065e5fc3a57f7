#include "rlx/models/trainable.h"

#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"
#include "rlx/ops/control/custom_fn.h"

namespace rlx::models {

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
    Dims result = x.shape().dims();
    result.back() = packed.dim(0);
    t.input("x", x.shape().dims(), x.dtype());
    const Tensor w = t.input("w", packed.shape().dims(), packed.dtype());
    t.input("primal_output", result, x.dtype());
    const Tensor dy = t.input("d_output", result, x.dtype());
    backward.set_outputs({dequant_matmul_transposed(dy, w, {.scheme = how.scheme}), w.zeros_like()});
  }
  return ops::custom_fn(x.graph(), {x, packed}, std::move(forward), std::move(backward))[0];
}

}  // namespace rlx::models
