// Reductions over any set of axes.
#pragma once

#include <array>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

enum class ReduceOp { sum, mean, max, min, prod };
constexpr std::array<std::string_view, 5> choice_names(ReduceOp) {
  return {"sum", "mean", "max", "min", "prod"};
}

struct Reduce {
  static constexpr std::string_view name = "reduce", summary = "Sum, mean, max, min or product over axes.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y = kind of x over `axes` (none listed: all). Empty sums are 0, products 1, max -inf, min +inf, means "
      "NaN; integers wrap, mean is for floats, NaN wins in max and min. Tied extrema share the gradient; the "
      "gradient of a product is exact with any number of zeros";
  struct Attrs {
    ReduceOp kind = ReduceOp::sum;
    std::vector<int> axes;
    bool keep_dim = false;
    static constexpr auto fields() {
      return std::tuple{field("kind", &Attrs::kind, "how to combine"),
                        field("axes", &Attrs::axes, "axes to reduce; empty means all"),
                        field("keep_dim", &Attrs::keep_dim, "keep reduced axes with size 1")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
    return double(in[0].elements());
  }
  static std::vector<OpSample<Attrs>> samples();
};

Expr reduce(Expr x, ReduceOp kind, std::vector<int> axes, bool keep_dim);
inline Expr reduce_sum(Expr x, std::vector<int> axes, bool keep = false) {
  return reduce(x, ReduceOp::sum, std::move(axes), keep);
}
inline Expr reduce_mean(Expr x, std::vector<int> axes, bool keep = false) {
  return reduce(x, ReduceOp::mean, std::move(axes), keep);
}
inline Expr reduce_max(Expr x, std::vector<int> axes, bool keep = false) {
  return reduce(x, ReduceOp::max, std::move(axes), keep);
}

/// The type of operand 0 reduced over axes, which are brought into canonical form: none listed means all of
/// them, and they are listed then (except for a scalar, which has none).
Shape reduced_type(const Infer& c, std::vector<int>& axes, bool keep_dim);

/// Operand and axes of a reduction under vmap. A batch of scalars, whose list of axes is empty, gets an axis
/// of size 1 to reduce.
struct ReducedBatch {
  Expr x;
  std::vector<int> axes;
};
ReducedBatch reduced_batch(const Vmap& c, std::vector<int> axes);

/// y seen with the reduced axes put back with size 1, ready to broadcast against x.
Expr keep_reduced(Expr y, const std::vector<int>& axes, bool kept);

/// The number of elements along axes, as a scalar of x's dtype; works for symbolic sizes.
Expr count_like(Expr x, const std::vector<int>& axes);

}  // namespace rlx::ops
