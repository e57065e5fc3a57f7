// The gradients of attention as in attention_backward.h, on the units of groups of warps, for heads of 64 lanes without masks but that of keys behind a query. What goes by
// comes by the copy engine; what stays, weights and gradients of scores are left operands in registers. Blocks stay and take items in turn. After the text of attention_backward.h and kMatrixGroups.
#pragma once

namespace rlx::cuda {

inline constexpr char kBackwardPipeline[] = R"cuda(
constexpr int kBy = 64, kByTile = kBy * 128, kStages = 6, kAhead = 3;  // rows that go by at once; their places, and how many are on their way

// Rows `row` and `row` + 8 of a matrix with 64 lanes as the left operand; zeros behind its end.
inline void load_left(u32 (&a)[4][4], const T* from, i64 stride, int row, int count, int column) {
  #pragma unroll
  for (int d = 0; d < 4; ++d) {
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int i = row + n % 2 * 8;
      a[d][n] = i < count ? *reinterpret_cast<const u32*>(from + i64(i) * stride + d * 16 + n / 2 * 8 + column) : 0;
    }
  }
}
// d = a b^T; d += a b.
inline void multiply_lanes(f32 (&d)[8][4], const u32 (&a)[4][4], u32 b) {
  #pragma unroll
  for (int k = 0; k < 4; ++k) multiply64<false>(d, a[k], tile_at(b + k * 32), k > 0, T{});
  products_commit();
}
inline void multiply_rows(f32 (&d)[8][4], const u32 (&a)[4][4], u32 b) {
  #pragma unroll
  for (int k = 0; k < 4; ++k) multiply64<true>(d, a[k], tile_at(b + k * 2048), 1, T{});
  products_commit();
}
// With keys as rows: products of 64 keys and 64 queries become weights. The thread has keys `key` and + 8 and of every eight queries two; queries before `behind` of them do not see its first key, counted from the
// thread's first. `edge`: some pair is hidden, or some key lies behind the last.
inline void weigh_keys(const Params& p, f32 (&s)[8][4], const f32 (&lse)[kBy], f32 scale, bool edge, int behind, int key, int column) {
  #pragma unroll
  for (int m = 0; m < 8; ++m) {
    const float2 two = *reinterpret_cast<const float2*>(&lse[m * 8 + column]);
    const f32 base[2] = {base_of(two.x), base_of(two.y)};
    #pragma unroll
    for (int c = 0; c < 4; ++c) {
      s[m][c] = power_of_two(fmaf(s[m][c], scale, -base[c % 2]));
      if (edge) s[m][c] = (!kCausal || m * 8 + c % 2 >= behind + c / 2 * 8) && key + c / 2 * 8 < p.k_len ? s[m][c] : 0.0f;
    }
  }
}
// Gradients of scores, but for the factor `scale`, from those of weights.
inline void slope_keys(f32 (&ds)[8][4], const f32 (&s)[8][4], const f32 (&delta)[kBy], int column) {
  #pragma unroll
  for (int m = 0; m < 8; ++m) {
    const float2 two = *reinterpret_cast<const float2*>(&delta[m * 8 + column]);
    #pragma unroll
    for (int c = 0; c < 4; ++c) ds[m][c] = s[m][c] * (ds[m][c] - (c % 2 ? two.y : two.x));
  }
}
inline void write_keys(const Params& p, const Gradients& g, const f32 (&dk)[8][4], const f32 (&dv)[8][4], int b, int kv, int key, int column) {
  #pragma unroll
  for (int c = 0; c < 2; ++c) {
    const int j = key + c * 8;
    if (j >= p.k_len) continue;
    write_gradient(g.dk + b * g.dks.batch + kv * g.dks.head + i64(j) * g.dks.row, dk, c, p.scale, column);
    write_gradient(g.dv + b * g.dvs.batch + kv * g.dvs.head + i64(j) * g.dvs.row, dv, c, 1.0f, column);
  }
}
// An asynchronous copy of this thread before it counts as an arrival.
inline void copies_arrive(u32 barrier) { asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory"); }
)cuda";

