// The gated unit on one tensor that holds both halves.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct FusedSwiglu {
  static constexpr std::string_view name = "fused_swiglu",
                                    summary = "Gated unit of the two halves of the last axis.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y = up silu(gate): x is [.., 2N], up its low half and gate its high half, or the other way round with "
      "gate_first";
  struct Attrs {
    bool gate_first = false;
    std::optional<DType> cast_to;
    static constexpr auto fields() {
      return std::tuple{field("gate_first", &Attrs::gate_first, "the gate is the low half"),
                        field("cast_to", &Attrs::cast_to, "element type of the result; default that of x")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr fused_swiglu(Expr x, bool gate_first = false, std::optional<DType> cast_to = std::nullopt);

}  // namespace rlx::ops
