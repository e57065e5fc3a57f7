#include "rlx/onnx/places.h"

#include "rlx/lang/operators.h"

namespace rlx::onnx {

Tensor wrapped(const Tensor& indices, const Tensor& n) {
  const Tensor i = indices.dtype() == DType::i64 ? indices : indices.cast(DType::i64);
  return (i < 0).where(i + n, i);
}

Tensor wrapped(const Call& c, const Tensor& indices, Dim n) { return wrapped(indices, c.dim_value(n)); }

Tensor flat_places(const Call& c, const Tensor& indices, const Dims& extents) {
  const int last = indices.rank() - 1;
  Dims without(indices.shape().dims().begin(), indices.shape().dims().end() - 1);
  Tensor flat = c.full(without, DType::i64, 0);
  for (size_t k = 0; k < extents.size(); ++k) {
    const Tensor part = wrapped(c, indices.narrow(last, int64_t(k), 1).reshape(without), extents[k]);
    flat = flat * c.dim_value(extents[k]) + part;
  }
  return flat;
}

}  // namespace rlx::onnx
