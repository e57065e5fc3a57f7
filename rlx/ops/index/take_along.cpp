#include "rlx/ops/index/take_along.h"

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/scatter.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

Shapes TakeAlong::infer(Infer& c, Attrs& a) {
  const Shape &x = c.in(0), &indices = c.in(1);
  c.require_index(1);
  a.axis = c.axis(a.axis, 0);
  Dims want = x.dims();
  if (indices.rank() == x.rank()) want[size_t(a.axis)] = indices.dim(a.axis);
  require_dims(c, 1, want, cat("(as x but along axis ", a.axis, ")"));
  return {x.with_dim(a.axis, indices.dim(a.axis))};
}

// All axes but one are batch axes of batched_gather.
Exprs TakeAlong::decompose(const Lower& c, const Attrs& a) {
  const int last = c.in(0).rank() - 1;
  const Expr y =
      batched_gather(move_axis(c.in(0), a.axis, last), move_axis(c.in(1), a.axis, last), last, last, a.mode);
  return {move_axis(y, last, a.axis)};
}

Exprs TakeAlong::vmap(const Vmap& c, const Attrs& a) {
  return {take_along(lifted(c, 0), lifted(c, 1), a.axis + 1, a.mode)};
}

std::vector<OpSample<TakeAlong::Attrs>> TakeAlong::samples() {
  return {{{-1}, {"f32[2,5]", "i32[2,3] <5"}}, {{0}, {"f64[4,2,3]", "i64[2,2,3] <4"}},
          {{1}, {"f32[3,2]", "u8[3,6] <2"}},   {{0}, {"i32[3]", "i32[0]"}},
          {{0}, {"f16[1]", "i32[1] <1"}},      {{-1, IndexMode::clamp}, {"f32[2,3]", "i32[2,4] in -2..5"}},
          {{0}, {"c64[3]", "u32[5] <3"}}};
}

Expr take_along(Expr x, Expr indices, int axis, IndexMode mode) {
  return make<TakeAlong>(*x.graph, {axis, mode}, {x, indices});
}

Expr put_along(Expr t, Expr indices, int axis, Dim size, IndexMode mode) {
  const int last = t.rank() - 1;
  const Expr y = scatter_add(move_axis(t, axis, last), move_axis(indices, axis, last), size, last, mode);
  return move_axis(y, last, axis);
}

}  // namespace rlx::ops
