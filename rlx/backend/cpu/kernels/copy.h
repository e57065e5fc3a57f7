// Copies between strided arrays: transpose, permute, slice, pad, concatenate are all one call with strides.
#pragma once

#include <cstdint>

#include "rlx/base/pool.h"

namespace rlx::cpu {

/// to[sum i_d * to_stride_d] = from[sum i_d * from_stride_d] for all 0 <= i_d < size_d; strides in elements.
/// The arrays do not overlap. Elements of 1, 2, 4, 8 or 16 bytes.
struct StridedCopy {
  static constexpr int kMaxRank = 8;
  int rank = 0;
  int64_t size[kMaxRank] = {};
  int64_t from_stride[kMaxRank] = {}, to_stride[kMaxRank] = {};
  int element_bytes = 4;
  const void* from = nullptr;
  void* to = nullptr;
};
void strided_copy(Team, const StridedCopy&);

struct CopyKernels {
  /// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns, elements of 4 bytes.
  /// `streaming` writes past the caches: `to` and to_stride are then multiples of 64 bytes.
  void (*transpose_4)(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride,
                      int64_t rows, int64_t columns, bool streaming);
};

}  // namespace rlx::cpu
