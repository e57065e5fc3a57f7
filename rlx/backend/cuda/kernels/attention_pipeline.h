// Attention of many queries, f16 and bf16 with heads of 64 or 128 lanes, with a mask of keys behind a query or one for all heads. Keys and values come by the copy
// engine some tiles ahead. A group of four warps has 64 queries; while it makes weights of one tile of keys, the units multiply the weights before
// with their values, and other groups have them in between. After kAttentionShared, kAttentionWeights (attention.h) and kMatrixGroups.
#pragma once

namespace rlx::cuda {

inline constexpr char kPipelineTiles[] = R"cuda(
constexpr bool kNarrow = kDim <= 64 && kValueDim <= 64;
constexpr int kGroups = kNarrow ? 3 : 2, kRows = 64 * kGroups, kKeys = 128, kStages = kNarrow ? 6 : 3;
constexpr int kAhead = kNarrow ? 3 : 1;  // tiles on their way when one is multiplied
constexpr int kTile = kKeys * 128, kKeyBytes = kTile * (kDim / 64), kStage = kKeyBytes + kTile * (kValueDim / 64);
constexpr int kQueryTile = kRows * 128, kQueryBytes = kQueryTile * (kDim / 64);  // tiles of 64 lanes, in them the groups

// Scores of rows `row` and `row` + 8 become weights, as `weigh` does; `limit` is the last key of the tile that the first row sees, counted from the
// thread's first. `factor` is what sums so far are multiplied with.
template <bool kEdge> void weigh_wide(f32 (&s)[16][4], f32 (&most)[2], f32 (&sum)[2], f32 (&factor)[2], f32 scale, const int (&limit)[2]) {
  const f32 minus_infinity = -from_bits(0x7f800000u);
  #pragma unroll
  for (int c = 0; c < 2; ++c) {
    if (kEdge) {
      #pragma unroll
      for (int n = 0; n < 16; ++n) {
        s[n][2 * c] = n * 8 <= limit[c] ? s[n][2 * c] : minus_infinity;
        s[n][2 * c + 1] = n * 8 + 1 <= limit[c] ? s[n][2 * c + 1] : minus_infinity;
      }
    }
    f32 now = fmaxf(s[0][2 * c], s[0][2 * c + 1]), other = fmaxf(s[1][2 * c], s[1][2 * c + 1]);
    #pragma unroll
    for (int n = 2; n < 16; n += 2) {
      now = fmaxf(now, fmaxf(s[n][2 * c], s[n][2 * c + 1]));
      other = fmaxf(other, fmaxf(s[n + 1][2 * c], s[n + 1][2 * c + 1]));
    }
    now = fmaxf(now, other);
    now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
    now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
    now = fmaxf(now * scale, most[c]);  // a NaN goes on through its weight
    const f32 base = now == minus_infinity ? 0.0f : now;
    factor[c] = power_of_two(most[c] - base);
    most[c] = now;
    f32 part[2] = {};
    #pragma unroll
    for (int n = 0; n < 16; ++n) {
      #pragma unroll
      for (int e = 0; e < 2; ++e) {
        f32& x = s[n][2 * c + e];
        x = power_of_two(fmaf(x, scale, -base));
        part[e] += x;
      }
    }
    sum[c] = fmaf(sum[c], factor[c], part[0] + part[1]);
  }
}

// The tiles of keys that 64 queries from `row` on see, a table of tiles being read by a whole warp. It tells for 64 queries and 64 keys whether a mask lets
// nothing (0), a part (1) or all of it (2) through.
inline void tiles_seen(const Params& p, const u8* table, int b, int row, int& from, int& to) {
  from = 0, to = 0;
  if (row < 0 || row >= p.q_len) return;
  to = (keys_to(p, row + 63 < p.q_len ? row + 63 : p.q_len - 1) + kKeys - 1) / kKeys;
  if (!kHasMask) return;
  const int halves = (p.k_len + 63) / 64;
  table += ((p.ms.batch ? b : 0) * i64((p.q_len + 63) / 64) + row / 64) * halves;
  int least = halves, most = -1;
  for (int e = threadIdx.x % 32; e < halves; e += 32) {
    if (table[e] != 0) least = e < least ? e : least, most = e;
  }
  least = __reduce_min_sync(~0u, least), most = __reduce_max_sync(~0u, most);
  from = least / 2;
  if (most / 2 + 1 < to) to = most / 2 + 1;
  if (most < 0 || from >= to) from = to = 0;
}
)cuda";

