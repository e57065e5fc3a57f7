// Plan: a tile is one vector of columns times eight output rows. The input rows it meets are loaded one after
// the other, once for each column of the kernel, and each load serves every output row it belongs to: for 3 x
// 3 30 loads and 72 multiply-adds. Planes are read in place: lanes left and right of the plane are masked
// off, rows above and below are a row of zeros. The gradient of the weights has the same loads with eight (5
// x 5: four) rows of dy in registers and one sum a tap. Bound: multiply-adds, 7/8 of them on rows of 56.
#include "rlx/backend/cpu/kernels/conv/conv_depthwise.h"

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {
namespace {

/// Lanes [first, last) of a load; the others are zero and their memory is not touched.
struct LaneRange {
#if defined(RLX_AVX512)
  __mmask16 mask;
#elif defined(RLX_AVX2)
  I32 mask;
#else
  int first, last;
#endif
};
// The lanes whose column, lane + column, is in [0, width).
RLX_INLINE LaneRange lanes_inside(int64_t column, int64_t width) {
  const int first = int(column >= 0 ? 0 : (column < -kLanes ? kLanes : -column));
  const int last = int(width - column <= first ? first : (width - column > kLanes ? kLanes : width - column));
#if defined(RLX_AVX512)
  return {__mmask16(((1u << last) - 1) & ~((1u << first) - 1))};
#elif defined(RLX_AVX2)
  I32 mask;
  for (int i = 0; i < kLanes; ++i) mask[i] = i >= first && i < last ? -1 : 0;
  return {mask};
#else
  return {first, last};
#endif
}
RLX_INLINE F32 load_range(const float* p, const LaneRange& lanes) {
#if defined(RLX_AVX512)
  return (F32)_mm512_maskz_loadu_ps(lanes.mask, p);
#elif defined(RLX_AVX2)
  return (F32)_mm256_maskload_ps(p, (__m256i)lanes.mask);
#else
  if (lanes.last - lanes.first == kLanes) return load(p);
  F32 v = {};
  for (int i = lanes.first; i < lanes.last; ++i) v[i] = p[i];
  return v;
#endif
}

RLX_INLINE const float* row_of(const ConvPlane& p, int64_t i1) {
  return i1 >= 0 && i1 < p.height ? p.x + i1 * p.width : p.zeros;
}

template <int K>
void forward_of(const ConvPlane& p, const float* w, float start, float* y) {
  constexpr int rows = 8;
  for (int64_t column = 0; column < p.y_width; column += kLanes) {
    LaneRange inside[K];
    for (int k = 0; k < K; ++k) inside[k] = lanes_inside(column + p.low2 + k, p.width);
    const int count = int(p.y_width - column < kLanes ? p.y_width - column : kLanes);
    for (int64_t row = 0; row < p.y_height; row += rows) {
      F32 s[rows];
#pragma GCC unroll 8
      for (int o = 0; o < rows; ++o) s[o] = set1(start);
#pragma GCC unroll 16
      for (int r = 0; r < rows + K - 1; ++r) {
        const float* x = row_of(p, row + p.low1 + r) + column + p.low2;
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) {
          const F32 v = load_range(x + k, inside[k]);
#pragma GCC unroll 8
          for (int o = 0; o < rows; ++o) {
            if (r - o >= 0 && r - o < K) s[o] = fma(set1(w[(r - o) * K + k]), v, s[o]);
          }
        }
      }
      float* to = y + row * p.y_width + column;
#pragma GCC unroll 8
      for (int o = 0; o < rows; ++o, to += p.y_width) {
        if (row + o < p.y_height) count == kLanes ? store(to, s[o]) : store_n(to, s[o], count);
      }
    }
  }
}

template <int K, int Rows>
void weights_of(const ConvPlane& p, const float* dy, float* dw) {
  F32 s[K * K] = {};
  for (int64_t column = 0; column < p.y_width; column += kLanes) {
    LaneRange inside[K];
    for (int k = 0; k < K; ++k) inside[k] = lanes_inside(column + p.low2 + k, p.width);
    const LaneRange there = lanes_inside(column, p.y_width);
    for (int64_t row = 0; row < p.y_height; row += Rows) {
      F32 d[Rows];
#pragma GCC unroll 8
      for (int o = 0; o < Rows; ++o)
        d[o] = row + o < p.y_height ? load_range(dy + (row + o) * p.y_width + column, there) : F32{};
#pragma GCC unroll 16
      for (int r = 0; r < Rows + K - 1; ++r) {
        const float* x = row_of(p, row + p.low1 + r) + column + p.low2;
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) {
          const F32 v = load_range(x + k, inside[k]);
#pragma GCC unroll 8
          for (int o = 0; o < Rows; ++o) {
            if (r - o >= 0 && r - o < K) s[(r - o) * K + k] = fma(d[o], v, s[(r - o) * K + k]);
          }
        }
      }
    }
  }
  for (int t = 0; t < K * K; ++t) dw[t] += reduce_add(s[t]);
}

void forward(const ConvPlane& p, int kernel, const float* w, float start, float* y) {
  (kernel == 3 ? forward_of<3> : (kernel == 5 ? forward_of<5> : forward_of<7>))(p, w, start, y);
}
void weights(const ConvPlane& p, int kernel, const float* dy, float* dw) {
  (kernel == 3 ? weights_of<3, 8> : weights_of<5, 4>)(p, dy, dw);
}

}  // namespace

ConvPlaneKernels conv_plane_kernels() { return {forward, weights}; }

}  // namespace rlx::cpu::RLX_ISA
