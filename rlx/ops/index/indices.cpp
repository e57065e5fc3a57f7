#include "rlx/ops/index/indices.h"

#include <algorithm>
#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::ops {

std::vector<int64_t> index_values(const Literal& indices, std::string_view op, std::string_view operand) {
  if (is_float(indices.dtype())) {
    for (int64_t i = 0; i < indices.elements(); ++i) {
      const double v = indices.real_at(i);
      if (!(std::trunc(v) == v && std::fabs(v) < 0x1p62))
        throw invalid(op, ": element ", i, " of ", operand, " is ", v, "; an index is a whole number");
    }
  }
  return indices.to_integers();
}

std::vector<int64_t> index_values_below(int64_t size, const Literal& indices, IndexMode mode,
                                        std::string_view op) {
  auto v = index_values(indices, op, "indices");
  for (size_t i = 0; i < v.size(); ++i) {
    if (v[i] >= 0 && v[i] < size) continue;
    if (mode == IndexMode::error || size == 0) {
      throw invalid(op, ": element ", i, " of indices is ", v[i], "; it must be at least 0 and below ", size);
    }
    v[i] = std::clamp<int64_t>(v[i], 0, size - 1);
  }
  return v;
}

Expr dim_value(Graph& g, Dim d) {
  if (d.is_static()) return {&g, g.constant(Literal::of<int64_t>({}, {d.value()}))};
  return reduce_sum(full(g, Shape(DType::i64, {d}), 1), {0});
}

}  // namespace rlx::ops
