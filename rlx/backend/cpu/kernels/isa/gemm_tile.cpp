// Plan: as the matrix product (gemm.cpp), R rows by two vectors of sums in registers, R = 14 at AVX-512. One
// step of k loads two vectors of B and broadcasts R numbers of A straight from memory, which the multiply-add
// takes as its operand: neighbours in a row of A', or kTileColumns apart, a distance known to the compiler.
// Bound: multiply-add rate; loading and storing the sums costs 3 R instructions beside 2 R k multiply-adds.
// Levels: also avx512vnni, for attention.cpp.
#include "rlx/backend/cpu/kernels/isa/gemm_tile.h"

#include "rlx/backend/cpu/kernels/isa/indices.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <int R, int kRowStep>
void tile(const float* __restrict a, int64_t a_step, const float* __restrict b, int64_t b_step, int64_t k,
          float* __restrict c, int64_t c_stride, bool first, float keep) {
  F32 s[R][2];
  const F32 factor = set1(keep);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    s[r][0] = first ? F32{} : factor * load(c + r * c_stride);
    s[r][1] = first ? F32{} : factor * load(c + r * c_stride + kLanes);
  }
  for (int64_t i = 0; i < k; ++i) {
    const F32 w0 = load(b), w1 = load(b + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const F32 x = set1(a[r * kRowStep]);
      s[r][0] = fma(x, w0, s[r][0]);
      s[r][1] = fma(x, w1, s[r][1]);
    }
    a += a_step;
    b += b_step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    store(c + r * c_stride, s[r][0]);
    store(c + r * c_stride + kLanes, s[r][1]);
  }
}

using Tile = void (*)(const float*, int64_t, const float*, int64_t, int64_t, float*, int64_t, bool, float);
struct Tiles {
  Tile of_rows[kTileRows];
};
template <int kRowStep, int... i>
constexpr Tiles tiles(Indices<i...>) {
  return {{tile<i + 1, kRowStep>...}};
}
constexpr Tiles kNeighbours = tiles<1>(MakeIndices<kTileRows>());
constexpr Tiles kPanelRows = tiles<kTileColumns>(MakeIndices<kTileRows>());

// Rows in tiles of about equal height: 128 are ten tiles of 12 or 13, not nine of 14 and one of 2.
template <class Body>
RLX_INLINE void each_tile(int64_t rows, Body body) {
  for (int64_t r = 0, tiles = (rows + kTileRows - 1) / kTileRows; r < rows; --tiles) {
    const int64_t count = (rows - r + tiles - 1) / tiles;
    body(r, count);
    r += count;
  }
}

}  // namespace

void tile_f32(int64_t rows, const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k,
              float* c, int64_t c_stride, bool first) {
  each_tile(rows, [&](int64_t r, int64_t count) {
    kNeighbours.of_rows[count - 1](a + r, a_step, b, b_step, k, c + r * c_stride, c_stride, first, 1.0f);
  });
}

void fading_tile_f32(int64_t rows, const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k,
                     float* c, int64_t c_stride, float keep) {
  each_tile(rows, [&](int64_t r, int64_t count) {
    kNeighbours.of_rows[count - 1](a + r, a_step, b, b_step, k, c + r * c_stride, c_stride, false, keep);
  });
}

void tile_of_panel_f32(int64_t rows, const float* a, const float* b, int64_t b_step, int64_t k, float* c,
                       int64_t c_stride, bool first) {
  each_tile(rows, [&](int64_t r, int64_t count) {
    kPanelRows.of_rows[count - 1](a + r * kTileColumns, 1, b, b_step, k, c + r * c_stride, c_stride, first,
                                  1.0f);
  });
}

}  // namespace rlx::cpu::RLX_ISA
