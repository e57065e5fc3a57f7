// Products of 5 to 64 rows with large weights, c [m, n] = a [m, k] w for one w or, as sides, for two w of equal shape, as fast as w can be read: the copy engine of Hopper brings it, some tiles ahead of the
// products, beginning before the kernel in front has ended; kAhead more steps are asked into the second cache then. Columns of w are the rows of the matrix units.
//
// A unit is kTile columns of w, kTile / kSides of each side. The blocks of a cluster share k and take units in turn; slices of 64 along k come through a ring of kPlaces places. A place holds
//   w [n, k]           kTile rows of 128 bytes, columns of w
//   w [k, n] (kTurned) for every 64 columns 64 rows of 128 bytes, rows of w
// and behind it the slice of a, kTexts rows of 128 bytes. Piece c of 16 bytes of row r lies at piece c ^ (r % 8).
// kGroups groups of warps have 16 kTilesEach columns each, and kShares warps of a group share the four steps of a slice. Sums are added in the order of shares, then of blocks: each block finishes some rows.
// After kMatrixFragments, kMatrixGroups and kClusterBlocks; before it stand T (f16 or bf16), kRows (m), kColumns (n of a side), kDepth (k), kSides, kTile, kPlaces, kAhead, kCluster, kTurned, kBlocks (of a processor), kEarly (no
// kernel before this one makes w), the macro kClusterShape, Params and
//   void finish(p, row, column, const f32 (&sums)[kSides])
// or, with the macro kMovesRows defined and one side, what happens to `count` rows of kTile columns from `row` and `column` on, rounded, which all threads do together:
//   void finish_rows(p, const T* rows [count][kTile + 8], int row, int count, int column)
#pragma once

namespace rlx::cuda {

// What both forms share: sizes, the tiles of a step, the products of one slice, sums of the warps of a block.
inline constexpr char kCopiedSlices[] = R"cuda(
constexpr int kTexts = (kRows + 7) / 8 * 8, kPairs = kTexts / 8, kSlices = (kDepth + 63) / 64;
constexpr int kSideTile = kTile / kSides, kUnits = (kColumns + kSideTile - 1) / kSideTile;
constexpr int kTilesEach = kTile % 32 == 0 ? 2 : 1, kGroups = kTile / (16 * kTilesEach), kShares = kGroups <= 2 ? 4 : kGroups <= 4 ? 2 : 1, kWarps = kGroups * kShares;
constexpr int kWeightBytes = kTile * 128, kTextBytes = kTexts * 128, kPlace = kWeightBytes + kTextBytes;
constexpr int kStride = kTile + 4;  // of sums [kTexts][kTile]: lanes of a warp write to all banks

// The tiles of one step, each with its place behind the first.
template <class Ask> void each_tile(const TensorMap& w_map, const TensorMap& other_map, int unit, int slice, Ask ask) {
  #pragma unroll
  for (int side = 0; side < kSides; ++side) {
    const TensorMap& map = side == 0 ? w_map : other_map;
    #pragma unroll
    for (int c = 0; c < kSideTile; c += kTurned ? 64 : kSideTile) {
      const int column = unit * kSideTile + c, k = slice * 64;
      ask(map, kTurned ? column : k, kTurned ? k : column, (side * kSideTile + c) * 128);
    }
  }
}

// The share of this warp in one slice.
inline void multiply_slice(f32 (&acc)[kTilesEach][kPairs][4], u32 columns, u32 rows, int group, int share) {
  const int lane = threadIdx.x % 32;
  #pragma unroll
  for (int step = 0; step < 4 / kShares; ++step) {
    const int k = share * (4 / kShares) + step;
    u32 x[kPairs][2];
    load_right(x, rows, k);
    #pragma unroll
    for (int t = 0; t < kTilesEach; ++t) {
      const int first = (group * kTilesEach + t) * 16;
      u32 v[4];
      if (kTurned) {
        const int row = k * 16 + lane / 16 * 8 + lane % 8;
        load4_turned(v, columns + first / 64 * 8192 + row * 128 + (((first % 64 / 8 + lane / 8 % 2) ^ (row % 8)) * 16));
      } else {
        const int row = first + lane % 16;
        load4(v, columns + row * 128 + (((k * 2 + lane / 16) ^ (row % 8)) * 16));
      }
      #pragma unroll
      for (int j = 0; j < kPairs; ++j) multiply(acc[t][j], v, x[j][0], x[j][1], T{});
    }
  }
}

// Sums of all shares in their order; a barrier of the block stands behind each but the last.
inline void put_sums(f32* sums, const f32 (&acc)[kTilesEach][kPairs][4], int group, int share) {
  const int lane = threadIdx.x % 32;
  #pragma unroll
  for (int s = kShares - 1; s >= 0; --s) {
    if (share == s) {
      #pragma unroll
      for (int t = 0; t < kTilesEach; ++t) {
        #pragma unroll
        for (int j = 0; j < kPairs; ++j) {
          #pragma unroll
          for (int e = 0; e < 4; ++e) {
            f32& to = sums[(j * 8 + lane % 4 * 2 + e % 2) * kStride + (group * kTilesEach + t) * 16 + lane / 4 + e / 2 * 8];
            to = s == kShares - 1 ? acc[t][j][e] : to + acc[t][j][e];
          }
        }
      }
    }
    if (s > 0) __syncthreads();
  }
}
)cuda";

inline constexpr char kCopiedTiles[] = R"cuda(
extern "C" __global__ void kClusterShape __launch_bounds__(32 * kWarps, kBlocks)
copied_tiles(Params p, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap w_map, const __grid_constant__ TensorMap other_map) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kPlaces];
  const u32 ring = (place_of(shared) + 1023) & ~1023u, full = place_of(barriers), empty = full + 8 * kPlaces;
  f32* const sums = reinterpret_cast<f32*>(reinterpret_cast<u8*>(shared) + (ring - place_of(shared)) + kPlaces * kPlace);
