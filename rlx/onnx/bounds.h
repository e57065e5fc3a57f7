// Tensors of which only a part is meant: masks over the rest, and where the bounds go.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// The bound of an axis; null when all of it is meant.
const Bound* bound_at(const Item&, int axis);

/// Adds a bound unless the axis has one.
void add_bound(Item&, const Bound&);

/// Operands of an elementwise operator of which data decides an extent may be held in different numbers: all are cut to
/// the least of them, which is enough for what is meant.
void meet_elementwise(Call&);

/// The bounds of extents that data decides.
std::vector<Bound> bounds_of(const std::vector<Size>&);

/// The bounds of an item when the axes of `gone` are taken away, or kept with size 1.
std::vector<Bound> bounds_without(const Item&, const std::vector<int>& gone, bool keep);

/// The first places of an axis of a constant.
Literal first_places(const Literal&, int axis, int64_t count);

/// Which places of an axis of size n are meant, shaped to meet a tensor of this rank.
Tensor meant_places(const Call&, Dim n, int axis, int rank, const Tensor& count);

/// Operand i with `fill` where it is not meant along the axes given.
Tensor masked(const Call&, int i, const std::vector<int>& axes, const Literal& fill);
Tensor masked(const Call&, int i, const std::vector<int>& axes, double fill);

/// The least or the greatest number of a type, to lose every comparison.
Literal lowest(DType);
Literal highest(DType);

/// Places of the true elements of [n] first, in their order, then the others; and how many are true.
Tensor chosen_first(const Tensor& flags);
Tensor count_of(const Tensor& flags);

/// x[at] along an axis, 0 behind the count.
Item bounded_rows(const Call&, const Tensor& x, const Tensor& at, const Tensor& count, int axis = 0);

}  // namespace rlx::onnx