inline constexpr char kKeysPipeline[] = R"cuda(
// Keys in place, 64 a group; queries and their gradients of results go by, with lse and delta. An item is a head and 128 keys; `heads` heads of keys in all batches.
extern "C" __global__ void __launch_bounds__(256, 1)
attention_keys_pipeline(Params p, Gradients g, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap y_map, int heads) {
  constexpr int kGroups = 2, kStage = 2 * kByTile;
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kStages];
  __shared__ f32 rows[kStages][2][kBy];
  __shared__ int coming_round, coming_head, coming_end, coming_at, coming_first;  // what is fetched, by the first warp
  const u32 tiles = (place_of(shared) + 1023) & ~1023u, full = place_of(barriers), empty = full + 8 * kStages;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), group = warp / 4, column = lane % 4 * 2;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) barrier_init(full + 8 * i, 33), barrier_init(empty + 8 * i, 128 * kGroups);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
    coming_round = -1, coming_head = coming_end = 0;
  }
  __syncthreads();
  begin_alone();
  const int items = heads * ((p.k_len + 64 * kGroups - 1) / (64 * kGroups)), shared_by = p.q_heads / p.kv_heads, shift = p.k_len - p.q_len;
  const f32 by_heads = 1.0f / heads, by_kv_heads = 1.0f / p.kv_heads;
  // The queries that may see a key of block y begin at `from`.
  const auto from_of = [&](int y) { return kCausal && y * 64 * kGroups - shift > 0 ? (y * 64 * kGroups - shift) / kBy * kBy : 0; };
  // By the first warp: the next tile, as number `n` of all. Of an item's heads of queries, each has its tiles.
  const auto fetch = [&](int n) {
    __syncwarp();
    while (coming_head >= coming_end) {
      const int round = coming_round + 1, i = item_of(round);
      if (i >= items) return;
      const int y = quotient(i, by_heads), both = i - y * heads, from = from_of(y);
      __syncwarp();
      if (lane == 0) {
        coming_round = round, coming_first = coming_at = from;
        coming_head = both * shared_by, coming_end = coming_head + (from < p.q_len ? shared_by : 0);
      }
      __syncwarp();
    }
    const int head = coming_head, first = coming_at, start = coming_first, stage = n % kStages;
    const int b = quotient(quotient(head, 1.0f / shared_by), by_kv_heads), h = head - b * p.q_heads;
    __syncwarp();
    if (lane == 0) {
      const bool more = first + kBy < p.q_len;
      coming_at = more ? first + kBy : start;
      if (!more) coming_head = head + 1;
    }
    const u32 to = tiles + stage * kStage, barrier = full + stage * 8;
    __syncwarp();
    if (n >= kStages) barrier_wait(empty + stage * 8, n / kStages - 1 & 1);
    if (lane == 0) {
      barrier_expect(barrier, kStage);
      copy_tile(to, q_map, 0, first, h, b, barrier);
      copy_tile(to + kByTile, y_map, 0, first, h, b, barrier);
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int r = k % 2 * 32 + lane;
      const bool there = first + r < p.q_len;
      copy4(&rows[stage][k / 2][r], (k / 2 ? g.delta : g.lse) + (i64(b) * p.q_heads + h) * p.q_len + (there ? first + r : 0), there);
    }
    copies_arrive(barrier);
    __syncwarp();
  };
  if (warp == 0) {
    for (int n = 0; n < kStages; ++n) fetch(n);
  }
  const f32 scale = p.scale * kLog2e;
  // Every thread says itself that it has read the numbers of rows: racecheck does not know that one lane may speak for its warp, and it costs nothing.
  const auto release = [&](int n) { barrier_arrive(empty + n % kStages * 8); };
  int n = 0;  // the number of the tile
  #pragma unroll 1
  for (int round = 0; item_of(round) < items; ++round) {
    const int i = item_of(round), block = quotient(i, by_heads), both = i - block * heads, start = block * 64 * kGroups, from = from_of(block);
    const int each = p.q_len > from ? (p.q_len - from + kBy - 1) / kBy : 0, b = quotient(both, by_kv_heads), kv = both - b * p.kv_heads, key0 = start + group * 64, key = start + warp * 16 + lane / 4;
    u32 k[4][4], v[4][4], w[4][4], u[4][4];
    load_left(k, p.k + b * p.ks.batch + kv * p.ks.head, p.ks.row, key, p.k_len, column);
    load_left(v, p.v + b * p.vs.batch + kv * p.vs.head, p.vs.row, key, p.k_len, column);
    f32 dk[8][4] = {}, dv[8][4] = {}, s[8][4], ds[8][4];
    int used = -1;  // the tile whose products are on their way
    #pragma unroll 1
    for (int left = each * shared_by, at = 0; left > 0; --left, ++n, at = at + 1 == each ? 0 : at + 1) {
      const int stage = n % kStages, first = from + at * kBy;
      const u32 q = tiles + stage * kStage, y = q + kByTile;
      if (warp == 0 && n + kAhead >= kStages) fetch(n + kAhead);
      barrier_wait(full + stage * 8, n / kStages & 1);
      if (kCausal && key0 > first + kBy - 1 + shift) {  // behind all of these queries
        if (used >= 0) {
          products_wait<0>();
          release(used);
          used = -1;
        }
        release(n);
        continue;
      }
      hold(s), hold(ds), hold(dk), hold(dv);
      products_begin();
      multiply_lanes(s, k, q);
      multiply_lanes(ds, v, y);
      products_wait<1>();
      hold(s), hold(dk), hold(dv), hold(w), hold(u);
      if (used >= 0) release(used);
      const int behind = kCausal ? key - shift - first - column : 0;  // queries before this one do not see the thread's first key
      const bool edge = kCausal && key0 + 63 > first + shift;
      weigh_keys(p, s, rows[stage][0], scale, edge, behind, key, column);
      pack_rows(w, s, T{});
      hold(w), hold(dv);
      products_begin();
      multiply_rows(dv, w, y);
      products_wait<1>();
      hold(ds);
      slope_keys(ds, s, rows[stage][1], column);
      pack_rows(u, ds, T{});
      hold(u), hold(dk);
      products_begin();
      multiply_rows(dk, u, q);
      used = n;
    }
    products_wait<0>();
    hold(dk), hold(dv);
    if (used >= 0) release(used);
    write_keys(p, g, dk, dv, b, kv, key, column);
  }
}
)cuda";

