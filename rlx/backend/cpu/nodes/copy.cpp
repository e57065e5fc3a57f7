// Copies between layouts.
#include "rlx/backend/cpu/kernels/copy.h"

#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/backend/reference.h"

namespace rlx::cpu {
namespace {

// Axes of size 1 are dropped and neighbours that are one run in both arrays joined, so that the rank is what the copy
// really has.
bool describe(const Arg& from, const Arg& to, StridedCopy& c) {
  c.element_bytes = int(dtype_size(from.dtype()));
  for (int i = 0; i < from.shape.rank(); ++i) {
    const int64_t size = from.shape.dim(i).value();
    const int64_t x = from.layout.strides[size_t(i)], y = to.layout.strides[size_t(i)];
    if (size == 1) continue;
    const int last = c.rank - 1;
    if (c.rank > 0 && c.from_stride[last] == size * x && c.to_stride[last] == size * y) {
      c.size[last] *= size;
      c.from_stride[last] = x;
      c.to_stride[last] = y;
      continue;
    }
    if (c.rank == StridedCopy::kMaxRank) return false;
    c.size[c.rank] = size;
    c.from_stride[c.rank] = x;
    c.to_stride[c.rank++] = y;
  }
  if (c.rank == 0) c.size[0] = c.from_stride[0] = c.to_stride[0] = 1, c.rank = 1;
  return true;
}

}  // namespace

std::unique_ptr<Step> prepare_copy(const Arg& from, const Arg& to) {
  StridedCopy c;
  if (!describe(from, to, c)) return backend::prepare_plain_copy(from, to);
  if (from.shape.elements() == 0) return make_step([](const Launch&) {});
  return make_step([c](const Launch& l) {
    StridedCopy now = c;
    now.from = l.in[0];
    now.to = l.out[0];
    strided_copy(l.team, now);
  });
}

}  // namespace rlx::cpu
