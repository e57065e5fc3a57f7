// The inner loop every matrix product shares: a tile of R rows of A times P panels of B, each two vectors
// wide, with all R * P * 2 sums in registers.
//   A tile [step][R], or rows as they lie in memory, B panel [step][2 vectors], sums [panel][row][2 vectors]
// What one step multiplies is the Kind: one f32 or f64 of each row, or a word of two or four small integers.
//
// struct Kind {
//   using A, B, Sum;                  // elements of the packed operands and of the sums
//   using Vector;                     // of sums
//   static constexpr int weights;     // elements of B behind one vector of sums in one step
//   static constexpr int64_t depth;   // steps of one cut, so that a panel stays in L2
//   static constexpr bool reads_rows; // whether A may be read in place
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

// How far before its use an operand is fetched. On AVX-512 the first tile of a block takes panels from memory, and the others
// from L2: with 4 KiB (f32) and 2 KiB (16 bits) a step came too soon for memory, 16 KiB gain nothing more. Elsewhere a panel
// lies in L1, and the last tile of a block fetches what the next panel will read, which lies behind this one.
inline constexpr int64_t kBytesAheadOfB = 8192, kStepsAheadOfA = 32;
inline constexpr bool kPanelInL1 = kVectorBytes < 64;

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

/// Where the R rows of a tile are. Packed: neighbours, R further at each step. In place: row_bytes apart, one
/// element further; an address is one of a few moving pointers plus 0, 1 or 2 times that distance, which the
/// machine adds for free.
template <class A, int R, bool in_place>
struct TileRows {
  static constexpr int kPointers = in_place ? (R + 2) / 3 : 1;
  const std::byte* at[kPointers];
  int64_t row_bytes;