#ifdef kMovesRows
  T* const rounded = reinterpret_cast<T*>(sums + kTexts * kStride);
#endif
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = warp / kShares, share = warp % kShares;
  const int rank = kCluster > 1 ? int(rank_in_cluster()) : 0, clusters = gridDim.x / kCluster, unit0 = blockIdx.x / kCluster;
  const int slice0 = kSlices * rank / kCluster, slices = kSlices * (rank + 1) / kCluster - slice0;
  const int steps = unit0 < kUnits ? ((kUnits - 1 - unit0) / clusters + 1) * slices : 0;
  const auto ask_weights = [&](int unit, int slice, int place) {
    const u32 to = ring + place * kPlace, barrier = full + place * 8;
    barrier_expect(barrier, kPlace);
    each_tile(w_map, other_map, unit, slice0 + slice, [&](const TensorMap& map, int x, int y, int at) {
      copy_tile_once(to + at, map, x, y, 0, 0, barrier);
    });
  };
  const auto ask_texts = [&](int slice, int place) { copy_tile(ring + place * kPlace + kWeightBytes, a_map, (slice0 + slice) * 64, 0, 0, 0, full + 8 * place); };
  const auto ask_first = [&] {
    for (int i = 0; i < kPlaces && i < steps; ++i) ask_weights(unit0 + i / slices * clusters, i % slices, i);
    for (int i = kPlaces; i < kPlaces + kAhead && i < steps; ++i)
      each_tile(w_map, other_map, unit0 + i / slices * clusters, slice0 + i % slices, [&](const TensorMap& map, int x, int y, int) { ask_ahead(map, x, y, 0, 0); });
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kPlaces; ++i) barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, kWarps);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
    if (kEarly) ask_first();
  }
  __syncthreads();
  begin();
  if (threadIdx.x == 0) {
    if (!kEarly) ask_first();
    for (int i = 0; i < kPlaces && i < steps; ++i) ask_texts(i % slices, i);
  }
  __syncwarp();
  int place = 0, parity = 0, before = 0, before_parity = 0;     // of a step and of the one before it
  int coming = kPlaces - 1, turn = 0;                           // the step that is asked for next, by one warp after the other
  for (int unit = unit0; unit < kUnits; unit += clusters) {
    f32 acc[kTilesEach][kPairs][4] = {};
    #pragma unroll 1
    for (int slice = 0; slice < slices; ++slice) {
      // The place of the step before is asked for again when all warps have left it.
      if (lane == 0 && warp == turn && coming >= kPlaces && coming < steps) {
        barrier_wait(empty + 8 * before, before_parity);
        ask_weights(unit0 + coming / slices * clusters, coming % slices, before);
        ask_texts(coming % slices, before);
      }
      __syncwarp();
      ++coming;
      if (++turn == kWarps) turn = 0;
      barrier_wait(full + 8 * place, parity);
      const u32 columns = ring + place * kPlace, rows = columns + kWeightBytes;
      multiply_slice(acc, columns, rows, group, share);
      __syncwarp();
      if (lane == 0) barrier_arrive(empty + 8 * place);  // told by all lanes it takes longer than the products of a small tile
      before = place, before_parity = parity;
      if (++place == kPlaces) place = 0, parity ^= 1;
    }
    if (kCluster > 1 && unit != unit0) wait_for_cluster();  // nobody reads the sums of the unit before any more
    if (kCluster == 1 && unit != unit0) __syncthreads();
    put_sums(sums, acc, group, share);
    if (kCluster == 1) __syncthreads();
    if (kCluster > 1) join_cluster();
    const int row0 = kRows * rank / kCluster, end = (kRows * (rank + 1) / kCluster - row0) * kSideTile;
    for (int e = threadIdx.x; e < end; e += 32 * kWarps) {
      const int row = row0 + e / kSideTile, at = e % kSideTile, column = unit * kSideTile + at;
      f32 all[kSides];
      #pragma unroll
      for (int side = 0; side < kSides; ++side) {
        const f32* const own = sums + row * kStride + side * kSideTile + at;
        all[side] = kCluster == 1 ? *own : in_block(own, 0);
        #pragma unroll
        for (int r = 1; r < kCluster; ++r) all[side] += in_block(own, r);
      }
#ifdef kMovesRows
      put(rounded[(row - row0) * (kTile + 8) + at], all[0]);
#else
      if (column < kColumns) finish(p, row, column, all);
#endif
    }
#ifdef kMovesRows
    __syncthreads();
    finish_rows(p, rounded, row0, end / kSideTile, unit * kSideTile);
#endif
    __syncwarp();
    if (kCluster > 1) arrive_in_cluster();
  }
  if (kCluster > 1 && unit0 < kUnits) wait_for_cluster();  // nobody leaves while others read
}
)cuda";

// The same for any address, after the same sizes, Params and finish.
inline constexpr char kPlainColumns[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) plain_columns(Params p, const T* a, const T* w, const T* other, i64 a_row, i64 w_row, i64 w_column) {
  const int e = blockIdx.x * 256 + threadIdx.x, row = e / kColumns, column = e % kColumns;
  if (row >= kRows) return;
  f32 sums[kSides] = {};
  for (int k = 0; k < kDepth; ++k) {
    const f32 x = as_f32(a[row * a_row + k]);
    #pragma unroll
    for (int side = 0; side < kSides; ++side) sums[side] = fmaf(x, as_f32((side == 0 ? w : other)[k * w_row + column * w_column]), sums[side]);
  }
  finish(p, row, column, sums);
}
)cuda";

}  // namespace rlx::cuda
