// Plan: every axis is done on vectors of neighbours that share their taps, one multiply-add for two loads and
// a store: along all axes but the last these are the elements of a row, along the last one they are the same
// column of as many rows as a vector has lanes, transposed in registers into a strip that stays in L1 and
// back. Bound: reading and writing the arrays once, while a plane fits in L2.
#include "rlx/backend/cpu/kernels/resize.h"

#include <algorithm>

#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

static_assert(kLanes <= kResizeRows);

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

void along(const ResizeAxis& s, const float* x, float* y, int64_t inner) {
  if (s.backward) {
    std::fill_n(y, s.to * inner, 0.0f);
    for (int64_t o = 0; o < s.from; ++o) {
      const ResizeTap t = s.taps[o];
      add_scaled(x + o * inner, 1 - t.part, y + t.low * inner, inner);
      if (t.part != 0) add_scaled(x + o * inner, t.part, y + t.high * inner, inner);
    }
    return;
  }
  for (int64_t o = 0; o < s.to; ++o) {
    const ResizeTap t = s.taps[o];
    if (t.part == 0) {
      std::copy_n(x + t.low * inner, inner, y + o * inner);
    } else {
      blend(x + t.low * inner, x + t.high * inner, t.part, y + o * inner, inner);
    }
  }
}

// to[i] = column i of x[rows, n]; lanes without a row are zero.
void take_columns(const float* x, int64_t rows, int64_t n, float* to) {
  F32 v[kLanes];
  for (int64_t i = 0; i < n; i += kLanes) {
    const int l = int(std::min<int64_t>(kLanes, n - i));
    for (int r = 0; r < kLanes; ++r)
      v[r] = r >= rows ? F32{} : l == kLanes ? load(x + r * n + i) : load_n(x + r * n + i, l);
    transpose(v);
    for (int j = 0; j < l; ++j) store(to + (i + j) * kLanes, v[j]);
  }
}

void put_columns(const float* from, int64_t rows, int64_t n, float* y) {
  F32 v[kLanes];
  for (int64_t i = 0; i < n; i += kLanes) {
    const int l = int(std::min<int64_t>(kLanes, n - i));
    for (int j = 0; j < kLanes; ++j) v[j] = j < l ? load(from + (i + j) * kLanes) : F32{};
    transpose(v);
    for (int r = 0; r < kLanes && r < rows; ++r)
      l == kLanes ? store(y + r * n + i, v[r]) : store_n(y + r * n + i, v[r], l);
  }
}

void last(const ResizeAxis& s, const float* x, float* y, int64_t rows, float* scratch) {
  float *in = scratch, *out = scratch + s.from * kLanes;
  for (int64_t r = 0; r < rows; r += kLanes) {
    const int64_t count = std::min<int64_t>(kLanes, rows - r);
    take_columns(x + r * s.from, count, s.from, in);
    if (s.backward) {
      std::fill_n(out, s.to * kLanes, 0.0f);
      for (int64_t o = 0; o < s.from; ++o) {
        const ResizeTap t = s.taps[o];
        const F32 v = load(in + o * kLanes);
        float *low = out + t.low * kLanes, *high = out + t.high * kLanes;
        store(low, fma(v, set1(1 - t.part), load(low)));
        if (t.part != 0) store(high, fma(v, set1(t.part), load(high)));
      }
    } else {
      for (int64_t o = 0; o < s.to; ++o) {
        const ResizeTap t = s.taps[o];
        F32 v = load(in + t.low * kLanes);
        if (t.part != 0) v = fma(v, set1(1 - t.part), load(in + t.high * kLanes) * set1(t.part));
        store(out + o * kLanes, v);
      }
    }
    put_columns(out, count, s.to, y + r * s.to);
  }
}

}  // namespace

ResizeKernels resize_kernels() { return {along, last}; }

}  // namespace rlx::cpu::RLX_ISA
