// Pooling: a reduction over sliding windows of the last one to three axes.
#pragma once

#include "rlx/ops/reduce/reduce.h"

namespace rlx::ops {

struct Pool {
  static constexpr std::string_view name = "pool",
                                    summary = "Max, mean, sum, min or product over sliding windows.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[.., o] = kind of x[.., o stride + k - padding] over 0 <= k < kernel_size on each of the last axes, "
      "as many as kernel_size has entries. Padding takes no part: max and min ignore it, a sum adds 0, a "
      "product multiplies by 1, a mean divides by the number of elements inside x, or by the whole window "
      "with count_include_pad. Of several equal extrema the first in row-major order gets the gradient; the "
      "gradient of a product is exact with zeros";
  struct Attrs {
    ReduceOp kind = ReduceOp::max;
    std::vector<int64_t> kernel_size, stride, padding;
    bool count_include_pad = false;
    static constexpr auto fields() {
      return std::tuple{
          field("kind", &Attrs::kind, "how to combine a window"),
          field("kernel_size", &Attrs::kernel_size, "extents of a window, per spatial axis"),
          field("stride", &Attrs::stride, "step between windows; default kernel_size"),
          field("padding", &Attrs::padding, "positions added on both sides; default 0, below kernel_size"),
          field("count_include_pad", &Attrs::count_include_pad, "a mean counts the padding as zeros")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct MaxPool2dBackward {
  static constexpr std::string_view name = "maxpool2d_backward",
                                    summary = "Gradient of max pooling over the last two axes.",
                                    operands = "x, dy";
  static constexpr std::string_view doc =
      "dx[i] = sum of dy[o] over the windows o whose first maximum, in row-major order, is x[i]";
  struct Attrs {
    std::vector<int64_t> kernel_size, stride, padding;
    static constexpr auto fields() {
      return std::tuple{field("kernel_size", &Attrs::kernel_size, "extents of a window"),
                        field("stride", &Attrs::stride, "step between windows; default kernel_size"),
                        field("padding", &Attrs::padding, "positions added on both sides; default 0")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr pool(Expr x, ReduceOp kind, std::vector<int64_t> kernel_size, std::vector<int64_t> stride = {},
          std::vector<int64_t> padding = {}, bool count_include_pad = false);
Expr maxpool2d_backward(Expr x, Expr dy, std::vector<int64_t> kernel_size, std::vector<int64_t> stride = {},
                        std::vector<int64_t> padding = {});

}  // namespace rlx::ops
