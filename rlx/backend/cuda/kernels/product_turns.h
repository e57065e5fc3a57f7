// Products of many rows in f16 and bf16 with the elements behind them, c = f(a b ..), on the matrix units of Hopper. A block stays on its processor: one warp asks the copy engine for slices
// of kLanes (64) along k, and two groups of four warps take turns with whole tiles: while one multiplies, the other finishes the elements of the tile before and writes them. Sums go along k in order.
// Operands of fp8 (kScaledSums) have slices of 128. Their units keep few places of a sum, so that each slice is added to sums in f32, scaled where scales change along k: both groups have a tile
// together, each its rows of it, and one adds while the other multiplies.
// Only the number of rows is no part of the text: prompts have many lengths.
//   tile   [64 kHalves rows][kWide columns of each side], the product of one group (kScaledSums: rows of one group under those of the other); sides (gate and up) share the rows of a and lie beside each other on the units
//   item   the rows of a tile and up to kItem tiles of columns, taken in order; kResident: all of k of these rows stays in shared memory for the whole item
//   ring   kStages places of one slice of b and, unless it is resident, of a. Slices of all tiles of a block are counted through, so that slice f lies at place f % kStages.
// A slice of resident rows is written over when its place in the ring is: kStages <= kSlices, so that the last tile has read it by then.
//   b [n, k]           a slice is [kWide][64 of k], as a is
//   b [k, n] (kTurned) a slice is pieces of 64 columns, each [64 of k][64]; with two sides kWide is a multiple of 64
// Sums are rounded to T in shared memory, 16 rows for each warp, piece c of 16 bytes of row r at c ^ (r % 8), and finished kVector neighbours at a time.
// The kCluster blocks of a cluster have the same columns of different rows: each asks for a part of a slice of b and sends it to all, so that a place is free when the groups of all blocks
// have read it.
// After kMatrixGroups and kClusterBlocks; before it stand T (of the sums behind the rounding), kLanes, kColumns (n of a side), kDepth (k), kCluster and the macro kClusterShape, kSides, kHalves, kWide, kItem, kStages, kVector, kResident, kTurned, kEarly (no kernel before this one makes b),
// kRowsFirst (items go along rows first), multiply_tile (d += a b for 64 rows and 32 bytes along k), Params and
//   void finish(p, row, column, const Pack<T, kVector> (&products)[kSides])
// and, where the macro kScaledSums is defined, SliceFactors, add_slice and scale_sums (product_scales.h).
#pragma once

namespace rlx::cuda {

inline constexpr char kProductTurns[] = R"cuda(
#ifdef kScaledSums
constexpr int kGroups = 2;  // that have a tile together
#else
constexpr int kGroups = 1;
#endif
constexpr int kHeight = 64 * kHalves * kGroups, kAcross = kSides * kWide, kSlices = (kDepth + kLanes - 1) / kLanes;
constexpr int kLeftBytes = kHeight * 128, kSideBytes = kTurned ? (kWide + 63) / 64 * 8192 : kWide * 128;
constexpr int kParts = kTurned ? (kWide + 63) / 64 : kSides == 1 ? kCluster : 1, kPartBytes = kSideBytes / kParts;  // of a side
constexpr int kRightBytes = kSides * kSideBytes, kStage = kRightBytes + (kResident ? 0 : kLeftBytes);
constexpr int kLine = (kAcross * 2 + 127) / 128 * 128, kWarpBytes = 16 * kLine;
constexpr int kColumnTiles = (kColumns + kWide - 1) / kWide;
static_assert(kWide % (2 * kVector) == 0);
constexpr int kRanges = (kColumnTiles + kItem - 1) / kItem;
constexpr int kAhead = !kEarly ? 0 : kStages < kSlices ? kStages : kSlices;  // slices of b that are asked for before the kernel in front has ended
static_assert(!kResident || kStages <= kSlices);
static_assert(kTurned || kWide % (8 * kParts) == 0);

// Tiles of columns are taken in turn from `turn` on: blocks at work do not ask for the same lines of b at the same time.
struct Item {
  int row, first, count, turn;
  int column(int c) const { return (first + (c + turn < count ? c + turn : c + turn - count)) * kWide; }
};
// For the block of this rank in its cluster.
inline Item item_at(int i, int row_items, int rank) {
  const int range = kRowsFirst ? i / row_items : i % kRanges, first = range * kItem, row = kRowsFirst ? i % row_items : i / kRanges;
  const int count = kColumnTiles - first < kItem ? kColumnTiles - first : kItem;
  return {(row * kCluster + rank) * kHeight, first, count, row % count};
}

inline u64 right_at(u32 place, int k) { return kTurned ? tile_at(place + k * 2048) + (u64(8192 / 16 - 1) << 16) : tile_at(place + k * 32); }
inline u32 both(f32 low, f32 high, f16) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
inline u32 both(f32 low, f32 high, bf16) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }

