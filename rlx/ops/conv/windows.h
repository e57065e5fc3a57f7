// Sliding windows laid out as axes of their own, and the sum that takes them back: each is the transpose of
// the other.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Windows {
  static constexpr std::string_view name = "windows", summary = "All sliding windows of the last axes.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[.., o, k] = x[.., o stride + k - padding] on each of the last n axes, 0 outside x; first all axes "
      "o, then all axes k. An axis o has floor((size + 2 padding - kernel_size) / stride) + 1 positions";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    std::vector<int64_t> kernel_size, stride, padding;
    static constexpr auto fields() {
      return std::tuple{
          field("kernel_size", &Attrs::kernel_size, "extents of a window; as many as axes it slides along"),
          field("stride", &Attrs::stride, "step between windows; default 1"),
          field("padding", &Attrs::padding, "zeros on both sides; default 0")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct WindowsSum {
  static constexpr std::string_view name = "windows_sum",
                                    summary = "Sum of overlapping windows: the transpose of windows.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[.., i] = sum of x[.., o, k] over o stride + k - padding = i; x has the form that windows returns";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    Dims size;
    std::vector<int64_t> stride, padding;
    static constexpr auto fields() {
      return std::tuple{field("size", &Attrs::size, "extents of the last axes of y"),
                        field("stride", &Attrs::stride, "step between windows; default 1"),
                        field("padding", &Attrs::padding, "positions cut off on both sides; default 0")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr windows(Expr x, std::vector<int64_t> kernel_size, std::vector<int64_t> stride,
             std::vector<int64_t> padding);
Expr windows_sum(Expr x, Dims size, std::vector<int64_t> stride, std::vector<int64_t> padding);

}  // namespace rlx::ops
