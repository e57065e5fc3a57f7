// Rows into panels and back, for kernels that keep positions in the lanes.
#pragma once

#include "rlx/backend/cpu/kernels/isa/gemm_tile.h"
#include "rlx/backend/cpu/simd/narrow.h"
#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {

RLX_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
RLX_INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/// Up to whole tiles of columns.
RLX_INLINE int64_t padded(int64_t n) { return (n + kTileColumns - 1) / kTileColumns * kTileColumns; }

template <class T>
RLX_INLINE F32 fetch(const T* p, int64_t lanes) {
  return lanes >= kLanes ? load(p) : load_n(p, int(lanes));
}
template <class T>
RLX_INLINE void put(T* p, F32 v, int64_t lanes) {
  if (lanes >= kLanes) {
    store(p, v);
  } else {
    store_n(p, v, int(lanes));
  }
}

RLX_INLINE void clear(float* p, int64_t n) {  // n a multiple of kLanes
  for (int64_t i = 0; i < n; i += kLanes) store(p + i, F32{});
}

/// to[c * to_stride + r] = scale * from[r * from_stride + c] for r < rows, c < columns: squares in registers.
template <class P>
RLX_INLINE void turn(P from, int64_t from_stride, int64_t rows, int64_t columns, float scale, float* to,
                     int64_t to_stride) {
  for (int64_t c = 0; c < columns; c += kLanes) {
    for (int64_t r = 0; r < rows; r += kLanes) {
      F32 v[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        v[i] = r + i < rows ? fetch(from + ((r + i) * from_stride + c), columns - c) * set1(scale) : F32{};
      }
      transpose(v);
      for (int i = 0; i < kLanes && c + i < columns; ++i) put(to + (c + i) * to_stride + r, v[i], rows - r);
    }
  }
}

}  // namespace rlx::cpu::RLX_ISA
