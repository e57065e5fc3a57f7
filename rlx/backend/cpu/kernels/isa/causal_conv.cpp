// Plan: channels are neighbours, so a step of the sequence is a weighted sum of K rows of vectors with
// weights of the same lanes, turned once a call. K is about four: x is read K
// times, from L1 after the first. Bound: one read and one write of memory an element.
#include "rlx/backend/cpu/kernels/causal_conv.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {
namespace {

// kCount 0: any number of rows.
template <int kCount>
RLX_INLINE void weighted_sum(const float* const* rows, const float* w, int64_t count, float* y, int64_t n) {
  const int64_t terms = kCount > 0 ? kCount : count;
  const float* from[kCount > 0 ? kCount : 1];  // in registers: y could change `rows`
  for (int k = 0; k < kCount; ++k) from[k] = rows[k];
  const auto row = [&](int64_t k) { return kCount > 0 ? from[k] : rows[k]; };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    F32 s = {};
    for (int64_t k = 0; k < terms; ++k) s = fma(load(row(k) + i), load(w + k * n + i), s);
    store(y + i, s);
  }
  if (i < n) {
    const int l = int(n - i);
    F32 s = {};
    for (int64_t k = 0; k < terms; ++k) s = fma(load_n(row(k) + i, l), load_n(w + k * n + i, l), s);
    store_n(y + i, s, l);
  }
}

void weighted(const float* const* rows, const float* w, int64_t count, float* y, int64_t n) {
  switch (count) {
    case 3:
      return weighted_sum<3>(rows, w, count, y, n);
    case 4:
      return weighted_sum<4>(rows, w, count, y, n);
    default:
      weighted_sum<0>(rows, w, count, y, n);
  }
}

void add_product(const float* a, const float* b, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, fma(load(a + i), load(b + i), load(y + i)));
  if (i < n) {
    const int l = int(n - i);
    store_n(y + i, fma(load_n(a + i, l), load_n(b + i, l), load_n(y + i, l)), l);
  }
}

}  // namespace

CausalConvKernels causal_conv_kernels() { return {weighted, add_product}; }

}  // namespace rlx::cpu::RLX_ISA
