// Boxes whose place is known at run time only.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct DynamicSlice {
  static constexpr std::string_view name = "dynamic_slice", summary = "A box at a place given at run time.",
                                    operands = "x, starts";
  static constexpr std::string_view doc =
      "y[i] = x[s + i] for 0 <= i < sizes, s = starts limited to 0 .. size - sizes per axis, so that the box "
      "lies inside x";
  struct Attrs {
    Dims sizes;
    static constexpr auto fields() { return std::tuple{field("sizes", &Attrs::sizes, "extents of the box")}; }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct DynamicUpdateSlice {
  static constexpr std::string_view name = "dynamic_update_slice",
                                    summary = "A tensor with a box replaced, at a place given at run time.",
                                    operands = "x, update, starts";
  static constexpr std::string_view doc =
      "y = x, but y[s + i] = update[i]; s = starts limited to 0 .. size - update size per axis";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// `starts` holds one index per axis of x.
Expr dynamic_slice(Expr x, Expr starts, Dims sizes);
Expr dynamic_update_slice(Expr x, Expr update, Expr starts);

}  // namespace rlx::ops
