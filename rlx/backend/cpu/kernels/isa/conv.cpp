// Plan: the product itself is gemm's; here lies what feeds it and what does without it.
//   gather        a panel of the product: runs of neighbouring outputs are runs of neighbouring inputs (every
//                 second one at step 2), copied by whole vectors. A store may spill over the end of its run;
//                 what it spoils is written afterwards, since columns and rows are written in order. Cost:
//                 one load and one store a vector for as many multiply-adds as the product has rows.
//   weighted_row  depthwise: one load and one multiply-add a vector and tap, four vectors of outputs at a
//   time
//                 so that a weight is broadcast once for them. Bound: loads, half of the peak of arithmetic.
//   row_products  depthwise weights: eight taps' sums in registers, dy read once for them.
#include "rlx/backend/cpu/kernels/conv.h"
#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

RLX_INLINE F32 fetch(const float* p, int64_t step) {
  if (step == 1) return load(p);
  if (step == 2) return every_second(load(p), load(p + kLanes), false);
  F32 v;
  for (int i = 0; i < kLanes; ++i) v[i] = p[i * step];
  return v;
}
RLX_INLINE F32 fetch_n(const float* p, int64_t step, int n) {
  F32 v = {};
  for (int i = 0; i < n; ++i) v[i] = p[i * step];
  return v;
}

template <int Step>
void gather_at(const float* source, int64_t plane, int64_t channels, const int64_t* taps, int64_t tap_count,
               const ConvSegment* segments, int64_t segment_count, int64_t any_step, int64_t width,
               bool loose, float* out) {
  const int64_t step = Step != 0 ? Step : any_step;
  const ConvSegment& last = segments[segment_count - 1];
  const int64_t filled = last.column + last.length;
  for (int64_t t = 0; t < tap_count; ++t) {
    for (int64_t c = 0; c < channels; ++c, out += width) {
      const float* from = source + c * plane + taps[t];
      for (int64_t s = 0; s < segment_count; ++s) {
        const float* at = from + segments[s].source;
        float* to = out + segments[s].column;
        const int64_t n = segments[s].length;
        if (loose) {
          for (int64_t i = 0; i < n; i += kLanes) store(to + i, fetch(at + i * step, step));
          continue;
        }
        int64_t i = 0;
        // A step of two reads one element more than it uses.
        for (; i + kLanes + (step > 1 ? 1 : 0) <= n; i += kLanes) store(to + i, fetch(at + i * step, step));
        for (; i < n; ++i) to[i] = at[i * step];
      }
      for (int64_t i = filled; i < width; ++i) out[i] = 0;
    }
  }
}

void gather(const float* source, int64_t plane, int64_t channels, const int64_t* taps, int64_t tap_count,
            const ConvSegment* segments, int64_t segment_count, int64_t step, int64_t width, bool loose,
            float* out) {
  const auto run = step == 1 ? gather_at<1> : (step == 2 ? gather_at<2> : gather_at<0>);
  run(source, plane, channels, taps, tap_count, segments, segment_count, step, width, loose, out);
}

template <int Step>
void weighted_row_at(const float* source, const int64_t* taps, const float* w, int64_t tap_count,
                     int64_t any_step, float start, float* y, int64_t n) {
  const int64_t step = Step != 0 ? Step : any_step;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    F32 s[4] = {set1(start), set1(start), set1(start), set1(start)};
    for (int64_t t = 0; t < tap_count; ++t) {
      const float* at = source + taps[t] + i * step;
      const F32 weight = set1(w[t]);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) s[v] = fma(weight, fetch(at + v * kLanes * step, step), s[v]);
    }
    for (int v = 0; v < 4; ++v) store(y + i + v * kLanes, s[v]);
  }
  for (; i < n; i += kLanes) {
    const int l = int(n - i < kLanes ? n - i : kLanes);
    F32 s = set1(start);
    for (int64_t t = 0; t < tap_count; ++t) {
      const float* at = source + taps[t] + i * step;
      s = fma(set1(w[t]), step <= 2 ? fetch(at, step) : fetch_n(at, step, l), s);
    }
    l == kLanes ? store(y + i, s) : store_n(y + i, s, l);
  }
}

void weighted_row(const float* source, const int64_t* taps, const float* w, int64_t tap_count, int64_t step,
                  float start, float* y, int64_t n) {
  const auto run = step == 1 ? weighted_row_at<1> : (step == 2 ? weighted_row_at<2> : weighted_row_at<0>);
  run(source, taps, w, tap_count, step, start, y, n);
}

constexpr int kTapsTogether = 8;

template <int Step, int Taps>
RLX_INLINE void products_of(const float* source, const int64_t* taps, int64_t any_step, const int64_t* rows,
                            int64_t row_count, const float* dy, int64_t n, float* sums) {
  const int64_t step = Step != 0 ? Step : any_step;
  F32 s[Taps] = {};
  for (int64_t r = 0; r < row_count; ++r) {
    const float* at = source + rows[r];
    const float* d = dy + r * n;
    for (int64_t i = 0; i < n; i += kLanes) {
      const int l = int(n - i < kLanes ? n - i : kLanes);
      const F32 g = l == kLanes ? load(d + i) : load_n(d + i, l);
#pragma GCC unroll 8
      for (int t = 0; t < Taps; ++t) {
        const float* from = at + taps[t] + i * step;
        // Beyond the row dy counts as zero, but what the source holds there may be no number.
        const F32 x = l == kLanes ? fetch(from, step) : fetch_n(from, step, l);
        s[t] = fma(g, x, s[t]);
      }
    }
  }
  for (int t = 0; t < Taps; ++t) sums[t] += reduce_add(s[t]);
}

template <int Step>
void row_products_at(const float* source, const int64_t* taps, int64_t tap_count, int64_t step,
                     const int64_t* rows, int64_t row_count, const float* dy, int64_t n, float* sums) {
  int64_t t = 0;
  for (; t + kTapsTogether <= tap_count; t += kTapsTogether)
    products_of<Step, kTapsTogether>(source, taps + t, step, rows, row_count, dy, n, sums + t);
  for (; t < tap_count; ++t) products_of<Step, 1>(source, taps + t, step, rows, row_count, dy, n, sums + t);
}

void row_products(const float* source, const int64_t* taps, int64_t tap_count, int64_t step,
                  const int64_t* rows, int64_t row_count, const float* dy, int64_t n, float* sums) {
  const auto run = step == 1 ? row_products_at<1> : (step == 2 ? row_products_at<2> : row_products_at<0>);
  run(source, taps, tap_count, step, rows, row_count, dy, n, sums);
}

}  // namespace

ConvKernels conv_kernels() { return {gather, weighted_row, row_products}; }

}  // namespace rlx::cpu::RLX_ISA
