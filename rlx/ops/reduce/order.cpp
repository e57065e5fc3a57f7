#include "rlx/ops/reduce/order.h"

#include "rlx/ops/index/take_along.h"

namespace rlx::ops {

void require_order(const Infer& c) {
  const Shape& x = c.in(0);
  if (is_complex(x.dtype())) c.fail("x: ", x, " is complex and has no order; use its real part or modulus");
  if (is_storage_only(x.dtype())) c.fail("x: ", x, " has dtype ", x.dtype(), "; cast it to f32 first");
}

Exprs routed_vjp(const Vjp& c, int axis) {
  if (!c.has_dy(0)) return {Expr{}};
  return {put_along(c.dy(0), c.out(1), axis, c.in(0).dim(axis))};
}

Exprs routed_jvp(const Jvp& c, int axis) {
  return {c.has_dx(0) ? take_along(c.dx(0), c.out(1), axis) : Expr{}, Expr{}};
}

}  // namespace rlx::ops
