// Plan: along all axes but the last whole rows are blended, one multiply-add for two loads and a store a
// vector: bound by memory. The last axis needs single elements and stays scalar, see kernels/resize.cpp.
#include "rlx/backend/cpu/kernels/resize.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {
namespace {

void blend(const float* a, const float* b, float part, float* y, int64_t n) {
  const F32 wa = set1(1.0f - part), wb = set1(part);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, fma(load(a + i), wa, load(b + i) * wb));
  if (i < n) {
    const int l = int(n - i);
    store_n(y + i, fma(load_n(a + i, l), wa, load_n(b + i, l) * wb), l);
  }
}

void add_scaled(const float* x, float weight, float* y, int64_t n) {
  const F32 w = set1(weight);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, fma(load(x + i), w, load(y + i)));
  if (i < n) {
    const int l = int(n - i);
    store_n(y + i, fma(load_n(x + i, l), w, load_n(y + i, l)), l);
  }
}

}  // namespace

ResizeKernels resize_kernels() { return {blend, add_scaled}; }

}  // namespace rlx::cpu::RLX_ISA
