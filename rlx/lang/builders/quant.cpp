#include "rlx/lang/builders/quant.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/quant/dequant_matmul.h"
#include "rlx/ops/quant/q_conv2d.h"
#include "rlx/ops/quant/q_matmul.h"
#include "rlx/ops/quant/quantize.h"
#include "rlx/ops/quant/scaled_matmul.h"

namespace rlx {

Value QuantBuilder::quantize(Value x, double scale, int64_t zero_point, const Declared& shape,
                             const Loc& loc) {
  return one(shape, loc, [&] { return ops::quantize(t(x), scale, zero_point); });
}

Value QuantBuilder::quantize_per_channel(Value x, int axis, std::vector<double> scales,
                                         std::vector<int64_t> zero_points, const Declared& shape,
                                         const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::quantize_per_channel(t(x), axis, std::move(scales), std::move(zero_points));
  });
}

Value QuantBuilder::dequantize(Value x, double scale, int64_t zero_point, const Declared& shape,
                               const Loc& loc) {
  return one(shape, loc, [&] { return ops::dequantize(t(x), scale, zero_point); });
}

Value QuantBuilder::dequantize_per_channel(Value x, int axis, std::vector<double> scales,
                                           std::vector<int64_t> zero_points, const Declared& shape,
                                           const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::dequantize_per_channel(t(x), axis, std::move(scales), std::move(zero_points));
  });
}

Value QuantBuilder::dequant_matmul(Value x, Value w_q, Value scale, Value zp, const std::string& scheme,
                                   const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::dequant_matmul(t(x), t(w_q), t(scale), t(zp), scheme); });
}

Value QuantBuilder::dequant_matmul_packed(Value x, Value packed_w, const std::string& scheme,
                                          const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::dequant_matmul_packed(t(x), t(packed_w), scheme); });
}

Value QuantBuilder::dequant_matmul_nvfp4(Value x, Value w_q, Value block_scales, Value global_scale,
                                         const Declared& shape, const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::dequant_matmul_nvfp4(t(x), t(w_q), t(block_scales), t(global_scale)); });
}

Value QuantBuilder::q_matmul(Value x, Value w, Value bias, int64_t x_zp, int64_t w_zp, int64_t out_zp,
                             double mult, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::q_matmul(t(x), t(w), t(bias), x_zp, w_zp, out_zp, mult); });
}

Value QuantBuilder::q_conv2d(Value x, Value w, Value bias, std::vector<int64_t> kernel_size,
                             std::vector<int64_t> stride, std::vector<int64_t> padding,
                             std::vector<int64_t> dilation, int64_t groups, int64_t x_zp, int64_t w_zp,
                             int64_t out_zp, double mult, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::q_conv2d(t(x), t(w), t(bias), std::move(kernel_size), std::move(stride), std::move(padding),
                         std::move(dilation), groups, x_zp, w_zp, out_zp, mult);
  });
}

Value QuantBuilder::scaled_matmul(Value x, Value w, const std::optional<Value>& x_scale,
                                  const std::optional<Value>& w_scale, DType to, int64_t block,
                                  const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::scaled_matmul(t(x), t(w), t(x_scale), t(w_scale), to, block); });
}

}  // namespace rlx
