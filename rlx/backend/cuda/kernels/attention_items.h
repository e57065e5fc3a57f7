// Attention of many queries, f16 and bf16 with heads of 64 or 128 lanes, with no mask, that of keys behind a query or one for all heads. Blocks stay: a warp of its own goes through all items of
// a block and has tiles of keys and values copied by the engine as places become free, over the ends of items, so that the products of one item begin while others write their results. A
// group of four warps has 64 queries; while it makes weights of one tile of keys, the units multiply the weights before with their values, and other groups have them in between.
// After kAttentionShared, kAttentionWeights (attention.h) and kMatrixGroups; before it stands kSplit: the groups of a block share 64 queries and take tiles of keys in turn, where there are too few
// queries and heads for all processors. Otherwise each group has 64 queries of its own and sees all tiles.
#pragma once

namespace rlx::cuda {

// What a mask lets through of 64 queries and 64 keys, as `tiles_seen` reads it, and a bit for each: u64 [batch][query][64 keys]. blockIdx = keys, queries, batch.
inline constexpr char kMaskTable[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) mask_table(Params p, u8* table, u16* bits) {
  const int i = blockIdx.y * 64 + threadIdx.x / 4, j = blockIdx.x * 64 + threadIdx.x % 4 * 16;
  const Mask* const from = p.mask + blockIdx.z * p.ms.batch + i64(i) * p.ms.row + j;
  u32 word = 0, there = 0;
  #pragma unroll
  for (int e = 0; e < 16; ++e) {
    const bool inside = i < p.q_len && j + e < p.k_len;
    there |= u32(inside) << e;
    if (inside) word |= u32(!(as_f32(from[e]) < 0.5f)) << e;
  }
  if (i < p.q_len) bits[(blockIdx.z * i64(p.q_len) + i) * (gridDim.x * 4) + blockIdx.x * 4 + threadIdx.x % 4] = u16(word);
  const int some = __syncthreads_or(word != 0), whole = __syncthreads_and(word == there);
  if (threadIdx.x == 0) table[(i64(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = whole ? 2 : some ? 1 : 0;
}
)cuda";

inline constexpr char kAttentionItems[] = R"cuda(
constexpr bool kNarrow = kDim <= 64 && kValueDim <= 64;
constexpr int kGroups = kNarrow ? 3 : 2, kRows = 64 * kGroups, kKeys = 128;
constexpr int kTile = kKeys * 128, kKeyBytes = kTile * (kDim / 64), kStage = kKeyBytes + kTile * (kValueDim / 64);

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

constexpr int kPlaces = kNarrow ? 5 : 3, kSlots = kNarrow ? 2 : 1;  // of tiles; of queries
constexpr int kItemRows = kSplit ? 64 : kRows, kItemTile = kItemRows * 128, kItemBytes = kItemTile * (kDim / 64);
constexpr int kReaders = kSplit ? 1 : kGroups, kStep = kSplit ? kGroups : 1;  // groups that read a tile; tiles from one of a group to its next
constexpr int kFoundFloats = kValueDim / 2 + 4;                             // of a thread: sums, largest scores and sums of weights

struct Item { int batch, head, first, tile0, all, from[kReaders], to[kReaders]; };

// What groups tell each other where they share queries: results are written, have been read. One side waits, the other goes on.
constexpr int kWritten = 1, kRead = 2;
inline void groups_meet(int barrier) { asm volatile("bar.sync %0, %1;" :: "r"(barrier), "n"(128 * kGroups) : "memory"); }
inline void groups_arrive(int barrier) { asm volatile("bar.arrive %0, %1;" :: "r"(barrier), "n"(128 * kGroups) : "memory"); }

// Scores of rows `row` and row + 8 with keys 8 m + column, + 1 of a tile that the mask lets a part of through. Rows of `bits` have `halves` words of 64 keys.
inline void mask_scores(f32 (&s)[16][4], const u64* bits, int row, int rows, int half, int halves, int column) {
  #pragma unroll
  for (int c = 0; c < 2; ++c) {
    const u64* const words = bits + i64(row + c * 8) * halves + half;
    #pragma unroll
    for (int k = 0; k < 2; ++k) {
      const u64 word = row + c * 8 < rows && half + k < halves ? words[k] >> column : 0;
      #pragma unroll
      for (int m = 0; m < 8; ++m) {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
          f32& x = s[k * 8 + m][2 * c + e];
          x = u32(word >> (m / 4 * 32)) >> (m % 4 * 8 + e) & 1 ? x : -from_bits(0x7f800000u);
        }
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(128 * (kGroups + 1), 1)
attention_items(Params p, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map,
                int heads, int section, const u8* table, const u64* bits) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kPlaces + 2 * kSlots];
  __shared__ Item slots[kSlots];
  __shared__ u32 open_for[kPlaces];  // bit r: the mask lets all of the tile through to reader r. One lane of a warp reads or writes it, the one that tells the barriers
  const u32 queries = (place_of(shared) + 1023) & ~1023u, tiles = queries + kSlots * kItemBytes;
  f32* const found = reinterpret_cast<f32*>(reinterpret_cast<u8*>(shared) + (tiles + kPlaces * kStage - place_of(shared)));  // [groups but the first][kFoundFloats][128]
  const u32 full = place_of(barriers), empty = full + 8 * kPlaces, asked = empty + 8 * kPlaces, done = asked + 8 * kSlots;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), group = warp / 4;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kPlaces; ++i) barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, 4 * kReaders);
    for (int i = 0; i < kSlots; ++i) barrier_init(asked + 8 * i, 1), barrier_init(done + 8 * i, 128 * kGroups);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  begin_alone();
  const int blocks = (p.q_len + kItemRows - 1) / kItemRows, items = heads * blocks, halves = (p.k_len + 63) / 64;

  if (group == kGroups) {
    keep_registers<kNarrow ? 32 : 40>();
    if (warp > 4 * kGroups) return;
    int place = 0, uses = 0;  // of the next tile; how often the place was used before
    for (int round = 0; item_of(round) < items; ++round) {
      // Blocks of queries are counted from the last, so that groups without queries are those with fewest keys. `section` of `heads` heads take turns before the next come: so
      // many that their keys and values stay in the cache; of these, blocks with most keys begin first.
      const int i = item_of(round), head0 = i / (section * blocks) * section, many = heads - head0 < section ? heads - head0 : section;
      const int turn = i - head0 * blocks, both = head0 + turn % many, slot = round % kSlots;
      const int b = both / p.q_heads, h = both - b * p.q_heads, kv = int(i64(h) * p.kv_heads / p.q_heads);
      const int first = kSplit ? (blocks - 1 - turn / many) * 64 : (p.q_len + 63) / 64 * 64 - (turn / many + 1) * kRows;
      // Tiles of keys that the group with the number of this lane sees, and those that some group sees.
      int from = 0, to = 0, all_from = 0, all_to = 0;
      #pragma unroll
      for (int g = 0; g < kReaders; ++g) {
        int x, y;
        tiles_seen(p, table, b, first + g * 64, x, y);
        if (g == lane) from = x, to = y;
        if (x < y) all_from = all_from < all_to && all_from < x ? all_from : x, all_to = y > all_to ? y : all_to;
      }
      const int all = all_to - all_from, row = first + lane * 64;
      const u8* kinds = table;
      if (kHasMask) kinds += ((p.ms.batch ? b : 0) * i64((p.q_len + 63) / 64) + (row < 0 ? 0 : row / 64)) * halves + 2 * all_from;
      // With one place for queries the first tiles do not wait for it.
      const int before = kSlots > 1 || all == 0 ? 0 : all < kPlaces ? all - 1 : kPlaces - 1;
      for (int t = 0; t < all || t == before; ++t) {
        if (t == before) {
          if (round >= kSlots) barrier_wait(done + slot * 8, round / kSlots - 1 & 1);
          Item& item = slots[slot];
          // Written by the lane that tells the barrier, and given back by all that read it: no lane speaks for another.
          #pragma unroll
          for (int g = 0; g < kReaders; ++g) {
            const int x = __shfl_sync(~0u, from, g), y = __shfl_sync(~0u, to, g);
            if (lane == 0) item.from[g] = x - all_from, item.to[g] = y - all_from;
          }
          if (lane == 0) {
            item.batch = b, item.head = h, item.first = first, item.tile0 = all_from, item.all = all;
            barrier_expect(asked + slot * 8, kItemBytes);
            for (int c = 0; c < kDim / 64; ++c)
              for (int g = 0; g < kReaders; ++g)
                copy_tile(queries + slot * kItemBytes + c * kItemTile + g * 8192, q_map, c * 64, first + g * 64, h, b, asked + slot * 8);
          }
        }
        if (t >= all) break;
        if (uses > 0) barrier_wait(empty + place * 8, uses - 1 & 1);
        u32 open = 0;
        if (kHasMask) {
          open = __ballot_sync(~0u, lane < kReaders && kinds[0] == 2 && (2 * (all_from + t) + 1 >= halves || kinds[1] == 2));
          kinds += 2;
        }
        if (lane == 0) {
          if (kHasMask) open_for[place] = open;
          const u32 at = tiles + place * kStage, barrier = full + place * 8;
          barrier_expect(barrier, kStage);
          for (int c = 0; c < kDim / 64; ++c) copy_tile(at + c * kTile, k_map, c * 64, (all_from + t) * kKeys, kv, b, barrier);
          for (int c = 0; c < kValueDim / 64; ++c) copy_tile(at + kKeyBytes + c * kTile, v_map, c * 64, (all_from + t) * kKeys, kv, b, barrier);
        }
        if (++place == kPlaces) place = 0, ++uses;
      }
    }
    return;
  }

  take_registers<kNarrow ? 160 : 232>();
  const int column = lane % 4 * 2, shift = p.k_len - p.q_len;
  const f32 scale = p.scale * 1.4426950408889634f;
  int place = 0, parity = 0, tile_count = 0;
  const auto advance = [&](int n) {
    place += n;
    if (place >= kPlaces) place -= kPlaces, parity ^= 1;
  };
  const auto wait_tile = [&] { barrier_wait(full + place * 8, parity); };
  const auto release = [&](int at) {
    __syncwarp();
    if (lane == 0) barrier_arrive(empty + at * 8);
  };
  #pragma unroll 1
  for (int round = 0; item_of(round) < items; ++round) {
    const int slot = round % kSlots;
    barrier_wait(asked + slot * 8, round / kSlots & 1);
    const Item& item = slots[slot];
    const int b = item.batch, h = item.head, all = item.all, tile0 = item.tile0;
    const int from = kSplit ? group : item.from[group % kReaders], to = kSplit ? all : item.to[group % kReaders];
    const int row0 = item.first + (kSplit ? warp % 4 : warp) * 16, row = row0 + lane / 4;
    const auto forget_queries = [&] { barrier_arrive(done + slot * 8); };
    // Tiles of other groups: a place is given back when what was in it has come.
    const auto pass = [&](int count) {
      #pragma unroll 1
      for (; count > 0; --count, advance(1)) {
        wait_tile();
        release(place);
      }
    };
    f32 s[16][4], out[kValueDim / 64][8][4] = {};
    f32 most[2] = {-from_bits(0x7f800000u), -from_bits(0x7f800000u)}, sum[2] = {}, factor[2];
    u32 w[8][4];
    auto& sums = reinterpret_cast<f32(&)[kValueDim / 8][4]>(out);
    const auto multiply_keys = [&](int at) {
      const u64 left = tile_at(forget(queries + slot * kItemBytes + (kSplit ? 0 : group * 8192))), right = tile_at(tiles + at * kStage);
      #pragma unroll
      for (int d = 0; d < kDim / 16; ++d)
        multiply128(s, further(left, d / 4 * kItemTile + d % 4 * 32), further(right, d / 4 * kTile + d % 4 * 32), d > 0, T{});
      products_commit();
    };
    const auto multiply_values = [&](int at) {
      const u64 right = tile_at(tiles + at * kStage + kKeyBytes);
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        #pragma unroll
        for (int d = 0; d < kValueDim / 64; ++d) multiply64<true>(out[d], w[k], further(right, d * kTile + k * 2048), 1, T{});
      }
      products_commit();
    };
    const auto weigh_tile = [&](int t) {
      const int end = (tile0 + t) * kKeys + kKeys - 1, start = (tile0 + t) * kKeys + column;
      const u32 open = kHasMask ? __shfl_sync(~0u, lane == 0 ? open_for[place] : 0, 0) : 0;
      if (kHasMask && !(open >> (kSplit ? 0 : group) & 1)) {
        mask_scores(s, bits + (p.ms.batch ? b : 0) * i64(p.q_len) * halves, row, p.q_len, 2 * (tile0 + t), halves, column);
      }
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
    if (kSplit) {
      advance(group);
    } else {
      pass(from < to ? from : all);
    }
    if (from < to) {
      wait_tile();
      products_begin();
      multiply_keys(place);
      products_wait<0>();
      hold(s);
      if (from + kStep >= to) forget_queries();
      weigh_tile(from);
      pack_rows(w, s, T{});
      int last = place;
      advance(kStep);
      #pragma unroll 1
      for (int t = from + kStep; t < to; t += kStep) {
        wait_tile();
        hold(s), hold(sums), hold(w);
        products_begin();
        multiply_keys(place);
        multiply_values(last);
        products_wait<1>();
        hold(s);
        if (t + kStep >= to) forget_queries();
        weigh_tile(t);
        products_wait<0>();
        hold(sums), hold(w);
        release(last);
        if (__any_sync(~0u, factor[0] != 1.0f || factor[1] != 1.0f)) {
          #pragma unroll
          for (int m = 0; m < kValueDim / 8; ++m) {
            #pragma unroll
            for (int c = 0; c < 4; ++c) sums[m][c] *= factor[c / 2];
          }
        }
        pack_rows(w, s, T{});
        last = place;
        advance(kStep);
      }
      hold(sums), hold(w);
      products_begin();
      multiply_values(last);
      products_wait<0>();
      hold(sums);
      release(last);
    } else {
      forget_queries();
    }
    if (!kSplit) {
      if (from < to) pass(all - to);
      if (row0 >= 0) write_rows(p, most, sum, sums, b, h, row, column);
      continue;
    }
    // The place of the next item's first tile; all groups count alike.
    tile_count += all;
    place = tile_count % kPlaces, parity = tile_count / kPlaces & 1;
    f32* const own = found + (group - 1) * (kFoundFloats * 128) + threadIdx.x % 128;
    if (group > 0) {
      if (round > 0) groups_meet(kRead);
      #pragma unroll
      for (int e = 0; e < kValueDim / 2; ++e) own[e * 128] = sums[e / 4][e % 4];
      #pragma unroll
      for (int c = 0; c < 2; ++c) own[(kValueDim / 2 + c) * 128] = most[c], own[(kValueDim / 2 + 2 + c) * 128] = sum[c];
      groups_arrive(kWritten);
      continue;
    }
    groups_meet(kWritten);
    const f32* const others = found + threadIdx.x;
    #pragma unroll
    for (int g = 0; g < kGroups - 1; ++g) {
      const f32* const other = others + g * (kFoundFloats * 128);
      f32 mine[2], theirs[2];
      #pragma unroll
      for (int c = 0; c < 2; ++c) {
        const f32 top = other[(kValueDim / 2 + c) * 128], now = fmaxf(top, most[c]);
        const f32 base = now == -from_bits(0x7f800000u) ? 0.0f : now;
        mine[c] = power_of_two(most[c] - base), theirs[c] = power_of_two(top - base), most[c] = now;
        sum[c] = fmaf(sum[c], mine[c], other[(kValueDim / 2 + 2 + c) * 128] * theirs[c]);
      }
      #pragma unroll
      for (int e = 0; e < kValueDim / 2; ++e) sums[e / 4][e % 4] = fmaf(sums[e / 4][e % 4], mine[e % 4 / 2], other[e * 128] * theirs[e % 4 / 2]);
    }
    if (item_of(round + 1) < items) groups_arrive(kRead);
    write_rows(p, most, sum, sums, b, h, row, column);
  }
}
)cuda";

}  // namespace rlx::cuda
