// Apart from the reference rules, so that programs without them can copy.
#include <cstring>

#include "rlx/backend/reference.h"

namespace rlx::backend {

std::unique_ptr<Step> prepare_plain_copy(const Arg& from, const Arg& to) {
  std::vector<int64_t> sizes;
  for (const Dim d : from.shape.dims()) sizes.push_back(d.value());
  return make_step([sizes, x = from.layout.strides, y = to.layout.strides, elements = from.shape.elements(),
                    bytes = dtype_size(from.dtype())](const Launch& l) {
    for (int64_t e = 0; e < elements; ++e) {
      int64_t rest = e, at_x = 0, at_y = 0;
      for (size_t i = sizes.size(); i-- > 0;) {
        const int64_t k = rest % sizes[i];
        rest /= sizes[i];
        at_x += k * x[i];
        at_y += k * y[i];
      }
      std::memcpy(l.out[0] + at_y * int64_t(bytes), l.in[0] + at_x * int64_t(bytes), bytes);
    }
  });
}

}  // namespace rlx::backend
