// Integer convolution with requantised results.
#pragma once

#include "rlx/ops/quant/q_matmul.h"

namespace rlx::ops {

struct QConv2d {
  static constexpr std::string_view name = "q_conv2d", summary = "Convolution of 8-bit codes, requantised.",
                                    operands = "x, w, bias";
  static constexpr std::string_view doc =
      "acc[n, o, y, x] = bias[o] + sum of (x[n, c, iy, ix] - x_zp)(w[o, c', ky, kx] - w_zp) in i32, iy = y "
      "stride + ky dilation - padding, c = c' + group of o times Ci/groups; taps outside the image add "
      "nothing. y = round(acc mult) + out_zp, saturated to the range of codes, with mults[o] for mult where they "
      "are given. x and y are both i8 or both u8, w is i8";
  static constexpr Traits traits{.contraction = true, .zero_gradient = true};
  struct Attrs : Requantize {
    std::vector<int64_t> kernel_size, stride, padding, dilation;
    int64_t groups = 1;
    static constexpr auto fields() {
      return std::tuple_cat(
          std::tuple{field("kernel_size", &Attrs::kernel_size, "height and width of w; default: those of w"),
                     field("stride", &Attrs::stride, "step between windows, two entries; default 1"),
                     field("padding", &Attrs::padding, "zeros before and after, two entries; default 0"),
                     field("dilation", &Attrs::dilation, "step between taps, two entries; default 1"),
                     field("groups", &Attrs::groups, "parts into which the channels are split")},
          fields_of<Attrs>());
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr q_conv2d(Expr x, Expr w, Expr bias, std::vector<int64_t> kernel_size, std::vector<int64_t> stride,
              std::vector<int64_t> padding, std::vector<int64_t> dilation, int64_t groups, int64_t x_zp,
              int64_t w_zp, int64_t out_zp, double mult, Rounding rounding = Rounding::half_even);

}  // namespace rlx::ops