  RLX_INLINE TileRows(const std::byte* a, int64_t bytes) : row_bytes(bytes) {
#pragma GCC unroll 8
    for (int i = 0; i < kPointers; ++i) at[i] = a + 3 * i * bytes;
  }
  /// Row r, so many steps ahead.
  RLX_INLINE A get(int r, int ahead) const {
    const std::byte* p = in_place ? at[r / 3] + r % 3 * row_bytes + ahead * int(sizeof(A))
                                  : at[0] + (ahead * R + r) * int(sizeof(A));
    A v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  RLX_INLINE void advance(int steps) {
#pragma GCC unroll 8
    for (int i = 0; i < kPointers; ++i) {
      at[i] += steps * (in_place ? 1 : R) * int(sizeof(A));
      if constexpr (in_place) asm("" : "+r"(at[i]));  // keeps the pointers as they are written
    }
  }
};

/// Where the sums of one group of panels go: a buffer, or C itself. On their way out of the registers they may take up one
/// number for each column, then one for each element; panels of those lie beside each other.
template <class Sum>
struct Sums {
  Sum* data;
  int64_t panel_stride, row_stride;
  const Sum* column = nullptr;   // [panels][2 vectors]
  const Sum* element = nullptr;  // rows element_stride apart
  int64_t element_stride = 0;
};

/// Makes both values of their own: nothing is regrouped across this.
template <class V>
RLX_INLINE void pin(V& a, V& b) {
#if defined(__x86_64__)
  asm("" : "+v"(a), "+v"(b));
#elif defined(__aarch64__)
  asm("" : "+w"(a), "+w"(b));
#endif
}

/// sums[p][r][0..1] += A tile * B panels. `start` [P][2 vectors] is what every row begins with; null: the
/// sums so far. Two steps at a time: the counters of one cost a tenth of its multiply-adds. ahead_of_b: from an element of B
/// to the one that is fetched for later.
template <class Kind, int R, int P, bool in_place>
void micro(const std::byte* a, int64_t row_bytes, const typename Kind::B* __restrict b, int64_t panel_stride,
           int64_t steps, const Sums<typename Kind::Sum>& sums, const typename Kind::Sum* start,
           int64_t ahead_of_b) {
  using V = typename Kind::Vector;
  constexpr int lanes = kVectorBytes / int(sizeof(typename Kind::Sum));
  V s[P][R][2];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto* at =
          start != nullptr ? start + p * 2 * lanes : sums.data + p * sums.panel_stride + r * sums.row_stride;
      s[p][r][0] = load(at);
      s[p][r][1] = load(at + lanes);
    }
  }
  // What the end will read and write, rows apart as no machine foresees, arrives while the sums are formed.
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int line = 0; line < 2 * kVectorBytes; line += 64) {
      const auto* element = reinterpret_cast<const std::byte*>(sums.element + r * sums.element_stride);
      if (sums.element != nullptr) __builtin_prefetch(element + line);
      __builtin_prefetch(reinterpret_cast<const std::byte*>(sums.data + r * sums.row_stride) + line, 1);
    }
  }
  TileRows<typename Kind::A, R, in_place> rows(a, row_bytes);
  const auto step = [&](int ahead) __attribute__((always_inline)) {
    decltype(Kind::load(b)) w[P][2];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      w[p][0] = Kind::load(b + p * panel_stride + ahead * 2 * Kind::weights);
      w[p][1] = Kind::load(b + p * panel_stride + (ahead * 2 + 1) * Kind::weights);
    }
    if constexpr (kPanelInL1 && P == 1) {
      __builtin_prefetch(b + ahead_of_b + ahead * 2 * Kind::weights);
    } else if constexpr (P == 1) {  // many panels at once come from memory, which prefetches itself
      constexpr int of_step = 2 * Kind::weights * int(sizeof *b);
      const auto* later = reinterpret_cast<const std::byte*>(b) + kBytesAheadOfB + ahead * of_step;
#pragma GCC unroll 2
      for (int line = 0; line < of_step; line += 64) __builtin_prefetch(later + line);
      if (!in_place)
        __builtin_prefetch(rows.at[0] + (kStepsAheadOfA + ahead) * R * int(sizeof(typename Kind::A)));
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto x = Kind::spread(rows.get(r, ahead));
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        s[p][r][0] = Kind::multiply_add(x, w[p][0], s[p][r][0]);
        s[p][r][1] = Kind::multiply_add(x, w[p][1], s[p][r][1]);
      }
    }
  };
  for (; steps >= 2; steps -= 2) {
    step(0);
    // Sums of whole numbers may be regrouped: without this g++ 12 mixes both steps and drives the sums out of the
    // registers. One row has registers to spare and gains by the mixing.
    if constexpr (R > 1 && typename Kind::Sum(0.5) == 0) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) pin(s[p][r][0], s[p][r][1]);
      }
    }
    step(1);
    rows.advance(2);
    b += 4 * Kind::weights;
  }
  if (steps > 0) step(0);
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    if (sums.column != nullptr) {
      const V low = load(sums.column + p * 2 * lanes), high = load(sums.column + (p * 2 + 1) * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) s[p][r][0] += low, s[p][r][1] += high;
    }
    if (sums.element != nullptr) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const auto* x = sums.element + r * sums.element_stride + p * 2 * lanes;
        s[p][r][0] += load(x);
        s[p][r][1] += load(x + lanes);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      auto* at = sums.data + p * sums.panel_stride + r * sums.row_stride;
      store(at, s[p][r][0]);
      store(at + lanes, s[p][r][1]);
    }
  }
}

template <class Kind>
using Micro = void (*)(const std::byte*, int64_t, const typename Kind::B*, int64_t, int64_t,
                       const Sums<typename Kind::Sum>&, const typename Kind::Sum*, int64_t);

template <class Kind>
struct MicroTable {
  Micro<Kind> wide[kTileRows], narrow[kTileRows];
};
template <class Kind, bool in_place, int... i>
constexpr MicroTable<Kind> micro_table(Indices<i...>) {
  return {{micro<Kind, i + 1, panels_for(i + 1), in_place>...}, {micro<Kind, i + 1, 1, in_place>...}};
}
template <class Kind, bool in_place>
inline constexpr MicroTable<Kind> kMicroTable = micro_table<Kind, in_place>(MakeIndices<kTileRows>());

