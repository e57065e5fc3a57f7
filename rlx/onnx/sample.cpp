#include "rlx/onnx/sample.h"

#include "rlx/lang/operators.h"

namespace rlx::onnx {

Tensor pixel_rows(const Tensor& x) {
  Dim pixels = 1;
  for (int i = 2; i < x.rank(); ++i) pixels = pixels * x.dim(i);
  return x.reshape({x.dim(0), x.dim(1), pixels}).transpose({0, 2, 1});
}

Tensor pixels_or_zero(const Call& c, const Tensor& rows, const Dims& extents, const Tensors& places) {
  Tensor flat, inside;
  for (size_t i = 0; i < extents.size(); ++i) {
    const Tensor last = c.dim_value(extents[i] - Dim(1));
    const Tensor here =
        rlx::logical_and(places[i] >= 0, rlx::compare(places[i], last, {.kind = ops::CompareOp::le}));
    const Tensor cut = places[i].max(0).min(last);
    flat = flat.is_empty() ? cut : flat * c.dim_value(extents[i]) + cut;
    inside = inside.is_empty() ? here : rlx::logical_and(inside, here);
  }
  const Tensor read = rlx::batched_gather(rows, flat, {.axis = 1, .batch_dims = 1});
  return inside.unsqueeze(2).where(read, 0.0);
}

Tensor linear_sample(const Call& c, const Tensor& rows, const Dims& extents, const Tensors& places) {
  const size_t axes = extents.size();
  Tensors low, part;
  for (const Tensor& p : places) {
    const Tensor f = rlx::floor(p);
    low.push_back(f.cast(DType::i64));
    part.push_back(p - f);
  }
  Tensor sum;
  for (size_t corner = 0; corner < size_t(1) << axes; ++corner) {
    Tensors at;
    Tensor weight;
    for (size_t i = 0; i < axes; ++i) {
      const bool high = (corner >> i & 1) != 0;
      at.push_back(high ? low[i] + 1 : low[i]);
      const Tensor w = high ? part[i] : 1.0 - part[i];
      weight = weight.is_empty() ? w : weight * w;
    }
    const Tensor term = pixels_or_zero(c, rows, extents, at) * weight.unsqueeze(2);
    sum = sum.is_empty() ? term : sum + term;
  }
  return sum;
}

}  // namespace rlx::onnx
