// Products of many rows in f16 and bf16 whose whole rows end in a region of rows, y = norm(a b + bias + residual) and the like, on the matrix units of Hopper. The kCluster = kAcross kParts
// blocks of a cluster own kHeight whole rows together: block (d, c) of rank d kAcross + c multiplies columns [c kWide, (c + 1) kWide) over part d of k. Sums go to the blocks that finish their rows,
// kOwn rows each, through shared memory of the cluster (st.async, which counts its bytes on a barrier of the receiver, so that no fence is needed), and lie there as one matrix.
//   tile   [kHeight = 64 kHalves rows][kWide columns], the product of one group of four warps; two groups take turns with whole tiles, so that one multiplies while the other finishes rows.
//          kOneTile: a cluster has one tile; then both groups finish its rows
//   ring   kStages places of one slice (64 along k) of a and of b. Slices of all tiles of a block are counted through, so that slice f lies at place f % kStages
//   b [n, k]           a slice is [kWide][64 of k], as a is
//   b [k, n] (kTurned) a slice is pieces of 64 columns, each [64 of k][64]
// kShared: the kAcross blocks with the same part of k ask for slices of a in turn and send them to all, so that a place is free when the groups of all have read it.
// kParts == 1: sums arrive rounded to T as [kOwn][kLine]. Otherwise they arrive as f32 [kParts][kOwn][kWideLine], and whoever finishes a row adds the parts in their order and rounds.
// After kMatrixGroups, kClusterBlocks and kProductWords; before it stand T, kColumns (n), kDepth (k), kAcross, kParts, kHalves, kStages, kLanes (of a warp, for a row), kTurned, kShared, kOneTile,
// kEarly (no kernel before this one makes b), kLine, the macro kClusterShape, multiply_tile (d += a b for 64 x 16 of a and 16 x kWide of b), Params and
//   void finish_row(p, const T* products, int row)   called by kLanes neighbouring lanes; products + row kLine is the row of the product
#pragma once

namespace rlx::cuda {

inline constexpr char kProductRows[] = R"cuda(
constexpr int kCluster = kAcross * kParts, kWide = kColumns / kAcross, kHeight = 64 * kHalves, kSlices = (kDepth + 63) / 64;
constexpr int kPieces = kTurned ? (kWide + 63) / 64 : 1, kPieceBytes = kTurned ? 8192 : kWide * 128;
constexpr int kLeftBytes = kHeight * 128, kRightBytes = kPieces * kPieceBytes, kStage = kLeftBytes + kRightBytes;
constexpr int kOwn = (kHeight + kCluster - 1) / kCluster, kWideLine = kColumns + 8;
constexpr int kRowBytes = kOwn * kLine * 2;           // of all rows that a block finishes
constexpr int kFinishing = kOneTile ? 8 : 4;          // warps that finish the rows of a tile
static_assert(kColumns % (16 * kAcross) == 0 && kWide <= 256 && kLine % 8 == 0 && kSlices >= kParts);

inline u32 in_rank(u32 place, u32 rank) { u32 there; asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(place), "r"(rank)); return there; }
// Into shared memory of any block of the cluster; the barrier there counts the bytes.
inline void send(u32 to, u32 a, u32 barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" :: "r"(to), "r"(a), "r"(barrier) : "memory");
}
inline void send(u32 to, f32 a, f32 b, u32 barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" :: "r"(to), "f"(a), "f"(b), "r"(barrier) : "memory");
}
inline void send(u32 to, u32 a, u32 b, u32 c, u32 d, u32 barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %3, %4}, [%5];"
               :: "r"(to), "r"(a), "r"(b), "r"(c), "r"(d), "r"(barrier) : "memory");
}

// Of four neighbouring lanes each has two columns of the same row in four tiles of eight: afterwards lane q has all eight of tile q.
inline void turn_quad(u32 (&v)[4], int q) {
  const bool high = q & 2, odd = q & 1;
  const u32 b0 = __shfl_xor_sync(~0u, high ? v[0] : v[2], 2), b1 = __shfl_xor_sync(~0u, high ? v[1] : v[3], 2);
  const u32 low0 = high ? b0 : v[0], low1 = high ? b1 : v[1], high0 = high ? v[2] : b0, high1 = high ? v[3] : b1;
  const u32 r0 = __shfl_xor_sync(~0u, odd ? low0 : low1, 1), r1 = __shfl_xor_sync(~0u, odd ? high0 : high1, 1);
  v[0] = odd ? r0 : low0, v[1] = odd ? low1 : r0, v[2] = odd ? r1 : high0, v[3] = odd ? high1 : r1;
}

