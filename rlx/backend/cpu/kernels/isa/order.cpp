// Plan: passes over one row that lives in L1 or comes from memory once: a comparison against a threshold that
// nearly all elements fail, a maximum, exponentials. Bound: reading the row.
#include "rlx/backend/cpu/kernels/order.h"

#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

int64_t above(const float* x, int64_t n, float threshold, int32_t* places) {
  const F32 limit = set1(threshold);
  int64_t count = 0, i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    uint32_t bits = mask_bits(~(load(x + i) <= limit));
    for (; bits != 0; bits &= bits - 1) places[count++] = int32_t(i) + __builtin_ctz(bits);
  }
  for (; i < n; ++i) {
    if (!(x[i] <= threshold)) places[count++] = int32_t(i);
  }
  return count;
}

/// The first place that `test` accepts, or n.
template <class Test>
RLX_INLINE int64_t first_where(const float* x, int64_t n, Test test) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const uint32_t bits = mask_bits(test(load(x + i)));
    if (bits != 0) return i + __builtin_ctz(bits);
  }
  for (; i < n; ++i) {
    if (mask_bits(test(set1(x[i]))) != 0) return i;
  }
  return n;
}

int64_t argmax(const float* x, int64_t n) {
  const F32 lowest = set1(-__builtin_inff());
  F32 top[4] = {lowest, lowest, lowest, lowest};
  I32 ordered = lowest == lowest;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const F32 value = load(x + i + v * kLanes);
      ordered &= value == value;
      top[v] = max(value, top[v]);
    }
  }
  float largest = reduce_max(max(max(top[0], top[1]), max(top[2], top[3])));
  bool nan = any(~ordered);
  for (; i < n; ++i) {
    nan |= x[i] != x[i];
    largest = x[i] > largest ? x[i] : largest;
  }
  if (nan) return first_where(x, n, [](F32 v) { return v != v; });
  return first_where(x, n, [largest](F32 v) { return v == largest; });
}

void divide(const float* x, float divisor, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / divisor;
}

void exponentials(const float* x, float top, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, exp(load(x + i) - top));
  if (i < n) store_n(y + i, exp(load_n(x + i, int(n - i)) - top), int(n - i));
}

double sum(const float* x, int64_t n) {
  F64Pair s[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const F64Pair d = to_double(load(x + i + v * kLanes));
      s[v] = {s[v].low + d.low, s[v].high + d.high};
    }
  }
  double total = reduce_add((s[0].low + s[0].high) + (s[1].low + s[1].high));
  for (; i < n; ++i) total += double(x[i]);
  return total;
}

}  // namespace

OrderKernels order_kernels() { return {above, argmax, divide, exponentials, sum}; }

}  // namespace rlx::cpu::RLX_ISA
