// Repetition along axes of size 1.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ops {

using namespace ir;  // NOLINT

struct Expand {
  static constexpr std::string_view name = "expand", summary = "Broadcast to given extents.", operands = "x";
  static constexpr std::string_view doc =
      "y has extents `shape`; x is aligned to its right end, axes of size 1 and missing axes repeat. An "
      "entry -1 keeps the extent of x";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    Dims shape;
    static constexpr auto fields() {
      return std::tuple{field("shape", &Attrs::shape, "extents of the result")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Tensors vjp(const Vjp&, const Attrs&);
  static Tensors vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// `x` itself when it has these extents already.
Tensor expand(Tensor x, Dims shape);

}  // namespace rlx::ops