// The sums of 16 rows of a tile, from `row` on, and kWide columns from `column` on to the blocks that finish these rows.
template <int N> void send_sums(const f32 (&sums)[N][4], int row, int column, int part, u32 place, u32 arrived, int lane) {
  const int q = lane % 4;
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int at = row + lane / 4 + 8 * h, owner = at / kOwn, own = at % kOwn;
    const u32 barrier = in_rank(arrived, owner);
    if (kParts > 1) {
      const u32 to = in_rank(place, owner) + kRowBytes + ((part * kOwn + own) * kWideLine + column + q * 2) * 4;
      #pragma unroll
      for (int n = 0; n < N; ++n) send(to + n * 32, sums[n][2 * h], sums[n][2 * h + 1], barrier);
      continue;
    }
    const u32 to = in_rank(place, owner) + (own * kLine + column) * 2;
    #pragma unroll
    for (int n = 0; n + 4 <= N; n += 4) {
      u32 v[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = both(sums[n + i][2 * h], sums[n + i][2 * h + 1], T{});
      turn_quad(v, q);
      send(to + (n + q) * 16, v[0], v[1], v[2], v[3], barrier);
    }
    #pragma unroll
    for (int n = N / 4 * 4; n < N; ++n) send(to + n * 16 + q * 4, both(sums[n][2 * h], sums[n][2 * h + 1], T{}), barrier);
  }
}

// The parts of a row in their order, rounded.
inline void add_parts(u8* rows, int own, int lane) {
  const f32* const from = reinterpret_cast<const f32*>(rows + kRowBytes) + own * kWideLine;
  T* const to = reinterpret_cast<T*>(rows) + own * kLine;
  #pragma unroll
  for (int c = lane * 4; c < kColumns; c += kLanes * 4) {
    Pack<f32, 4> sum = load<4>(from + c);
    #pragma unroll
    for (int d = 1; d < kParts; ++d) {
      const Pack<f32, 4> more = load<4>(from + d * kOwn * kWideLine + c);
      #pragma unroll
      for (int u = 0; u < 4; ++u) sum.v[u] += more.v[u];
    }
    Pack<u32, 2> rounded;
    rounded.v[0] = both(sum.v[0], sum.v[1], T{}), rounded.v[1] = both(sum.v[2], sum.v[3], T{});
    *reinterpret_cast<Pack<u32, 2>*>(to + c) = rounded;
  }
}