/// Rows of A: packed tiles [step][tile_rows], the last one with its own row count, or as they lie in memory.
template <class Kind>
struct RowTiles {
  const std::byte* data;
  int64_t row_bytes;  // 0: packed
  int64_t steps, rows;
  int tile_rows;

  /// Panels one pass covers: a single tile may leave registers for several.
  RLX_INLINE int panels() const { return panels_for(rows < tile_rows ? int(rows) : tile_rows); }
};

/// What the rows of a product begin with where nothing is added.
template <class Sum>
alignas(64) inline constexpr Sum kZeroSums[size_t(kMaxPanels) * 2 * kVectorBytes / sizeof(Sum)] = {};

/// Sums of `panels` neighbouring panels for all rows; every row begins with `start` [panels][2 vectors]. Rows in place are
/// shared out evenly over the tiles, since a tile of few rows costs as much time as one of four.
template <class Kind, bool in_place>
void multiply_tiles(const RowTiles<Kind>& a, const typename Kind::B* b, int panels,
                    const Sums<typename Kind::Sum>& sums, const typename Kind::Sum* start) {
  const MicroTable<Kind>& table = kMicroTable<Kind, in_place>;
  constexpr int64_t width = 2 * Kind::weights, element = sizeof(typename Kind::A);
  constexpr int64_t sum_width = 2 * kVectorBytes / int(sizeof *start);
  const int64_t panel_stride = a.steps * width, tiles = (a.rows + a.tile_rows - 1) / a.tile_rows;
  for (int64_t k0 = 0; k0 < a.steps; k0 += Kind::depth) {
    const int64_t depth = a.steps - k0 < Kind::depth ? a.steps - k0 : Kind::depth;
    const bool last = k0 + depth == a.steps;
    int64_t left = tiles;
    for (int64_t row = 0, rows; row < a.rows; row += rows, --left) {
      rows = in_place ? (a.rows - row + left - 1) / left : a.tile_rows;
      if (rows > a.rows - row) rows = a.rows - row;
      const std::byte* tile = in_place ? a.data + row * a.row_bytes + k0 * element
                                       : a.data + (row * a.steps + k0 * rows) * element;
      Sums<typename Kind::Sum> out = sums;
      out.data += row * sums.row_stride;
      if (sums.element != nullptr) out.element += row * sums.element_stride;
      if (!last) out.column = out.element = nullptr;
      if (panels > 1 && panels == panels_for(int(rows))) {
        table.wide[rows - 1](tile, a.row_bytes, b + k0 * width, panel_stride, depth, out,
                             k0 == 0 ? start : nullptr, 0);
        continue;
      }
      for (int p = 0; p < panels; ++p) {
        table.narrow[rows - 1](tile, a.row_bytes, b + p * panel_stride + k0 * width, 0, depth, out,
                               k0 == 0 ? start + p * sum_width : nullptr,
                               left == 1 && tiles > 1 ? depth * width : 0);
        out.data += sums.panel_stride;
        if (out.column != nullptr) out.column += sum_width;
        if (out.element != nullptr) out.element += sum_width;
      }
    }
  }
}

template <class Kind>
RLX_INLINE void multiply(const RowTiles<Kind>& a, const typename Kind::B* b, int panels,
                         const Sums<typename Kind::Sum>& sums,
                         const typename Kind::Sum* start = kZeroSums<typename Kind::Sum>) {
  constexpr int64_t width = 2 * kVectorBytes / int64_t(sizeof *start);
  if (a.steps == 0) {  // nothing to add
    for (int64_t i = 0; i < panels * a.rows; ++i) {
      const int64_t p = i / a.rows, r = i % a.rows;
      std::memcpy(sums.data + p * sums.panel_stride + r * sums.row_stride, start + p * width,
                  2 * kVectorBytes);
    }
  } else if (Kind::reads_rows && a.row_bytes != 0) {
    multiply_tiles<Kind, Kind::reads_rows>(a, b, panels, sums, start);
  } else {
    multiply_tiles<Kind, false>(a, b, panels, sums, start);
  }
}

}  // namespace rlx::cpu::RLX_ISA
