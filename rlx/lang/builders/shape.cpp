#include "rlx/lang/builders/shape.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/take_along.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/dynamic_slice.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/flip.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/slice.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx {

Value ShapeBuilder::reshape(Value x, Dims new_shape, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::reshape(t(x), std::move(new_shape)); });
}

Value ShapeBuilder::transpose(Value x, std::vector<int> perm, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::transpose(t(x), std::move(perm)); });
}

Value ShapeBuilder::narrow(Value x, int axis, Dim start, Dim len, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::narrow(t(x), axis, start, len); });
}

Value ShapeBuilder::slice(Value x, Dims start, Dims limit, std::vector<int64_t> stride, const Declared& shape,
                          const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::slice(t(x), std::move(start), std::move(limit), std::move(stride)); });
}

Value ShapeBuilder::dynamic_slice(Value x, Value starts, Dims sizes, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::dynamic_slice(t(x), t(starts), std::move(sizes)); });
}

Value ShapeBuilder::dynamic_update_slice(Value x, Value update, Value starts, const Declared& shape,
                                         const Loc& loc) {
  return one(shape, loc, [&] { return ops::dynamic_update_slice(t(x), t(update), t(starts)); });
}

Value ShapeBuilder::concat(const Values& inputs, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::concat(ts(inputs), axis); });
}

Value ShapeBuilder::stack(const Values& inputs, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::stack(ts(inputs), axis); });
}

Value ShapeBuilder::expand(Value x, Dims new_shape, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::expand(t(x), std::move(new_shape)); });
}

Value ShapeBuilder::unsqueeze(Value x, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::unsqueeze(t(x), axis); });
}

Value ShapeBuilder::squeeze(Value x, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::squeeze(t(x), axis); });
}

Value ShapeBuilder::pad(Value x, Dims low, Dims high, double value, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::pad(t(x), std::move(low), std::move(high), value); });
}

Value ShapeBuilder::flip(Value x, std::vector<int> axes, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::flip(t(x), std::move(axes)); });
}

Value ShapeBuilder::iota(const Shape& type, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::iota(graph(), type, axis); });
}

Value ShapeBuilder::one_hot(Value indices, Dim depth, int axis, DType dtype, const Declared& shape,
                            const Loc& loc) {
  return one(shape, loc, [&] { return ops::one_hot(t(indices), depth, axis, dtype); });
}

Value ShapeBuilder::gather(Value table, Value indices, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::gather(t(table), t(indices), axis); });
}

Value ShapeBuilder::batched_gather(Value table, Value indices, int axis, int batch_dims,
                                   const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::batched_gather(t(table), t(indices), axis, batch_dims); });
}

Value ShapeBuilder::take_along(Value x, Value indices, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::take_along(t(x), t(indices), axis); });
}

Value ShapeBuilder::scatter(Value base, Value indices, Value updates, ops::ScatterKind kind,
                            const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::scatter(t(base), t(indices), t(updates), kind); });
}

Value ShapeBuilder::scatter_add(Value updates, Value indices, Dim rows, const Declared& shape,
                                const Loc& loc) {
  return one(shape, loc, [&] { return ops::scatter_add(t(updates), t(indices), rows); });
}

Value ShapeBuilder::reshape_(Value x, Dims new_shape, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::reshape(t(x), std::move(new_shape)); });
}

Value ShapeBuilder::transpose_(Value x, std::vector<int> perm, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::transpose(t(x), std::move(perm)); });
}

Value ShapeBuilder::narrow_(Value x, int axis, Dim start, Dim len, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::narrow(t(x), axis, start, len); });
}

Value ShapeBuilder::concat_(const Values& inputs, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::concat(ts(inputs), axis); });
}

Value ShapeBuilder::gather_(Value table, Value indices, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::gather(t(table), t(indices), axis); });
}

}  // namespace rlx