extern "C" __global__ void kClusterShape __launch_bounds__(384, 1)
product_rows(Params p, int rows, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kStages + 5];
  const u32 ring = (place_of(shared) + 1023) & ~1023u, place = ring + kStages * kStage;
  u8* const own_rows = reinterpret_cast<u8*>(shared) + (place - place_of(shared));
  // arrived: the sums of the rows that this block finishes; vacated: all blocks have finished theirs of a tile of this group. Each group waits for every tile of the other, so that
  // no phase is taken for one before it.
  const u32 full = place_of(barriers), empty = full + 8 * kStages, turns = empty + 8 * kStages, arrived = turns + 16, vacated = turns + 24;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), group = warp / 4;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, 4 * (kShared ? kAcross : 1));
    for (int i = 0; i < 2; ++i) barrier_init(turns + 8 * i, 4);
    barrier_init(arrived, 1), barrier_init(vacated, 4 * kCluster), barrier_init(vacated + 8, 4 * kCluster);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  }
  if (kCluster > 1) {
    join_cluster();
  } else {
    __syncthreads();
  }
  const int rank = kCluster > 1 ? int(rank_in_cluster()) : 0, across = rank % kAcross, part = rank / kAcross, column = across * kWide;
  const int slice0 = kSlices * part / kParts, slices = kSlices * (part + 1) / kParts - slice0;
  const int items = (rows + kHeight - 1) / kHeight, first_item = blockIdx.x / kCluster, next_item = gridDim.x / kCluster;
  const auto ask_right = [&](u32 at, int slice, u32 barrier) {
    const int k = (slice0 + slice) * 64;
    #pragma unroll
    for (int i = 0; i < kPieces; ++i) copy_tile(at + kLeftBytes + i * kPieceBytes, b_map, kTurned ? column + i * 64 : k, kTurned ? k : column, 0, 0, barrier);
  };
  const auto ask_all = [&] {
    const int ahead = !kEarly ? 0 : kStages < slices ? kStages : slices;  // slices of b that are asked for before the kernel in front has ended
    for (int s = 0; s < ahead; ++s) {
      barrier_expect(full + 8 * s, kStage);
      ask_right(ring + s * kStage, s, full + 8 * s);
    }
    begin_alone();
    int stage = 0, asks = 0;  // whose turn it is to ask for a slice of a
    u32 parity = 1;           // of a place that nobody has used yet
    #pragma unroll 1
    for (int i = first_item; i < items; i += next_item) {
      #pragma unroll 1
      for (int s = 0; s < slices; ++s) {
        const u32 at = ring + stage * kStage, barrier = full + 8 * stage;
        if (i != first_item || s >= ahead) {
          barrier_wait(empty + 8 * stage, parity);
          barrier_expect(barrier, kStage);
          ask_right(at, s, barrier);
        }
        const int k = (slice0 + s) * 64;
        if (!kShared) {
          copy_tile(at, a_map, k, i * kHeight, 0, 0, barrier);
        } else if (asks == across) {
          copy_tile_to(u16(((1 << kAcross) - 1) << (part * kAcross)), at, a_map, k, i * kHeight, 0, 0, barrier);
        }
        if (++asks == kAcross) asks = 0;
        if (++stage == kStages) stage = 0, parity ^= 1;
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
  const auto release = [&](int stage) {
    if (lane >= (kShared ? kAcross : 1)) return;
    if (kShared) {
      barrier_arrive_in(empty + 8 * stage, part * kAcross + lane);
    } else {
      barrier_arrive(empty + 8 * stage);
    }
  };
  const int own_count = kHeight - rank * kOwn < kOwn ? kHeight - rank * kOwn : kOwn;
  // The rows of a tile that this block owns, each by kLanes lanes. Lanes without a row of their own do the last one again: all of a warp take part in its sums.
  const auto finish_tile = [&](int item, u32 parity) {
    barrier_wait(arrived, parity);
    constexpr int kTeams = 32 / kLanes;
    const int first = item * kHeight + rank * kOwn, count = own_count < rows - first ? own_count : rows - first;
    #pragma unroll 1
    for (int base = warp % kFinishing * kTeams; base < count; base += kFinishing * kTeams) {
      const int own = base + lane / kLanes < count ? base + lane / kLanes : count - 1;
      if (kParts > 1) {
        add_parts(own_rows, own, lane % kLanes);
        __syncwarp();
      }
      finish_row(p, reinterpret_cast<const T*>(own_rows) - i64(first) * kLine, first + own);
    }
  };
  f32 acc[kHalves][kWide / 8][4] = {};
  int tile = 0;  // of this block, of both groups
  u32 mine = 0;
  #pragma unroll 1
  for (int i = first_item; i < items; i += next_item, ++tile) {
    if (tile % 2 != group) continue;
    const int slice = tile * slices;
    int stage = slice % kStages, before = stage;
    u32 parity = slice / kStages & 1;
    barrier_wait(turns + 8 * group, group == 0 ? (mine + 1) & 1 : mine & 1);  // the first tile of the first group waits for nobody
    #pragma unroll
    for (int h = 0; h < kHalves; ++h) hold(acc[h]);
    #pragma unroll 1
    for (int s = 0; s < slices; ++s) {
      const u32 left = ring + stage * kStage, right = left + kLeftBytes;
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
    if (!kOneTile && tile > 0) barrier_wait(vacated + 8 * (1 - group), (tile - 1) / 2 & 1);
    if (warp % 4 == 0 && lane == 0) barrier_expect(arrived, own_count * kColumns * (kParts > 1 ? 4 * kParts : 2));
    __syncwarp();
    #pragma unroll
    for (int h = 0; h < kHalves; ++h) send_sums(acc[h], h * 64 + warp % 4 * 16, column, part, place, arrived, lane);
    finish_tile(i, tile & 1);
    __syncwarp();
    if (!kOneTile && lane < kCluster) {
      if (kCluster > 1) {
        barrier_arrive_in(vacated + 8 * group, lane);
      } else {
        barrier_arrive(vacated + 8 * group);
      }
    }
    ++mine;
  }
  if (kOneTile && group == 1) finish_tile(first_item, 0);
  __syncwarp();
  if (kCluster > 1) join_cluster();  // nobody writes to a block that has ended
}
)cuda";

}  // namespace rlx::cuda
