// Room around a tensor.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ops {

using namespace ir;  // NOLINT

struct Pad {
  static constexpr std::string_view name = "pad", summary = "A tensor with a constant border.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[i] = x[i - low] where that lies inside x, else value; axis k has size low[k] + size + high[k]";
  struct Attrs {
    Dims low, high;
    double value = 0;
    static constexpr auto fields() {
      return std::tuple{field("low", &Attrs::low, "places added before each axis; empty means none"),
                        field("high", &Attrs::high, "places added behind each axis; empty means none"),
                        field("value", &Attrs::value, "contents of the border, converted as by cast")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Tensors vjp(const Vjp&, const Attrs&);
  static Tensors jvp(const Jvp&, const Attrs&);
  static Tensors vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Tensor pad(Tensor x, Dims low, Dims high, double value = 0);

}  // namespace rlx::ops
