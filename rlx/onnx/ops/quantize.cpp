// Quantised numbers: codes, scales and zero points.
#include <cmath>

#include "rlx/lang/operators.h"
#include "rlx/onnx/codes.h"
#include "rlx/onnx/convert.h"
#include "rlx/onnx/product.h"
#include "rlx/onnx/table.h"
#include "rlx/onnx/window.h"

namespace rlx::onnx {
namespace {

using E = file::ElementType;

// Scales and zero points brought to the axes of x: one number, one per place of `axis`, or one per block of it.
Tensor spread(const Call& c, const Tensor& v, const Shape& x, int axis, int64_t block) {
  if (block > 0) {
    if (v.rank() != x.rank()) throw c.wrong("blocks of ", block, ": ", v.shape(), " for ", x);
    const Dim blocks = v.dim(axis), size = x.dim(axis);
    Dims one = v.shape().dims(), wide;
    one.insert(one.begin() + axis + 1, 1);
    wide = one;
    wide[size_t(axis) + 1] = block;
    Dims joined = v.shape().dims();
    joined[size_t(axis)] = blocks * Dim(block);
    const Tensor repeated = v.reshape(one).expand(wide).reshape(joined);
    return joined[size_t(axis)] == size ? repeated : repeated.narrow(axis, 0, size);
  }
  if (v.rank() == 0 || v.shape().num_elements() == Dim(1)) return v.reshape({});
  if (v.rank() != 1) return v;
  Dims dims(size_t(x.rank()), 1);
  dims[size_t(axis)] = v.dim(0);
  return v.reshape(dims);
}

Tensor as(const Tensor& t, DType type) { return t.dtype() == type ? t : t.cast(type); }

int axis_of(const Call& c, int rank) {
  const int64_t axis = c.integer("axis", 1);
  return rank == 0 || axis >= rank || axis < -rank ? 0 : c.axis(axis, rank);
}

}  // namespace

E element_of_item(const Item& it) {
  return it.element == E::undefined ? file::element_of(it.dtype()) : it.element;
}

Item quantized(const Call& c, const Tensor& x, const Tensor& scale, const Tensor& zero, E to, bool saturate) {
  Tensor q = x / scale;
  const auto& info = file::info_of(to);
  if (is_float(*info.dtype)) {
    if (!zero.is_empty()) q = q + as(zero, q.dtype());
    return converted(c, q, E::f32, to, saturate);
  }
  const auto [least, most] = integer_range(to);
  q = rlx::round(q);
  if (!zero.is_empty()) q = q + as(zero, q.dtype());
  Item out(q.clamp(least, most).cast(*info.dtype));
  out.element = to;
  return out;
}

Items quantize_linear(Call& c) {
  const Tensor x = c.in(0);
  const int axis = axis_of(c, x.rank());
  const int64_t block = c.integer("block_size", 0);
  E to = c.has(2) ? element_of_item(c.item(2)) : E::u8;
  if (c.has_attr("output_dtype") && c.integer("output_dtype", 0) != 0) to = c.element("output_dtype", to);
  const bool saturate = c.flag("saturate", true);
  const int64_t precision = c.integer("precision", 0);
  // Computed in f32 unless the model asks for the narrower type.
  const DType type = precision == int64_t(E::f16) ? DType::f16 : DType::f32;
  const Tensor scale = spread(c, as(c.in(1), type), x.shape(), axis, block);
  const Tensor zero = c.has(2) ? spread(c, as(c.in(2), type), x.shape(), axis, block) : Tensor();
  return {quantized(c, as(x, type), scale, zero, to, saturate)};
}

Tensor dequantized(const Call& c, int value, int scale, int zero, int axis, int64_t block) {
  const Tensor x = c.in(value), s = c.in(scale);
  const DType type = DType::f32;
  Tensor y = as(x, type);
  if (c.has(zero)) y = y - spread(c, as(c.in(zero), type), x.shape(), axis, block);
  return y * spread(c, as(s, type), x.shape(), axis, block);
}

Items dequantize_linear(Call& c) {
  const int axis = axis_of(c, c.rank(0));
  const int64_t block = c.integer("block_size", 0);
  E to = element_of_item(c.item(1));
  if (c.has_attr("output_dtype") && c.integer("output_dtype", 0) != 0) to = c.element("output_dtype", to);
  const Tensor y = dequantized(c, 0, 1, 2, axis, block);
  const DType type = to == E::f8e8m0 ? DType::f32 : *file::info_of(to).dtype;
  return {as(y, type)};
}

Tensor centred(const Call& c, int value, int zero, int axis) {
  const Tensor x = c.in(value).cast(DType::f64);
  if (!c.has(zero)) return x;
  const Tensor z = c.in(zero).cast(DType::f64);
  if (z.rank() == 0 || z.shape().num_elements() == Dim(1)) return x - z.reshape({});
  if (z.rank() > 1) return x - z;
  Dims dims(size_t(x.rank()), 1);
  dims[size_t(axis < 0 ? axis + x.rank() : axis)] = z.dim(0);
  return x - z.reshape(dims);
}

Tensor along_axis(const Tensor& v, int rank, int axis) {
  if (v.rank() != 1 || v.dim(0) == Dim(1))
    return v.rank() == 0 || v.shape().num_elements() == Dim(1) ? v.reshape({}) : v;
  Dims dims(size_t(rank), 1);
  dims[size_t(axis < 0 ? axis + rank : axis)] = v.dim(0);
  return v.reshape(dims);
}

DynamicCodes dynamic_codes(const Tensor& x) {
  const Tensor most = x.reduce(ops::ReduceOp::max).max(0), least = x.reduce(ops::ReduceOp::min).min(0);
  const Tensor range = (most - least) / 255.0;
  // Nothing but zeros: any scale serves.
  const Tensor scale = range.eq(0).where(1.0, range);
  const Tensor zero = rlx::round((0.0 - least / scale).clamp(0, 255));
  return {(rlx::round(x / scale) + zero).clamp(0, 255).cast(DType::u8), range, zero.cast(DType::u8)};
}

namespace {

Items dynamic_quantize(Call& c) {
  const DynamicCodes d = dynamic_codes(c.in(0));
  return {d.codes, d.scale, d.zero};
}

Items matmul_integer(Call& c) {
  return {product_of(centred(c, 0, 2, -2), centred(c, 1, 3, -1)).cast(DType::i32)};
}

// An exact sum of products of codes as codes again. One factor in f32, as in ONNX Runtime: what lies between two codes goes
// where it goes there.
Item requantised(const Call& c, const Tensor& sum, const Tensor& a, const Tensor& b, const Tensor& y,
                 const Tensor& zero) {
  return quantized(c, sum.cast(DType::f32) * (a * b / y), c.scalar(DType::f32, 1), zero,
                   element_of_item(c.item(7)), true);
}

Items qlinear_matmul(Call& c) {
  const Tensor sum = product_of(centred(c, 0, 2, -2), centred(c, 3, 5, -1));
  const auto along = [&](int i, int axis) { return along_axis(as(c.in(i), DType::f32), sum.rank(), axis); };
  return {requantised(c, sum, along(1, -2), along(4, -1), along(6, -2), along(7, -2))};
}

Items qlinear_conv(Call& c) {
  const Tensor codes = centred(c, 0, 2, 1), w = centred(c, 3, 5, 0);
  std::vector<int64_t> kernel;
  for (int i = 2; i < w.rank(); ++i) kernel.push_back(w.dim(i).value());
  const WindowSpec s = read_window(c, codes.shape(), c.integers("kernel_shape", kernel));
  const Tensor x = extended(codes, s, 0);
  std::vector<int64_t> pads = s.low;
  pads.insert(pads.end(), s.high.begin(), s.high.end());
  const int64_t groups = c.integer("group", 1);
  const auto attrs = [&]<class Attrs>(Attrs a) {
    a.stride = s.stride, a.padding = pads, a.dilation = s.dilation, a.groups = int(groups);
    return a;
  };
  Tensor sum;
  switch (x.rank()) {
    case 3:
      sum = rlx::conv1d(x, w, attrs(ops::Conv1d::Attrs{}));
      break;
    case 4:
      sum = rlx::conv2d(x, w, attrs(ops::Conv2d::Attrs{}));
      break;
    case 5:
      sum = rlx::conv3d(x, w, attrs(ops::Conv3d::Attrs{}));
      break;
    default:
      c.unsupported(cat("a convolution over ", x.rank() - 2, " axes"));
  }
  if (c.has(8)) sum = sum + along_axis(c.in(8).cast(DType::f64), sum.rank(), 1);
  const auto along = [&](int i) { return along_axis(as(c.in(i), DType::f32), sum.rank(), 1); };
  return {requantised(c, sum, along(1), along(4), along(6), along(7))};
}

}  // namespace

std::span<const Entry> quantize_entries() {
  static const std::vector<Entry> kEntries{
      {"DequantizeLinear", 10, dequantize_linear}, {"DynamicQuantizeLinear", 11, dynamic_quantize},
      {"MatMulInteger", 10, matmul_integer},       {"QLinearConv", 10, qlinear_conv},
      {"QLinearMatMul", 10, qlinear_matmul},       {"QuantizeLinear", 10, quantize_linear},
  };
  return kEntries;
}

}  // namespace rlx::onnx
