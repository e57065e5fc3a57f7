#include "rlx/ops/shape/box.h"

#include <cstring>

namespace rlx::ops {

std::vector<int64_t> box_positions(const Dims& box, const Dims& in, const std::vector<int64_t>& start,
                                   const std::vector<int64_t>& stride) {
  std::vector<int64_t> step = row_major_strides(in);
  int64_t at = 0, total = 1;
  for (size_t k = 0; k < box.size(); ++k) {
    at += start[k] * step[k];
    step[k] *= stride[k];
    total *= box[k].value();
  }
  std::vector<int64_t> positions(static_cast<size_t>(total));
  std::vector<int64_t> index(box.size(), 0);
  for (int64_t& p : positions) {
    p = at;
    for (size_t k = box.size(); k-- > 0;) {  // the next index, like an odometer
      at += step[k];
      if (++index[k] < box[k].value()) break;
      at -= step[k] * index[k];
      index[k] = 0;
    }
  }
  return positions;
}

Literal pick_elements(const Literal& x, const std::vector<int64_t>& at, const Shape& result) {
  Literal y = Literal::zeros(result);
  const size_t size = dtype_size(x.dtype());
  std::byte* to = y.mutable_bytes().data();
  for (size_t i = 0; i < at.size(); ++i)
    std::memcpy(to + i * size, x.bytes().data() + size_t(at[i]) * size, size);
  return y;
}

void put_elements(const Literal& x, const std::vector<int64_t>& at, Literal& y) {
  const size_t size = dtype_size(x.dtype());
  std::byte* to = y.mutable_bytes().data();
  for (size_t i = 0; i < at.size(); ++i)
    std::memcpy(to + size_t(at[i]) * size, x.bytes().data() + i * size, size);
}

}  // namespace rlx::ops
