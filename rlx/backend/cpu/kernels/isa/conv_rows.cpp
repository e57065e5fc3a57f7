// Plan: a tile is up to 14 neighbouring outputs of a row times two vectors of output channels with 32
// registers (6 with 16), or half as many outputs times four vectors where rows are short. Sums stay in
// registers over all taps and channels of a block; a step loads the weights of one input channel,
// [tap][channel][panel] and so one stream from L2, and spreads one input an output, whose places differ by
// constants. Nothing but multiply-adds is left: 28 of them for 16 loads. Widths that are a multiple of 7
// waste no place, and a tap that meets only padding at the end of a row costs nothing. Bound: multiply-adds.
//
// The finished sums, [output][channel], are turned in squares of registers, 2 x 64 shuffles a tile, and
// stored. Doing this through memory took 2.5 % of a tile of 64 channels and 9 taps instead of 0.5.
#include "rlx/backend/cpu/kernels/conv/conv_rows.h"

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int kPositions = (kRegisters - 4) / 2;

// One tap: outputs First to Last - 1 of R.
template <int First, int Last, int Step, int R, int V>
RLX_INLINE void add_tap(const float* x, int64_t plane, int64_t channels, const float* w, F32 (&s)[R][V]) {
  for (int64_t c = 0; c < channels; ++c, x += plane, w += V * kLanes) {
    F32 b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) b[v] = load(w + v * kLanes);
#pragma GCC unroll 16
    for (int r = First; r < Last; ++r) {
      const F32 a = set1(x[r * Step]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) s[r][v] = fma(a, b[v], s[r][v]);
    }
  }
}

// A square whose rows are positions, `rows` of which count: column i < columns goes to p.out + at + i stride.
RLX_INLINE void store_turned(const ConvRowTile& p, F32 (&t)[kLanes], int rows, int64_t columns, int64_t at) {
  transpose(t);
  if (p.residual != nullptr) {
    const float* from = p.residual + at;
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i, from += p.out_stride) {
      if (i < columns) t[i] += rows == kLanes ? load(from) : load_n(from, rows);
    }
  }
  if (p.relu) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) t[i] = max(F32{}, t[i]);
  }
  float* out = p.out + at;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i, out += p.out_stride) {
    if (i < columns) rows == kLanes ? store(out, t[i]) : store_n(out, t[i], rows);
  }
}

// The finished sums of a tile that is not of the whole width of its registers.
void turn(const ConvRowTile& p) {
  const int64_t panel = p.vectors * kLanes;
  for (int j = 0; j < p.positions; j += kLanes) {
    const int rows = p.positions - j < kLanes ? p.positions - j : kLanes;
    for (int64_t v = 0; v < p.out_channels; v += kLanes) {
      F32 t[kLanes] = {};
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (i < rows) t[i] = load(p.sums + (j + i) * panel + v);
      }
      store_turned(p, t, rows, p.out_channels - v, v * p.out_stride + j);
    }
  }
}

template <int R, int V, int Step>
void tile_of(const ConvRowTile& p) {
  F32 s[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) s[r][v] = load(p.start + r * p.start_stride + v * kLanes);
  }
  for (int64_t t = 0; t < p.tap_count; ++t) {
    const ConvRowTap& tap = p.taps[t];
    const float* x = p.source + tap.source;
    const float* w = p.weights + tap.weights;
    if (R > 1 && Step == 1 && tap.skip == 1) {
      add_tap<1, R, Step>(x, p.plane, p.channels, w, s);
    } else if (R > 1 && Step == 1 && tap.skip == 2) {
      add_tap<0, R - 1, Step>(x, p.plane, p.channels, w, s);
    } else {
      add_tap<0, R, Step>(x, p.plane, p.channels, w, s);
    }
  }
  if (R <= kLanes && p.out != nullptr && p.out_channels == V * kLanes) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      F32 t[kLanes] = {};
#pragma GCC unroll 16
      for (int r = 0; r < R && r < kLanes; ++r) t[r] = s[r][v];
      store_turned(p, t, R, kLanes, v * kLanes * p.out_stride);
    }
    return;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(p.sums + (r * V + v) * kLanes, s[r][v]);
  }
  if (p.out != nullptr) turn(p);
}

using Tile = void (*)(const ConvRowTile&);
template <int N>
struct TileTable {
  Tile of[N];
};
template <int V, int Step, int... i>
constexpr TileTable<sizeof...(i)> tile_table(Indices<i...>) {
  return {{tile_of<i + 1, V, Step>...}};
}
template <int V, int Step>
constexpr auto kTiles = tile_table<V, Step>(MakeIndices<V == 4 ? kPositions / 2 : kPositions>());

template <int Step>
RLX_INLINE void tile_at(const ConvRowTile& p) {
  const int r = p.positions - 1;
  if (p.vectors == 4) return kTiles<4, Step>.of[r](p);
  (p.vectors == 2 ? kTiles<2, Step> : kTiles<1, Step>).of[r](p);
}

void tile(const ConvRowTile& p) { p.step == 1 ? tile_at<1>(p) : tile_at<2>(p); }

// Every vector written lies inside the row: a last one overlaps the one before. `next` is what is read soon:
// the same row of the next channel, too far away for the machine to guess.
RLX_INLINE void copy_row(const float* from, const float* next, int64_t n, float* to) {
  if (n < kLanes) {
    store_n(to, load_n(from, int(n)), int(n));
    return;
  }
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) {
    __builtin_prefetch(next + i);
    store(to + i, load(from + i));
  }
  store(to + n - kLanes, load(from + n - kLanes));
}

// A vector of zeros at each end, which the copy overwrites in part, unless the row is short or the end long.
RLX_INLINE void clear_ends(float* to, int64_t left, int64_t right, int64_t width) {
  if (width >= kLanes && left <= kLanes && right <= kLanes) {
    store(to, F32{});
    store(to + width - kLanes, F32{});
    return;
  }
  for (int64_t i = 0; i < left; ++i) to[i] = 0;
  for (int64_t i = width - right; i < width; ++i) to[i] = 0;
}

void frame(const ConvFrame& p) {
  const int64_t right = p.width - p.left - p.length;
  for (int64_t c = 0; c < p.channels; ++c) {
    const float* from = p.source + c * p.plane;
    const float* next = c + 1 < p.channels ? from + p.plane : from;
    float* to = p.out + c * p.width;
    for (int64_t r = 0; r < p.rows; ++r, from += p.row, next += p.row, to += p.out_row) {
      clear_ends(to, p.left, right, p.width);
      copy_row(from, next, p.length, to + p.left);
    }
  }
}

}  // namespace

ConvRowKernels conv_row_kernels() { return {kPositions, kLanes, tile, frame}; }

}  // namespace rlx::cpu::RLX_ISA
