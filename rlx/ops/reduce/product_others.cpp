#include "rlx/ops/reduce/product_others.h"

#include <algorithm>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

Expr product_others(Expr x, const std::vector<int>& axes) {
  if (axes.empty()) return make<Full>(*x.graph, {x.shape(), 1}, {});
  // Bring the reduced axes to the end as one axis, run from both sides, and go back.
  std::vector<int> perm;
  Dims flat;
  Dim length = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) perm.push_back(i), flat.push_back(x.dim(i));
  }
  for (const int axis : axes) perm.push_back(axis), length = length * x.dim(axis);
  flat.push_back(length);
  const Expr moved = transpose(x, perm);
  const Expr rows = reshape(moved, flat);
  const Expr others = cumprod(rows, -1, true, false) * cumprod(rows, -1, true, true);
  std::vector<int> back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) back[size_t(perm[i])] = int(i);
  return transpose(reshape(others, Dims(moved.shape().dims())), back);
}

}  // namespace rlx::ops
