// Copies between strided arrays: transpose, permute, slice, flip, pad, concatenate, broadcast are all one
// call with strides.
#pragma once

#include <cstdint>

#include "rlx/base/pool.h"

namespace rlx::cpu {

/// to[sum i_d * to_stride_d] = from[sum i_d * from_stride_d] for all 0 <= i_d < size_d; strides in elements.
/// from_stride may be negative (flip; `from` is then the element read first) or 0 (broadcast); to_stride is
/// positive where size > 1. The arrays do not overlap. Elements of 1, 2, 4, 8 or 16 bytes.
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

/// Every element of a strided array becomes the one at `value`; the border of a pad is made of such boxes.
struct StridedFill {
  int rank = 0;
  int64_t size[StridedCopy::kMaxRank] = {};
  int64_t stride[StridedCopy::kMaxRank] = {};
  int element_bytes = 4;
  const void* value = nullptr;
  void* to = nullptr;
};
void strided_fill(Team, const StridedFill&);

struct alignas(16) Bytes16 {
  uint64_t low, high;
};

/// Serial forms for elements of one size. A line of n elements is contiguous in `to`.
template <class T>
struct LineKernels {
  static constexpr int64_t kStripBytes = 256;  // of a row of `to`, at most, in one strip
  /// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns. `streaming` writes past the
  /// caches: `to` and to_stride are then multiples of 64 bytes, and a fence must follow the last strip.
  void (*transpose)(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                    int64_t columns, bool streaming);
  void (*gather)(const T* from, int64_t from_stride, T* to, int64_t n);
  void (*reverse)(const T* from, T* to, int64_t n);  // from[0], from[-1], ...
  void (*fill)(T value, T* to, int64_t n);
};
struct CopyKernels {
  LineKernels<uint8_t> bytes_1;
  LineKernels<uint16_t> bytes_2;
  LineKernels<uint32_t> bytes_4;
  LineKernels<uint64_t> bytes_8;
  LineKernels<Bytes16> bytes_16;
  void (*stream)(const void* from, void* to, int64_t bytes);  // past the caches, any alignment
  void (*fence)();                                            // what was streamed is seen by others
};

}  // namespace rlx::cpu
