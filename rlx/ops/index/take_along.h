// One index per element of the result, and its transpose.
#pragma once

#include "rlx/ops/index/indices.h"

namespace rlx::ops {

struct TakeAlong {
  static constexpr std::string_view name = "take_along",
                                    summary = "Elements along an axis, one index for each.",
                                    operands = "x, indices";
  static constexpr std::string_view doc =
      "y[.., k, ..] = x[.., indices[.., k, ..], ..]; the indices have the sizes of x but along `axis`";
  struct Attrs {
    int axis = -1;
    IndexMode mode = IndexMode::error;
    static constexpr auto fields() {
      return std::tuple{field("axis", &Attrs::axis, "axis to pick along; negative counts from the end"),
                        field("mode", &Attrs::mode, kIndexModeDoc)};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr take_along(Expr x, Expr indices, int axis, IndexMode mode = IndexMode::error);

/// The transpose of take_along: each element of `t` added to place indices[..] of an axis of the given size.
Expr put_along(Expr t, Expr indices, int axis, Dim size, IndexMode mode = IndexMode::error);

}  // namespace rlx::ops