// The sums of 16 rows of a warp, rounded; then as many neighbours as finish takes to each lane.
template <int N> void write_sums(u32 place, const f32 (&sums)[N][4], int lane) {
  #pragma unroll
  for (int n = 0; n < N; n += 2) {
    const int row = lane % 16;
    const u32 at = place + row * kLine + (((n + lane / 16) ^ (row % 8)) * 16);
    const bool pair = n + 1 < N;
    const u32 v[4] = {both(sums[n][0], sums[n][1], T{}), both(sums[n][2], sums[n][3], T{}),
                      pair ? both(sums[pair ? n + 1 : n][0], sums[pair ? n + 1 : n][1], T{}) : 0, pair ? both(sums[pair ? n + 1 : n][2], sums[pair ? n + 1 : n][3], T{}) : 0};
    if (pair) {
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" :: "r"(at), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
    } else {
      asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" :: "r"(at), "r"(v[0]), "r"(v[1]) : "memory");
    }
  }
}
// kWhole: no row or column lies outside. Without a branch the loads of some vectors go in front of all stores: a group has few warps to wait with.
template <bool kWhole> void finish_rows(const Params& p, int rows, const u8* place, int row0, int column0, int lane) {
  constexpr int kPieces = kWide / kVector, kTogether = kWhole ? 4 : 1;
  #pragma unroll kTogether
  for (int round = 0; round < kPieces / 2; ++round) {
    const int e = round * 32 + lane, row = e / kPieces, at = e % kPieces * kVector;
    if (!kWhole && (row0 + row >= rows || column0 + at >= kColumns)) continue;
    Pack<T, kVector> v[kSides];
    #pragma unroll
    for (int side = 0; side < kSides; ++side) {
      const int byte = (side * kWide + at) * 2;
      v[side] = *reinterpret_cast<const Pack<T, kVector>*>(place + row * kLine + ((byte / 16) ^ (row % 8)) * 16 + byte % 16);
    }
    finish(p, row0 + row, column0 + at, v);
  }
}

