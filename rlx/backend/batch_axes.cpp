#include "rlx/backend/batch_axes.h"

namespace rlx::backend {

std::vector<BatchAxis> batch_axes(const Arg& a, const Arg& b, const Arg& c) {
  std::vector<BatchAxis> out;
  const int rank = c.shape.rank();
  const auto stride = [&](const Arg& x, int axis) -> int64_t {
    const int own = axis - (rank - x.shape.rank());
    if (own < 0 || x.shape.dim(own) == Dim(1)) return 0;
    return x.layout.strides[size_t(own)];
  };
  for (int axis = rank - 3; axis >= 0; --axis) {
    const BatchAxis x{c.shape.dim(axis).value(), stride(a, axis), stride(b, axis), stride(c, axis)};
    if (x.size == 1) continue;
    if (!out.empty()) {
      BatchAxis& in = out.back();
      if (x.a == in.size * in.a && x.b == in.size * in.b && x.c == in.size * in.c) {
        in.size *= x.size;
        continue;
      }
    }
    out.push_back(x);
  }
  return out;
}

}  // namespace rlx::backend
