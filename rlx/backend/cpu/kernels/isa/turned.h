// Rows that become columns, in panels of whole vectors.
#pragma once

#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {

/// out[i][r] = from[r stride + i] for r < rows, zero for rows <= r < vectors * lanes; i < n.
RLX_INLINE void turn_rows(const float* from, int64_t stride, int64_t rows, int64_t n, int vectors,
                          float* out) {
  const int64_t width = vectors * kLanes;
  for (int64_t first = 0; first < width; first += kLanes) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      F32 v[kLanes] = {};
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) {
        if (first + r < rows) v[r] = load(from + (first + r) * stride + i);
      }
      transpose(v);
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j) store(out + (i + j) * width + first, v[j]);
    }
    for (; i < n; ++i) {
      for (int64_t r = first; r < first + kLanes; ++r)
        out[i * width + r] = r < rows ? from[r * stride + i] : 0.0f;
    }
  }
}

}  // namespace rlx::cpu::RLX_ISA
