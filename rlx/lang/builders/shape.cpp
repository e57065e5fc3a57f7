#include "rlx/lang/builders/shape.h"

#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"
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

}  // namespace rlx
