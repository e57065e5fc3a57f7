// A strided box of a tensor.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Slice {
  static constexpr std::string_view name = "slice", summary = "A box of a tensor, with steps.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[i] = x[start + stride * i] for start + stride * i < limit, per axis; the box must lie inside x. To "
      "go backwards, flip";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    Dims start, limit;
    std::vector<int64_t> stride;
    static constexpr auto fields() {
      return std::tuple{field("start", &Attrs::start, "first position on each axis"),
                        field("limit", &Attrs::limit, "one past the last position on each axis"),
                        field("stride", &Attrs::stride, "step on each axis, 1 or more; empty means 1")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::optional<Layout> view(const View&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr slice(Expr x, Dims start, Dims limit, std::vector<int64_t> stride = {});

}  // namespace rlx::ops
