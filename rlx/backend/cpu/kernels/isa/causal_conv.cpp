// Plan: channels are neighbours, so a step of the sequence is a weighted sum of K rows of vectors with
// weights of the same lanes; the weights are turned to [K][C] once a call. K is about four: x is read K
// times, from L1 after the first. Bound: one read and one write of memory an element.
#include "rlx/backend/cpu/kernels/causal_conv.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {
namespace {

void weighted(const float* const* rows, const float* w, int64_t channels, int64_t count, float* y,
              int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int l = int(n - i < kLanes ? n - i : kLanes);
    F32 s = {};
    if (l == kLanes) {
      for (int64_t k = 0; k < count; ++k) s = fma(load(rows[k] + i), load(w + k * channels + i), s);
      store(y + i, s);
    } else {
      for (int64_t k = 0; k < count; ++k) s = fma(load_n(rows[k] + i, l), load_n(w + k * channels + i, l), s);
      store_n(y + i, s, l);
    }
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
