// Spread around the mean.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Variance {
  static constexpr std::string_view name = "variance", summary = "Mean squared distance from the mean.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y = sum of (x - mean)^2 / max(n - correction, 0) over `axes` (none listed: all), n the number of "
      "elements; correction 1 estimates the variance of what x was drawn from";
  struct Attrs {
    std::vector<int> axes;
    bool keep_dim = false;
    double correction = 0;
    static constexpr auto fields() {
      return std::tuple{field("axes", &Attrs::axes, "axes to reduce; empty means all"),
                        field("keep_dim", &Attrs::keep_dim, "keep reduced axes with size 1"),
                        field("correction", &Attrs::correction, "taken off the number of elements")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
    return double(in[0].elements());
  }
  static std::vector<OpSample<Attrs>> samples();
};

Expr variance(Expr x, std::vector<int> axes, bool keep_dim = false, double correction = 0);

}  // namespace rlx::ops
