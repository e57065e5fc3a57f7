// Where heads lie in an operand of attention or rope.
#pragma once

#include "rlx/backend/cpu/kernels/head_strides.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/attention/heads.h"

namespace rlx::cpu {

/// The axes batch, head and row; -1 where the operand has none: a packed head is part of the row.
struct HeadAxes {
  int batch, head, row;
};
inline HeadAxes head_axes(ops::HeadLayout layout, int rank) {
  switch (layout) {
    case ops::HeadLayout::bshd:
      return {0, 2, 1};
    case ops::HeadLayout::bhsd:
      return {0, 1, 2};
    case ops::HeadLayout::bshd_packed:
      break;
  }
  return rank == 3 ? HeadAxes{0, -1, 1} : HeadAxes{-1, -1, 0};
}

/// `lanes` of a head, which is the way from head to head where they are packed.
inline HeadStrides head_strides(const Arg& x, ops::HeadLayout layout, int64_t lanes) {
  const HeadAxes axes = head_axes(layout, x.shape.rank());
  const auto stride = [&](int axis) { return axis < 0 ? 0 : x.layout.strides[size_t(axis)]; };
  return {stride(axes.batch), axes.head < 0 ? lanes : stride(axes.head), stride(axes.row)};
}

inline int64_t size_at(const Arg& x, int axis) { return axis < 0 ? 1 : x.shape.dim(axis).value(); }

}  // namespace rlx::cpu