extern "C" __global__ void kClusterShape __launch_bounds__(384, 1)
product_turns(Params p, int rows, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, const __grid_constant__ TensorMap second_map) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kStages + 2];
  const u32 resident = (place_of(shared) + 1023) & ~1023u, ring = resident + (kResident ? kSlices * kLeftBytes : 0);
  const u32 full = place_of(barriers), empty = full + 8 * kStages, turns = full + 16 * kStages;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), group = warp / 4;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, 4 * kGroups * kCluster);
    for (int i = 0; i < 2; ++i) barrier_init(turns + 8 * i, 4);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  }
  if (kCluster > 1) {
    join_cluster();
  } else {
    __syncthreads();
  }
  const int row_items = (rows + kHeight * kCluster - 1) / (kHeight * kCluster), items = row_items * kRanges;
  const int rank = kCluster > 1 ? int(rank_in_cluster()) : 0, first_item = blockIdx.x / kCluster, next_item = gridDim.x / kCluster;
  const auto ask_right = [&](u32 at, int slice, int column, u32 barrier) {
    #pragma unroll
    for (int part = 0; part < kSides * kParts; ++part) {
      if (part % kCluster != rank) continue;
      const TensorMap& map = part < kParts ? b_map : second_map;
      const int along = column + part % kParts * (kTurned ? 64 : kWide / kParts), lane0 = kTurned ? along : slice * kLanes, row0 = kTurned ? slice * 64 : along;
      if (kCluster > 1) {
        copy_tile_to(u16((1 << kCluster) - 1), at + part * kPartBytes, map, lane0, row0, 0, 0, barrier);
      } else {
        copy_tile(at + part * kPartBytes, map, lane0, row0, 0, 0, barrier);
      }
    }
  };
  const auto ask_all = [&] {
    #pragma unroll 1
    for (int s = 0; s < kAhead; ++s) {
      barrier_expect(full + 8 * s, kRightBytes + kLeftBytes);
      ask_right(ring + s * kStage, s, item_at(first_item, row_items, rank).column(0), full + 8 * s);
    }
    begin_alone();
    int stage = 0;
    u32 parity = 1;  // of a place that nobody has used yet
    #pragma unroll 1
    for (int i = first_item; i < items; i += next_item) {
      const Item item = item_at(i, row_items, rank);
      #pragma unroll 1
      for (int c = 0; c < item.count; ++c) {
        const int column = item.column(c);
        #pragma unroll 1
        for (int s = 0; s < kSlices; ++s) {
          const u32 at = ring + stage * kStage, barrier = full + 8 * stage;
          const bool left = !kResident || c == 0, asked = s < kAhead && c == 0 && i == first_item;
          if (!asked) {
            barrier_wait(empty + 8 * stage, parity);
            barrier_expect(barrier, kRightBytes + (left ? kLeftBytes : 0));
            ask_right(at, s, column, barrier);
          }
          if (left) copy_tile(kResident ? resident + s * kLeftBytes : at + kRightBytes, a_map, s * kLanes, item.row, 0, 0, barrier);
          if (++stage == kStages) stage = 0, parity ^= 1;
        }
      }
    }
  };
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp == 8 && lane == 0) ask_all();
    __syncwarp();
    if (kCluster > 1) join_cluster();
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  begin_alone();
  // All blocks of the cluster write to a place: each waits for the groups of all.
  const auto release = [&](int stage) {
    if (lane >= kCluster) return;
    if (kCluster > 1) {
      barrier_arrive_in(empty + 8 * stage, lane);
    } else {
      barrier_arrive(empty + 8 * stage);
    }
  };
  const u32 sums_at = ring + kStages * kStage + warp * kWarpBytes;
  const u8* const sums_place = reinterpret_cast<const u8*>(shared) + (sums_at - place_of(shared));
  f32 acc[kHalves][kAcross / 8][4] = {};
  int tile = 0;  // of this block, of both groups
  u32 mine = 0;
  #pragma unroll 1
  for (int i = first_item; i < items; i += next_item) {
    const Item item = item_at(i, row_items, rank);
    #pragma unroll 1
    for (int c = 0; c < item.count; ++c, ++tile) {
      if (kGroups == 1 && tile % 2 != group) continue;
      const int slice = tile * kSlices;
      int stage = slice % kStages;
      u32 parity = slice / kStages & 1;
      const int first_row = item.row + (kGroups == 2 ? group * 64 * kHalves : 0);
#ifdef kScaledSums
      const int row = first_row + warp % 4 * 16 + lane / 4, column = item.column(c);
      #pragma unroll 1
      for (int s = 0; s < kSlices; ++s) {
        const u32 right = ring + stage * kStage, left = (kResident ? resident + s * kLeftBytes : right + kRightBytes) + group * kHalves * 8192;
        const SliceFactors factors(p, s, row, rows, column);
        f32 part[kHalves][kAcross / 8][4];
        barrier_wait(full + 8 * stage, parity);
        #pragma unroll
        for (int h = 0; h < kHalves; ++h) hold(part[h]);
        products_begin();
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          #pragma unroll
          for (int h = 0; h < kHalves; ++h) multiply_tile(part[h], tile_at(left + h * 8192 + k * 32), tile_at(right + k * 32), k > 0);
        }
        products_commit();
        products_wait<0>();
        #pragma unroll
        for (int h = 0; h < kHalves; ++h) hold(part[h]);
        release(stage);
        #pragma unroll
        for (int h = 0; h < kHalves; ++h) add_slice(acc[h], part[h], factors, h, s > 0);
        if (++stage == kStages) stage = 0, parity ^= 1;
      }
      #pragma unroll
      for (int h = 0; h < kHalves; ++h) scale_sums(p, acc[h], row + h * 64, rows, column + lane % 4 * 2);
#else
      int before = stage;
      barrier_wait(turns + 8 * group, group == 0 ? (mine + 1) & 1 : mine & 1);  // the first tile of the first group waits for nobody
      #pragma unroll
      for (int h = 0; h < kHalves; ++h) hold(acc[h]);
      #pragma unroll 1
      for (int s = 0; s < kSlices; ++s) {
        const u32 right = ring + stage * kStage, left = kResident ? resident + s * kLeftBytes : right + kRightBytes;
        barrier_wait(full + 8 * stage, parity);
        products_begin();
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          #pragma unroll
          for (int h = 0; h < kHalves; ++h) multiply_tile(acc[h], tile_at(left + h * 8192 + k * 32), right_at(right, k), s > 0 || k > 0);
        }
        products_commit();
        if (s > 0) {
          products_wait<1>();
          release(before);
        }
        before = stage;
        if (++stage == kStages) stage = 0, parity ^= 1;
      }
      if (lane == 0) barrier_arrive(turns + 8 * (1 - group));
      products_wait<0>();
      #pragma unroll
      for (int h = 0; h < kHalves; ++h) hold(acc[h]);
      release(before);
#endif
      // One text of the elements for both halves: they are a third of what the compiler works on.
      #pragma unroll 1
      for (int h = 0; h < kHalves; ++h) {
        #pragma unroll
        for (int i = 0; i < kHalves; ++i) {
          if (h == i) write_sums(sums_at, acc[i], lane);
        }
        __syncwarp();
        const int row = first_row + h * 64 + warp % 4 * 16, column = item.column(c);
        if (row + 16 <= rows && column + kWide <= kColumns) {
          finish_rows<true>(p, rows, sums_place, row, column, lane);
        } else {
          finish_rows<false>(p, rows, sums_place, row, column, lane);
        }
        __syncwarp();
      }
      ++mine;
    }
  }
  if (kCluster > 1) join_cluster();  // nobody writes to a block that has ended
}
)cuda";

}  // namespace rlx::cuda
