// Reductions of conditions.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct ConditionAttrs {
  std::vector<int> axes;
  bool keep_dim = false;
  static constexpr auto fields() {
    return std::tuple{field("axes", &ConditionAttrs::axes, "axes to reduce; empty means all"),
                      field("keep_dim", &ConditionAttrs::keep_dim, "keep reduced axes with size 1")};
  }
};

struct AnyOf {
  static constexpr std::string_view name = "any", summary = "Whether at least one condition holds.",
                                    operands = "x",
                                    doc = "y = or of x over `axes`; false where there are none";
  static constexpr Traits traits{.zero_gradient = true};
  using Attrs = ConditionAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
    return double(in[0].elements());
  }
  static std::vector<OpSample<Attrs>> samples();
};

struct AllOf {
  static constexpr std::string_view name = "all", summary = "Whether every condition holds.", operands = "x",
                                    doc = "y = and of x over `axes`; true where there are none";
  static constexpr Traits traits{.zero_gradient = true};
  using Attrs = ConditionAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
    return double(in[0].elements());
  }
  static std::vector<OpSample<Attrs>> samples();
};

Expr any(Expr x, std::vector<int> axes, bool keep_dim = false);
Expr all(Expr x, std::vector<int> axes, bool keep_dim = false);

}  // namespace rlx::ops
