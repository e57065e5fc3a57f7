// Quantised tensors and products with quantised weights.
#pragma once

#include "rlx/lang/builders/builder.h"

namespace rlx {

/// Quantised tensors and products with quantised weights.
class QuantBuilder : public BuilderTheme<QuantBuilder> {
 public:
  Value quantize(Value x, double scale, int64_t zero_point, const Declared& shape = {},
                 const Loc& loc = Loc::current());
  Value quantize_per_channel(Value x, int axis, std::vector<double> scales, std::vector<int64_t> zero_points,
                             const Declared& shape = {}, const Loc& loc = Loc::current());
  Value dequantize(Value x, double scale, int64_t zero_point, const Declared& shape = {},
                   const Loc& loc = Loc::current());
  Value dequantize_per_channel(Value x, int axis, std::vector<double> scales,
                               std::vector<int64_t> zero_points, const Declared& shape = {},
                               const Loc& loc = Loc::current());
  Value dequant_matmul(Value x, Value w_q, Value scale, Value zp, const std::string& scheme,
                       const Declared& shape = {}, const Loc& loc = Loc::current());
  Value dequant_matmul_packed(Value x, Value packed_w, const std::string& scheme, const Declared& shape = {},
                              const Loc& loc = Loc::current());
  /// Weights of 4-bit floats with fp8 scales per block and one scale for all.
  Value dequant_matmul_nvfp4(Value x, Value w_q, Value block_scales, Value global_scale,
                             const Declared& shape = {}, const Loc& loc = Loc::current());
  Value q_matmul(Value x, Value w, Value bias, int64_t x_zp, int64_t w_zp, int64_t out_zp, double mult,
                 const Declared& shape = {}, const Loc& loc = Loc::current());
  Value q_conv2d(Value x, Value w, Value bias, std::vector<int64_t> kernel_size, std::vector<int64_t> stride,
                 std::vector<int64_t> padding, std::vector<int64_t> dilation, int64_t groups, int64_t x_zp,
                 int64_t w_zp, int64_t out_zp, double mult, const Declared& shape = {},
                 const Loc& loc = Loc::current());
  /// fp8 with fp8; scales may be left out, [1, 1] of 1 stands for none.
  Value scaled_matmul(Value x, Value w, const std::optional<Value>& x_scale = {},
                      const std::optional<Value>& w_scale = {}, DType to = DType::bf16, int64_t block = 128,
                      const Declared& shape = {}, const Loc& loc = Loc::current());
};

}  // namespace rlx
