// The inner loop every matrix product shares: a tile of R rows of A times P panels of B, each two vectors
// wide, with all R * P * 2 sums in registers.
//   A tile [step][R], B panel [step][2 vectors], sums [panel][row][2 vectors]
// What one step multiplies is the Kind: one f32 or f64 of each row, or a word of two or four small integers.
//
// struct Kind {
//   using A, B, Sum;                  // elements of the packed operands and of the sums
//   using Vector;                     // of sums
//   static constexpr int weights;     // elements of B behind one vector of sums in one step
//   static constexpr int64_t depth;   // steps of one cut, so that a panel stays in L2
//   static auto spread(A);            // one element of A to all lanes
//   static auto load(const B*);
//   static Vector multiply_add(spread, weights, Vector);
// };
#pragma once

#include "rlx/backend/cpu/kernels/isa/gemm_tile.h"
#include "rlx/backend/cpu/kernels/isa/indices.h"

namespace rlx::cpu::RLX_ISA {

inline constexpr int kMaxPanels = 8;
inline constexpr int64_t kBlockRows =
    16 * kTileRows;  // more rows per pass over B; half as many measured 2 % slower

// Steps between a prefetch and its use: 16 and 32 gain 1 % on one thread, 8 nothing.
inline constexpr int64_t kAhead = 32;

/// Panels whose sums fit in registers beside each other: few rows leave room for more of them, which gives
/// more independent sums and less spreading per multiply-add.
constexpr int panels_for(int rows) {
  const int fit = kTileSums / (2 * rows);
  return fit < 1 ? 1 : (fit > kMaxPanels ? kMaxPanels : fit);
}

/// Sums of one block: [panel][row][two vectors] for a group of panels.
inline constexpr size_t kSumsBytes =
    size_t(kMaxPanels * kTileRows > 2 * kBlockRows ? kMaxPanels * kTileRows : 2 * kBlockRows) * 2 *
    kVectorBytes;

/// sums[p][r][0..1] += A tile * B panels; `first` starts from zero instead of the buffer.
template <class Kind, int R, int P>
void micro(const typename Kind::A* __restrict a, int64_t a_step, const typename Kind::B* __restrict b,
           int64_t panel_stride, int64_t steps, typename Kind::Sum* __restrict sums, int64_t sums_stride,
           int64_t row_stride, bool first) {
  using V = typename Kind::Vector;
  constexpr int lanes = kVectorBytes / int(sizeof(typename Kind::Sum));
  V s[P][R][2];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto* at = sums + p * sums_stride + r * row_stride;
      s[p][r][0] = first ? V{} : load(at);
      s[p][r][1] = first ? V{} : load(at + lanes);
    }
  }
  for (int64_t i = 0; i < steps; ++i) {
    decltype(Kind::load(b)) w[P][2];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      w[p][0] = Kind::load(b + p * panel_stride);
      w[p][1] = Kind::load(b + p * panel_stride + Kind::weights);
    }
    if constexpr (P ==
                  1) {  // both stream from L2; many panels at once come from memory, which prefetches itself
      __builtin_prefetch(b + kAhead * 2 * Kind::weights);
      __builtin_prefetch(b + kAhead * 2 * Kind::weights + Kind::weights);
      __builtin_prefetch(a + kAhead * a_step);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto x = Kind::spread(a[r]);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        s[p][r][0] = Kind::multiply_add(x, w[p][0], s[p][r][0]);
        s[p][r][1] = Kind::multiply_add(x, w[p][1], s[p][r][1]);
      }
    }
    a += a_step;
    b += 2 * Kind::weights;
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      auto* at = sums + p * sums_stride + r * row_stride;
      store(at, s[p][r][0]);
      store(at + lanes, s[p][r][1]);
    }
  }
}

template <class Kind>
using Micro = void (*)(const typename Kind::A*, int64_t, const typename Kind::B*, int64_t, int64_t,
                       typename Kind::Sum*, int64_t, int64_t, bool);

template <class Kind>
struct MicroTable {
  Micro<Kind> wide[kTileRows], narrow[kTileRows];
};
template <class Kind, int... i>
constexpr MicroTable<Kind> micro_table(Indices<i...>) {
  return {{micro<Kind, i + 1, panels_for(i + 1)>...}, {micro<Kind, i + 1, 1>...}};
}
template <class Kind>
inline constexpr MicroTable<Kind> kMicroTable = micro_table<Kind>(MakeIndices<kTileRows>());

/// Packed rows of A: tiles [step][tile_rows], the last one with its own row count.
template <class Kind>
struct RowTiles {
  const typename Kind::A* data;
  int64_t steps, rows;
  int tile_rows;

  /// Panels one pass covers: a single tile may leave registers for several.
  RLX_INLINE int panels() const { return rows <= tile_rows ? panels_for(int(rows)) : 1; }
};

/// Where the sums of one group of panels go: a buffer, or C itself when nothing is left to do to them.
template <class Sum>
struct Sums {
  Sum* data;
  int64_t panel_stride, row_stride;
};

/// Sums of `panels` neighbouring panels for all rows.
template <class Kind>
RLX_INLINE void multiply(const RowTiles<Kind>& a, const typename Kind::B* b, int panels,
                         Sums<typename Kind::Sum> sums) {
  const MicroTable<Kind>& table = kMicroTable<Kind>;
  constexpr int64_t width = 2 * Kind::weights;
  const int64_t panel_stride = a.steps * width;
  const bool wide = panels > 1 && panels == a.panels();
  for (int64_t k0 = 0; k0 == 0 || k0 < a.steps; k0 += Kind::depth) {
    const int64_t depth = a.steps - k0 < Kind::depth ? a.steps - k0 : Kind::depth;
    for (int64_t row = 0; row < a.rows; row += a.tile_rows) {
      const int rows = int(a.rows - row < a.tile_rows ? a.rows - row : a.tile_rows);
      const auto* tile = a.data + row * a.steps + k0 * rows;
      auto* out = sums.data + row * sums.row_stride;
      if (wide) {
        table.wide[rows - 1](tile, rows, b + k0 * width, panel_stride, depth, out, sums.panel_stride,
                             sums.row_stride, k0 == 0);
        continue;
      }
      for (int p = 0; p < panels; ++p) {
        table.narrow[rows - 1](tile, rows, b + p * panel_stride + k0 * width, 0, depth,
                               out + p * sums.panel_stride, 0, sums.row_stride, k0 == 0);
      }
    }
  }
}

}  // namespace rlx::cpu::RLX_ISA
