#pragma once

#include <cstdint>

namespace rlx::cpu {

/// Element (b, h, i, d) of heads of rows lies at data[b * batch + h * head + i * row + d].
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
};

}  // namespace rlx::cpu
