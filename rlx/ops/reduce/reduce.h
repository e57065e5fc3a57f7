// Reductions over any set of axes.
#pragma once

#include <array>

#include "rlx/ir/op_record.h"

namespace rlx::ops {

using namespace ir;  // NOLINT

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
  static Tensors vjp(const Vjp&, const Attrs&);
  static Tensors jvp(const Jvp&, const Attrs&);
  static Tensors vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Tensor reduce(Tensor x, ReduceOp kind, std::vector<int> axes, bool keep_dim);
inline Tensor reduce_sum(Tensor x, std::vector<int> axes, bool keep = false) {
  return reduce(x, ReduceOp::sum, std::move(axes), keep);
}
inline Tensor reduce_mean(Tensor x, std::vector<int> axes, bool keep = false) {
  return reduce(x, ReduceOp::mean, std::move(axes), keep);
}
inline Tensor reduce_max(Tensor x, std::vector<int> axes, bool keep = false) {
  return reduce(x, ReduceOp::max, std::move(axes), keep);
}

/// The type of operand 0 reduced over axes, which are brought into canonical form: none listed means all of
/// them, and they are listed then (except for a scalar, which has none).
Shape reduced_type(const Infer& c, std::vector<int>& axes, bool keep_dim);

/// Operand and axes of a reduction under vmap. A batch of scalars, whose list of axes is empty, gets an axis
/// of size 1 to reduce.
struct ReducedBatch {
  Tensor x;
  std::vector<int> axes;
};
ReducedBatch reduced_batch(const Vmap& c, std::vector<int> axes);

/// y seen with the reduced axes put back with size 1, ready to broadcast against x.
Tensor keep_reduced(Tensor y, const std::vector<int>& axes, bool kept);

/// The number of elements along axes, as a scalar of x's dtype; works for symbolic sizes.
Tensor count_like(Tensor x, const std::vector<int>& axes);

}  // namespace rlx::ops
