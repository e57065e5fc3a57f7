// Plan: squares of one vector by one vector are turned in registers; reads and writes are whole vectors, a
// full cache line at AVX-512. The caller hands in blocks small enough for L1. Bound: memory, one read and one
// write.
#include "rlx/backend/cpu/kernels/copy.h"

#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

void transpose_4(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride, int64_t rows,
                 int64_t columns, bool streaming) {
  const float* f = reinterpret_cast<const float*>(from);
  float* t = reinterpret_cast<float*>(to);
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kLanes * kLanes;
  const auto square = [&](auto put) {
    for (int64_t j = 0; j < whole_columns; j += kLanes) {
      for (int64_t i = 0; i < whole_rows; i += kLanes) {
        F32 v[kLanes];
        for (int r = 0; r < kLanes; ++r) v[r] = load(f + (i + r) * from_stride + j);
        transpose(v);
        for (int c = 0; c < kLanes; ++c) put(t + (j + c) * to_stride + i, v[c]);
      }
    }
  };
  if (streaming && kVectorBytes == 64) {
    square([](float* p, F32 v) { stream(p, v); });
    stream_fence();
  } else {
    square([](float* p, F32 v) { store(p, v); });
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
      to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

}  // namespace

CopyKernels copy_kernels() { return {transpose_4}; }

}  // namespace rlx::cpu::RLX_ISA
