// Plan: a tile of dw is up to 14 output channels times two vectors of input channels (6 with 16 registers),
// of one tap. A step is one output position: it loads the inputs of all lanes there, [position][channel], and
// spreads one element of dy a row. Rows are read where they lie: 14 streams, whose addresses are made of
// three pointers and two distances, so that the loop holds nothing else: 28 multiply-adds for 16 loads. A tap
// runs only over the positions whose input is inside, so no padding is stored or multiplied. Bound:
// multiply-adds.
#include "rlx/backend/cpu/kernels/conv/conv_weights.h"

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/kernels/isa/turned.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int kRows = (kRegisters - 4) / 2;

RLX_INLINE float at(const char* p, int64_t bytes) { return *reinterpret_cast<const float*>(p + bytes); }

template <int R, int V>
void tile_of(const ConvTurnedTile& p) {
  F32 s[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) s[r][v] = load(p.sums + (r * V + v) * kLanes);
  }
  const int64_t once = p.plane * int64_t(sizeof(float)), thrice = 3 * once;
  for (int64_t run = 0; run < p.runs; ++run) {
    const float* x = p.x + run * p.x_run;
    const char* d0 = reinterpret_cast<const char*>(p.dy + run * p.dy_run);
    const char* d5 = R > 5 ? d0 + 5 * once : d0;
    const char* d10 = R > 10 ? d5 + 5 * once : d0;
    for (int64_t i = 0; i < p.length; ++i, x += p.x_step) {
      F32 b[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) b[v] = load(x + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const char* from = r < 5 ? d0 : (r < 10 ? d5 : d10);
        const F32 a = set1(at(from, r % 5 == 3 ? thrice : r % 5 * once));
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) s[r][v] = fma(a, b[v], s[r][v]);
      }
      d0 += sizeof(float), d5 += sizeof(float), d10 += sizeof(float);
      // Otherwise the compiler keeps a pointer for each row, more than there are registers.
      asm("" : "+r"(d0), "+r"(d5), "+r"(d10));
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store(p.sums + (r * V + v) * kLanes, s[r][v]);
  }
}

using Tile = void (*)(const ConvTurnedTile&);
struct TileTable {
  Tile of[kRows];
};
template <int V, int... i>
constexpr TileTable tile_table(Indices<i...>) {
  return {{tile_of<i + 1, V>...}};
}
template <int V>
constexpr TileTable kTiles = tile_table<V>(MakeIndices<kRows>());

void tile(const ConvTurnedTile& p) { (p.vectors == 2 ? kTiles<2> : kTiles<1>).of[p.rows - 1](p); }

void turn(const float* from, int64_t stride, int64_t rows, int64_t n, int vectors, float* out) {
  turn_rows(from, stride, rows, n, vectors, out);
}

// v[i]: the sums of channel i for up to a vector of taps, `rows` of which are there.
RLX_INLINE void turn_taps(const float* sums, int64_t stride, int rows, F32 (&v)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) v[i] = i < rows ? load(sums + i * stride) : F32{};
  transpose(v);
}

// Few taps: channels are stored in order as whole vectors, whose surplus the next one overwrites, and all of
// them together copied from there.
void interleave(const float* sums, int64_t stride, int64_t channels, int64_t taps, float* out) {
  F32 v[kLanes];
  if (taps <= kLanes) {
    float ordered[(2 * kLanes + 1) * kLanes];
    for (int64_t c = 0; c < channels; c += kLanes) {
      turn_taps(sums + c, stride, int(taps), v);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(ordered + (c + i) * taps, v[i]);
    }
    int64_t i = 0;
    for (; i + kLanes <= channels * taps; i += kLanes) store(out + i, load(ordered + i));
    store_n(out + i, load(ordered + i), int(channels * taps - i));
    return;
  }
  for (int64_t c = 0; c < channels; c += kLanes) {
    for (int64_t t = 0; t < taps; t += kLanes) {
      const int rows = int(taps - t < kLanes ? taps - t : kLanes);
      turn_taps(sums + t * stride + c, stride, rows, v);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (c + i < channels) store_n(out + (c + i) * taps + t, v[i], rows);
      }
    }
  }
}

}  // namespace

ConvTurnedKernels conv_turned_kernels() { return {kRows, kLanes, tile, turn, interleave}; }

}  // namespace rlx::cpu::RLX_ISA
