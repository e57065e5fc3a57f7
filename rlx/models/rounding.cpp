#include "rlx/models/rounding.h"

#include <cstring>

#include "rlx/base/float16.h"
#include "rlx/lang/operators.h"

namespace rlx::models {
namespace {

bool has_minima(const quant::BlockFormat& f) { return f.name == "q4_1" || f.name == "q5_1"; }

Tensor largest(const Tensor& blocks) { return blocks.reduce(ops::ReduceOp::max, {blocks.rank() - 1}, true); }

// The element of largest magnitude of each block, with its sign.
Tensor peak(const Tensor& blocks) {
  const Tensor high = largest(blocks), low = blocks.reduce(ops::ReduceOp::min, {blocks.rank() - 1}, true);
  return where(high >= -low, high, low);
}

// 0 where the scale is.
Tensor divided(const Tensor& x, const Tensor& scale) {
  const Tensor none = scale.eq(0);
  return where(none, 0, x / where(none, 1, scale));
}

Tensor through_f16(const Tensor& x) { return x.cast(DType::f16).cast(DType::f32); }

}  // namespace

Rounded round_activations(const Tensor& x, const quant::BlockFormat& format) {
  const int64_t size = format.elements == 256 ? 256 : 32, k = x.dim(-1).value();
  if (k % size != 0) return {x, {}};
  Dims dims = x.shape().dims();
  dims.back() = k / size;
  dims.push_back(size);
  const Tensor blocks = x.reshape(dims);
  if (size == 256) {
    const Tensor scale = peak(blocks) / -127.0;
    return {(divided(blocks, scale).round().min(127) * scale).reshape(x.shape().dims()), {}};
  }
  const Tensor scale = largest(blocks.abs()) / 127.0, stored = through_f16(scale);
  const Tensor codes = divided(blocks, scale).round();
  Rounded out{(codes * stored).reshape(x.shape().dims()), {}};
  if (!has_minima(format)) return out;
  const Tensor sum = codes.sum({codes.rank() - 1}, true);
  dims.pop_back();
  out.minima_error = (through_f16(sum * scale) - sum * stored).reshape(dims);
  return out;
}

Literal block_minima(const io::TensorView& packed) {
  const io::TensorView weight = io::unpacked(packed);
  const quant::BlockFormat& f = *weight.type.format;
  RLX_CHECK(has_minima(f), f.name, " has no minima");
  const int64_t rows = weight.dims[0], blocks = weight.dims[1] / f.elements;
  Literal out = Literal::zeros(Shape(DType::f32, {rows, blocks}));
  const auto to = out.mutable_data<float>();
  for (int64_t i = 0; i < rows * blocks; ++i) {
    uint16_t bits;  // behind the scale
    std::memcpy(&bits, weight.bytes.data() + i * f.bytes + sizeof bits, sizeof bits);
    to[size_t(i)] = f16_to_f32(bits);
  }
  return out;
}

}  // namespace rlx::models
