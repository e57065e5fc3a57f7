// Reversal along axes.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ops {

using namespace ir;  // NOLINT

struct Flip {
  static constexpr std::string_view name = "flip", summary = "Order of elements reversed along axes.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[.., i, ..] = x[.., size - 1 - i, ..] along each of `axes` (none listed: all)";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    std::vector<int> axes;
    static constexpr auto fields() {
      return std::tuple{field("axes", &Attrs::axes, "axes to reverse; empty means all")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Tensors vjp(const Vjp&, const Attrs&);
  static Tensors vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Tensor flip(Tensor x, std::vector<int> axes);

}  // namespace rlx::ops
