#include "rlx/ops/linear/product.h"

namespace rlx::ops {

Shape product_shape(Infer& c, const Shape& left, int i) {
  const Shape& right = c.in(i);
  if (left.rank() < 2) c.fail(left, " has rank ", left.rank(), "; it must have rank 2 or more");
  c.require_min_rank(i, 2);
  if (decide_equal(left.dim(-1), right.dim(-2)) == false) {
    c.fail(c.operand_name(i), ": ", right, " must have ", left.dim(-1), " rows to follow ", left);
  }
  c.same(left.dim(-1), right.dim(-2), "inner sizes");
  const auto batch = [](const Shape& s) { return s.with_dims(Dims(s.dims().begin(), s.dims().end() - 2)); };
  Dims dims = c.broadcast(batch(left), batch(right));
  dims.push_back(left.dim(-2));
  dims.push_back(right.dim(-1));
  return left.with_dims(std::move(dims));
}

}  // namespace rlx::ops