inline constexpr char kAttentionPipeline[] = R"cuda(
// One block has kRows queries of a head; blocks are counted from the last query, so that groups without queries are those with fewest keys. `section` of `heads` heads
// take turns before the next come: so many that their keys and values stay in the cache; of these, blocks with most keys begin first.
extern "C" __global__ void __launch_bounds__(128 * kGroups, 1)
attention_pipeline(Params p, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map,
                   int heads, int section, const u8* table) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kStages + 1];
  const u32 queries = (place_of(shared) + 1023) & ~1023u, tiles = queries + kQueryBytes;
  const u32 full = place_of(barriers), empty = full + 8 * kStages, ready = full + 16 * kStages;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), group = warp / 4;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, 4 * kGroups);
    barrier_init(ready, 1);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  begin_alone();
  const int blocks = (p.q_len + kRows - 1) / kRows;
  const int head0 = blockIdx.x / (section * blocks) * section, many = heads - head0 < section ? heads - head0 : section;
  const int turn = blockIdx.x - head0 * blocks, both = head0 + turn % many, b = both / p.q_heads, h = both % p.q_heads;
  const int kv = int(i64(h) * p.kv_heads / p.q_heads), first = (p.q_len + 63) / 64 * 64 - (turn / many + 1) * kRows;
  const int row0 = first + warp * 16, row = row0 + lane / 4, column = lane % 4 * 2, shift = p.k_len - p.q_len;
  // Tiles of keys that this group sees, and those that some group of the block sees.
  int from = 0, to = 0, all_from = 0, all_to = 0;
  #pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    int x, y;
    tiles_seen(p, table, b, first + g * 64, x, y);
    if (g == group) from = x, to = y;
    if (x < y) all_from = all_from < all_to && all_from < x ? all_from : x, all_to = y > all_to ? y : all_to;
  }
  const int all = all_to - all_from;  // tiles are counted from the first that is seen
  from -= all_from, to -= all_from;
  const auto fetch = [&](int t) {
    const u32 at = tiles + t % kStages * kStage, barrier = full + t % kStages * 8;
    barrier_expect(barrier, kStage);
    for (int c = 0; c < kDim / 64; ++c) copy_tile(at + c * kTile, k_map, c * 64, (all_from + t) * kKeys, kv, b, barrier);
    for (int c = 0; c < kValueDim / 64; ++c) copy_tile(at + kKeyBytes + c * kTile, v_map, c * 64, (all_from + t) * kKeys, kv, b, barrier);
  };
  // When tile t is multiplied: one more into the place of an old one.
  const auto refill = [&](int t) {
    const int old = t + kAhead - kStages, next = t + kAhead;
    if (threadIdx.x == 0 && old >= 0 && next < all) {
      barrier_wait(empty + old % kStages * 8, old / kStages & 1);
      fetch(next);
    }
  };
  if (threadIdx.x == 0) {
    barrier_expect(ready, kQueryBytes);
    for (int c = 0; c < kDim / 64; ++c)
      for (int g = 0; g < kGroups; ++g) copy_tile(queries + c * kQueryTile + g * 8192, q_map, c * 64, first + g * 64, h, b, ready);
    for (int t = 0; t < kStages && t < all; ++t) fetch(t);
  }
  const auto wait_tile = [&](int t) { barrier_wait(full + t % kStages * 8, t / kStages & 1); };
  const auto release = [&](int t) {
    __syncwarp();
    if (lane == 0) barrier_arrive(empty + t % kStages * 8);
  };
  // Tiles of other groups: a place is given back when what was in it has come.
  const auto pass = [&](int t, int end) {
    #pragma unroll 1
    for (; t < end; ++t) {
      refill(t);
      wait_tile(t);
      release(t);
    }
  };

  const f32 scale = p.scale * 1.4426950408889634f;
  f32 s[16][4], out[kValueDim / 64][8][4] = {};
  f32 most[2] = {-from_bits(0x7f800000u), -from_bits(0x7f800000u)}, sum[2] = {}, factor[2];
  u32 w[8][4];
  auto& sums = reinterpret_cast<f32(&)[kValueDim / 8][4]>(out);
  const auto multiply_keys = [&](int t) {
    const u32 left = forget(queries + group * 8192), right = tiles + t % kStages * kStage;
    #pragma unroll
    for (int d = 0; d < kDim / 16; ++d)
      multiply128(s, tile_at(left + d / 4 * kQueryTile + d % 4 * 32), tile_at(right + d / 4 * kTile + d % 4 * 32), d > 0, T{});
    products_commit();
  };
  const auto multiply_values = [&](int t) {
    const u32 right = tiles + t % kStages * kStage + kKeyBytes;
    #pragma unroll
    for (int k = 0; k < 8; ++k) {
      #pragma unroll
      for (int d = 0; d < kValueDim / 64; ++d) multiply64<true>(out[d], w[k], tile_at(right + d * kTile + k * 2048), 1, T{});
    }
    products_commit();
  };
  const auto mask_tile = [&](int tile, int start) {
    const int halves = (p.k_len + 63) / 64;
    const u8* const kinds = table + ((p.ms.batch ? b : 0) * i64((p.q_len + 63) / 64) + row0 / 64) * halves + 2 * tile;
    if (kinds[0] == 2 && (2 * tile + 1 >= halves || kinds[1] == 2)) return;
    u32 seen[2] = {};  // a bit for each key of the thread
    const Mask* const mask = p.mask + b * p.ms.batch;
    #pragma unroll 4
    for (int m = 0; m < 16; ++m) {
      #pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int i = row + c / 2 * 8, j = start + m * 8 + c % 2;
        const bool is_seen = i < p.q_len && j < p.k_len && !(as_f32(mask[i * p.ms.row + j]) < 0.5f);
        seen[c / 2] |= u32(is_seen) << (2 * m + c % 2);
      }
    }
    #pragma unroll
    for (int m = 0; m < 16; ++m) {
      #pragma unroll
      for (int c = 0; c < 4; ++c) s[m][c] = seen[c / 2] >> (2 * m + c % 2) & 1 ? s[m][c] : -from_bits(0x7f800000u);
    }
  };
  const auto weigh_tile = [&](int t) {
    const int tile = all_from + t, end = tile * kKeys + kKeys - 1, start = tile * kKeys + column;
    if (kHasMask) mask_tile(tile, start);
    if (end >= p.k_len || (kCausal && end > row0 + shift)) {
      int limit[2] = {p.k_len - 1 - start, p.k_len - 1 - start};
      if (kCausal) {
        if (row + shift - start < limit[0]) limit[0] = row + shift - start;
        if (row + 8 + shift - start < limit[1]) limit[1] = row + 8 + shift - start;
      }
      weigh_wide<true>(s, most, sum, factor, scale, limit);
    } else {
      weigh_wide<false>(s, most, sum, factor, scale, {0, 0});
    }
  };
  barrier_wait(ready, 0);
  if (from < to) {
    pass(0, from);
    refill(from);
    wait_tile(from);
    products_begin();
    multiply_keys(from);
    products_wait<0>();
    hold(s);
    weigh_tile(from);
    pack_rows(w, s, T{});
    #pragma unroll 1
    for (int t = from + 1; t < to; ++t) {
      wait_tile(t);
      hold(s), hold(sums), hold(w);
      products_begin();
      multiply_keys(t);
      multiply_values(t - 1);
      refill(t);
      __syncwarp();
      products_wait<1>();
      hold(s);
      weigh_tile(t);
      products_wait<0>();
      hold(sums), hold(w);
      release(t - 1);
      #pragma unroll
      for (int m = 0; m < kValueDim / 8; ++m) {
        #pragma unroll
        for (int c = 0; c < 4; ++c) sums[m][c] *= factor[c / 2];
      }
      pack_rows(w, s, T{});
    }
    hold(sums), hold(w);
    products_begin();
    multiply_values(to - 1);
    products_wait<0>();
    hold(sums);
    release(to - 1);
    pass(to, all);
  } else {
    pass(0, all);
  }
  if (row0 >= 0) write_rows(p, most, sum, sums, b, h, row, column);
}
)cuda";

}  // namespace rlx::cuda