inline constexpr char kQueriesPipeline[] = R"cuda(
// Queries in place, 64 a group; keys and values go by. An item is a head and 128 queries; `heads` heads of queries in all batches.
extern "C" __global__ void __launch_bounds__(256, 1)
attention_queries_pipeline(Params p, Gradients g, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map, int heads) {
  constexpr int kGroups = 2, kStage = 2 * kByTile;
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kStages];
  __shared__ int coming_round, coming_tile, coming_end, coming_head, coming_batch;  // what is fetched, by the first thread
  const u32 tiles = (place_of(shared) + 1023) & ~1023u, full = place_of(barriers), empty = full + 8 * kStages;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), group = warp / 4, column = lane % 4 * 2;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, 4 * kGroups);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
    coming_round = -1, coming_tile = coming_end = 0;
  }
  __syncthreads();
  begin_alone();
  const int blocks = (p.q_len + 64 * kGroups - 1) / (64 * kGroups), items = heads * blocks, shift = p.k_len - p.q_len;
  const f32 by_heads = 1.0f / heads, by_q_heads = 1.0f / p.q_heads;
  const auto first_of = [&](int y) { return (kCausal ? blocks - 1 - y : y) * 64 * kGroups; };
  const auto tiles_to = [&](int end) { return (keys_to(p, (end < p.q_len ? end : p.q_len) - 1) + kBy - 1) / kBy; };
  // By the first thread: the next tile, as number `n` of all.
  const auto fetch = [&](int n) {
    while (coming_tile >= coming_end) {
      const int i = item_of(coming_round + 1);
      if (i >= items) return;
      const int y = quotient(i, by_heads), both = i - y * heads;
      ++coming_round, coming_tile = 0, coming_end = tiles_to(first_of(y) + 64 * kGroups);
      coming_batch = quotient(both, by_q_heads), coming_head = quotient((both - coming_batch * p.q_heads) * p.kv_heads, by_q_heads);
    }
    const int t = coming_tile++;
    const u32 to = tiles + n % kStages * kStage, barrier = full + n % kStages * 8;
    if (n >= kStages) barrier_wait(empty + n % kStages * 8, n / kStages - 1 & 1);
    barrier_expect(barrier, kStage);
    copy_tile(to, k_map, 0, t * kBy, coming_head, coming_batch, barrier);
    copy_tile(to + kByTile, v_map, 0, t * kBy, coming_head, coming_batch, barrier);
  };
  if (threadIdx.x == 0) {
    for (int n = 0; n < kStages; ++n) fetch(n);
  }
  const f32 scale = p.scale * kLog2e;
  const auto release = [&](int n) {
    __syncwarp();
    if (lane == 0) barrier_arrive(empty + n % kStages * 8);
  };
  int n = 0;  // the number of the tile
  #pragma unroll 1
  for (int round = 0; item_of(round) < items; ++round) {
    const int i = item_of(round), block = quotient(i, by_heads), both = i - block * heads, b = quotient(both, by_q_heads), h = both - b * p.q_heads;
    const int first = first_of(block), row0 = first + group * 64;
    const int all = tiles_to(first + 64 * kGroups), mine = row0 < p.q_len ? tiles_to(row0 + 64) : 0, row = first + warp * 16 + lane / 4;
    u32 q[4][4], y[4][4], u[4][4];
    load_left(q, p.q + b * p.qs.batch + h * p.qs.head, p.qs.row, row, p.q_len, column);
    load_left(y, g.dy + b * g.ys.batch + h * g.ys.head, g.ys.row, row, p.q_len, column);
    f32 base[2], delta[2];
    #pragma unroll
    for (int c = 0; c < 2; ++c) {
      const i64 at = (i64(b) * p.q_heads + h) * p.q_len + row + c * 8;
      const bool there = row + c * 8 < p.q_len;
      base[c] = there ? base_of(g.lse[at]) : 0.0f, delta[c] = there ? g.delta[at] : 0.0f;
    }
    f32 dq[8][4] = {}, s[8][4], ds[8][4];
    #pragma unroll 1
    for (int t = 0; t < all; ++t, ++n) {
      const u32 k = tiles + n % kStages * kStage;
      if (threadIdx.x == 0 && n + kAhead >= kStages) fetch(n + kAhead);
      barrier_wait(full + n % kStages * 8, n / kStages & 1);
      if (t >= mine) {  // tiles of the groups behind
        if (t == mine && t > 0) {
          products_wait<0>();
          release(n - 1);
        }
        release(n);
        continue;
      }
      hold(s), hold(ds), hold(dq);
      products_begin();
      multiply_lanes(s, q, k);
      multiply_lanes(ds, y, k + kByTile);
      products_wait<1>();
      hold(s), hold(dq), hold(u);
      if (t > 0) release(n - 1);
      const int end = t * kBy + kBy - 1, start = t * kBy + column;
      #pragma unroll
      for (int m = 0; m < 8; ++m) {
        #pragma unroll
        for (int c = 0; c < 4; ++c) s[m][c] = power_of_two(fmaf(s[m][c], scale, -base[c / 2]));
      }
      if (end >= p.k_len || (kCausal && end > row0 + shift)) {
        #pragma unroll
        for (int m = 0; m < 8; ++m) {
          #pragma unroll
          for (int c = 0; c < 4; ++c) {
            const int j = start + m * 8 + c % 2;
            s[m][c] = j < p.k_len && (!kCausal || j <= row + c / 2 * 8 + shift) ? s[m][c] : 0.0f;
          }
        }
      }
      products_wait<0>();
      hold(ds);
      #pragma unroll
      for (int m = 0; m < 8; ++m) {
        #pragma unroll
        for (int c = 0; c < 4; ++c) ds[m][c] = s[m][c] * (ds[m][c] - delta[c / 2]);
      }
      pack_rows(u, ds, T{});
      hold(u), hold(dq);
      products_begin();
      multiply_rows(dq, u, k);
    }
    products_wait<0>();
    hold(dq);
    if (mine > 0 && mine == all) release(n - 1);
    #pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int r = row + c * 8;
      if (r < p.q_len) write_gradient(g.dq + b * g.dqs.batch + h * g.dqs.head + i64(r) * g.dqs.row, dq, c, p.scale, column);
    }
  }
}
)cuda";

}  // namespace rlx::cuda
