// Plan: a tile of the product is as many rows (output channels) as the registers hold beside two vectors of
// columns (output positions): 14 x 2 vectors with 32 registers, 6 x 2 with 16. Its sums stay in registers
// over all taps and channels; a step loads two vectors of inputs, unaligned, and broadcasts one weight a row.
// At stride 1 the inputs of neighbouring outputs are neighbours for every tap, so they are read where they
// lie; otherwise they are gathered into a panel first. The gradient of the weights has (tap, channel) as
// rows, each a stream of inputs that is broadcast, and output channels as columns: dy is turned to
// [position][channel] once. Bound of both: multiply-adds, 2 * rows of them for rows + 2 loads.
//
// Depthwise: one load and one multiply-add a vector and tap, up to four vectors of outputs at a time so that
// a weight is broadcast once for them. Bound: loads, half of the peak of arithmetic.
#include "rlx/backend/cpu/kernels/conv/conv.h"

#include "rlx/backend/cpu/kernels/isa/turned.h"
#include "rlx/backend/cpu/simd/strided.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int kRows = (kRegisters - 4) / 2;
constexpr int kColumns = 2 * kLanes;

template <int R>
void tile_of(const ConvTile& p) {
  F32 s[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) s[r][0] = s[r][1] = set1(p.start != nullptr ? p.start[r] : 0.0f);
  const float* w = p.weights;
  for (int64_t t = 0; t < p.tap_count; ++t) {
    const float* x = p.source + p.taps[t];
    for (int64_t c = 0; c < p.channels; ++c, x += p.plane, w += R) {
      const F32 x0 = load(x), x1 = load(x + kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const F32 weight = set1(w[r]);
        s[r][0] = fma(weight, x0, s[r][0]);
        s[r][1] = fma(weight, x1, s[r][1]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    store(p.sums + r * p.sums_stride, s[r][0]);
    store(p.sums + r * p.sums_stride + kLanes, s[r][1]);
  }
}

template <int R>
void weight_tile_of(const ConvWeightTile& p) {
  F32 s[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
    s[r][0] = load(p.sums + r * kColumns), s[r][1] = load(p.sums + r * kColumns + kLanes);
  const float* dy = p.dy;
  for (int64_t run = 0; run < p.run_count; ++run) {
    const float* x[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) x[r] = p.source[r] + p.runs[run];
    int64_t at = 0;
    for (int64_t i = 0; i < p.length; ++i, at += p.step, dy += kColumns) {
      const F32 d0 = load(dy), d1 = load(dy + kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const F32 v = set1(x[r][at]);
        s[r][0] = fma(v, d0, s[r][0]);
        s[r][1] = fma(v, d1, s[r][1]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    store(p.sums + r * kColumns, s[r][0]);
    store(p.sums + r * kColumns + kLanes, s[r][1]);
  }
}

template <int R>
void tile_for(const ConvTile& p) {
  if (p.rows == R) return tile_of<R>(p);
  if constexpr (R > 1) tile_for<R - 1>(p);
}
template <int R>
void weight_tile_for(const ConvWeightTile& p) {
  if (p.rows == R) return weight_tile_of<R>(p);
  if constexpr (R > 1) weight_tile_for<R - 1>(p);
}

// A store may spill over the end of its run; what it spoils is written afterwards, since columns and rows are
// written in order.
template <int Step>
void gather_at(const ConvTile& p, const ConvSegment* segments, int64_t segment_count, int64_t any_step,
               bool loose, float* out) {
  const int64_t step = Step != 0 ? Step : any_step;
  for (int64_t t = 0; t < p.tap_count; ++t) {
    for (int64_t c = 0; c < p.channels; ++c, out += kColumns) {
      const float* from = p.source + c * p.plane + p.taps[t];
      int64_t filled = 0;
      for (int64_t s = 0; s < segment_count; ++s) {
        const float* at = from + segments[s].source;
        for (; filled < segments[s].column; ++filled) out[filled] = 0;
        float* to = out + filled;
        const int64_t n = segments[s].length;
        int64_t i = 0;
        if (loose) {
          for (; i < n; i += kLanes) store(to + i, load_strided(at + i * step, step));
        } else {
          // A step of two reads one element more than it uses.
          for (; i + kLanes + (step > 1 ? 1 : 0) <= n; i += kLanes)
            store(to + i, load_strided(at + i * step, step));
          for (; i < n; ++i) to[i] = at[i * step];
        }
        filled += n;
      }
      for (; filled < kColumns; ++filled) out[filled] = 0;
    }
  }
}

void gather(const ConvTile& p, const ConvSegment* segments, int64_t segment_count, int64_t step, bool loose,
            float* out) {
  const auto run = step == 1 ? gather_at<1> : (step == 2 ? gather_at<2> : gather_at<0>);
  run(p, segments, segment_count, step, loose, out);
}

void pack(const float* from, int64_t stride, int64_t rows, int64_t n, float* out) {
  turn_rows(from, stride, rows, n, 2, out);
}

template <int Step, int Vectors>
RLX_INLINE void weighted(const float* source, const int64_t* taps, const float* w, int64_t tap_count,
                         int64_t step, float start, float* y, int64_t n) {
  F32 s[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) s[v] = set1(start);
  for (int64_t t = 0; t < tap_count; ++t) {
    const float* at = source + taps[t];
    const F32 weight = set1(w[t]);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const int64_t left = n - v * kLanes;
      const float* from = at + v * kLanes * step;
      s[v] =
          fma(weight,
              Step != 0 || left >= kLanes ? load_strided(from, step) : load_strided_n(from, step, int(left)),
              s[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    const int64_t left = n - v * kLanes;
    left >= kLanes ? store(y + v * kLanes, s[v]) : store_n(y + v * kLanes, s[v], int(left));
  }
}

template <int Step>
void weighted_row_at(const float* source, const int64_t* taps, const float* w, int64_t tap_count,
                     int64_t any_step, float start, float* y, int64_t n) {
  const int64_t step = Step != 0 ? Step : any_step;
  for (int64_t i = 0; i < n; i += 4 * kLanes) {
    const float* from = source + i * step;
    const int64_t left = n - i;
    if (left > 3 * kLanes) {
      weighted<Step, 4>(from, taps, w, tap_count, step, start, y + i, left);
    } else if (left > 2 * kLanes) {
      weighted<Step, 3>(from, taps, w, tap_count, step, start, y + i, left);
    } else if (left > kLanes) {
      weighted<Step, 2>(from, taps, w, tap_count, step, start, y + i, left);
    } else {
      weighted<Step, 1>(from, taps, w, tap_count, step, start, y + i, left);
    }
  }
}

void weighted_row(const float* source, const int64_t* taps, const float* w, int64_t tap_count, int64_t step,
                  float start, float* y, int64_t n) {
  const auto run = step == 1 ? weighted_row_at<1> : (step == 2 ? weighted_row_at<2> : weighted_row_at<0>);
  run(source, taps, w, tap_count, step, start, y, n);
}

constexpr int kTapsTogether = 8;

// Beyond a run dy counts as zero, but what the source holds there may be no number: it is cut off as well.
RLX_INLINE F32 cut(F32 v, int lanes) {
  I32 index;
  for (int i = 0; i < kLanes; ++i) index[i] = i;
  return index < lanes ? v : F32{};
}

template <int Step, int Taps>
RLX_INLINE void products_of(const float* source, const int64_t* taps, int64_t any_step, const int64_t* runs,
                            int64_t run_count, const float* dy, int64_t n, float* sums) {
  const int64_t step = Step != 0 ? Step : any_step;
  F32 s[Taps] = {};
  for (int64_t r = 0; r < run_count; ++r) {
    const float* at = source + runs[r];
    const float* d = dy + r * n;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const F32 g = load(d + i);
#pragma GCC unroll 8
      for (int t = 0; t < Taps; ++t) s[t] = fma(g, load_strided(at + taps[t] + i * step, step), s[t]);
    }
    if (i == n) continue;
    const int l = int(n - i);
    const F32 g = load_n(d + i, l);
#pragma GCC unroll 8
    for (int t = 0; t < Taps; ++t) {
      const float* from = at + taps[t] + i * step;
      s[t] = fma(g, Step != 0 ? cut(load_strided(from, step), l) : load_strided_n(from, step, l), s[t]);
    }
  }
  for (int t = 0; t < Taps; ++t) sums[t] += reduce_add(s[t]);
}

template <int Step>
void row_products_at(const float* source, const int64_t* taps, int64_t tap_count, int64_t step,
                     const int64_t* runs, int64_t run_count, const float* dy, int64_t n, float* sums) {
  int64_t t = 0;
  for (; t + kTapsTogether <= tap_count; t += kTapsTogether)
    products_of<Step, kTapsTogether>(source, taps + t, step, runs, run_count, dy, n, sums + t);
  for (; t < tap_count; ++t) products_of<Step, 1>(source, taps + t, step, runs, run_count, dy, n, sums + t);
}

void row_products(const float* source, const int64_t* taps, int64_t tap_count, int64_t step,
                  const int64_t* runs, int64_t run_count, const float* dy, int64_t n, float* sums) {
  const auto run = step == 1 ? row_products_at<1> : (step == 2 ? row_products_at<2> : row_products_at<0>);
  run(source, taps, tap_count, step, runs, run_count, dy, n, sums);
}

}  // namespace

ConvKernels conv_kernels() {
  return {kRows, kColumns, tile_for<kRows>, weight_tile_for<kRows>, gather, pack, weighted_row, row_products};
}

}  // namespace rlx::cpu::RLX_ISA
