// The gradients of attention in one kernel, for the same heads as attention_backward_pipeline.h: keys in place, queries and gradients of results go by, and what a block of 128 keys
// gives to dq is added to what the blocks of keys before it gave, in f32 and in their order. Five products where two kernels need seven, weights are made once.
//
// Blocks take items (a head of keys, 128 keys) from a counter, so that an item waits for such as were begun before it, whatever number of blocks is on the processors. In a block two groups of warps have 64 keys
// each, and three more warps: one copies tiles, one waits until the item before has added its part to dq of a tile and copies the sums so far, one tells the next item when this one has added its own. Tile n is in place n % kPlaces,
//   full    it is there                               empty   its products are done
// its sums in place n % kSumPlaces, a tile behind, since dq of a tile is multiplied together with the next:
//   ready   they are there, dq may be added to        added   dq is written             told   others may add to it
// Sums of dq lie as the products leave them, [head][tile][half of the lanes][4][128 threads][4]. After kBackwardPipeline.
#pragma once

namespace rlx::cuda {

inline constexpr char kGradientItems[] = R"cuda(
constexpr int kGroups = 2, kPart = 64 * kGroups, kSlots = 2, kPlaces = 4, kSumPlaces = 3, kSumBytes = kBy * 64 * 4, kPlaceBytes = 2 * kByTile, kPartTile = kPart * 128;
struct Work { int kv, batch, start, from, each; };  // tiles of each head of queries from tile `from` on

// d += a b (d = a b where `more` is 0) for 64 x 16 of a and 16 x 32 of b, both in shared memory with rows along the sum.
#define kHalfProductOf(name) \
  asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %18, 0;\nwgmma.mma_async.sync.aligned.m64n32k16.f32." name "." name " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, more, 1, 1, 1, 1;\n}" \
      : kFour(d[0]), kFour(d[1]), kFour(d[2]), kFour(d[3]) : "l"(a), "l"(b), "r"(more))
inline void multiply32(f32 (&d)[4][4], u64 a, u64 b, int more, f16) { kHalfProductOf("f16"); }
inline void multiply32(f32 (&d)[4][4], u64 a, u64 b, int more, bf16) { kHalfProductOf("bf16"); }

// d = a b^T for 64 x 64 of a, both in shared memory.
#define kSharedProductOf(name) \
  asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32." name "." name " " kSums ", %32, %33, more, 1, 1, 0, 0;\n}" \
      : kEight(d, 0) : "l"(a), "l"(b), "r"(more))
inline void multiply_shared(f32 (&d)[8][4], u64 a, u64 b, int more, f16) { kSharedProductOf("f16"); }
inline void multiply_shared(f32 (&d)[8][4], u64 a, u64 b, int more, bf16) { kSharedProductOf("bf16"); }

inline void load_four(u32 (&r)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
inline void load_turned(u32 (&r)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
inline void store_four(u32 at, const u32 (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" :: "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}
inline void copy_sums(u32 to, const f32* from, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(to), "l"(from), "r"(kSumBytes), "r"(barrier) : "memory");
}
inline float4 read_four(u32 at) {
  float4 x;
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(at) : "memory");
  return x;
}
inline int load_flag(const int* at) {
  int x;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
  return x;
}
inline void store_flag(int* at, int x) { asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" :: "l"(at), "r"(x) : "memory"); }
// Until a word is `wanted` or more. Where that does not come it is a fault: then no block waits any longer, and the run ends.
inline void wait_until(const int* at, int wanted, int* gone, u64* fault, u64 number) {
  const i64 since = clock64();
  for (u32 turn = 1; load_flag(at) < wanted; ++turn) {
    __nanosleep(20);
    if (turn % 1024 != 0) continue;
    if (load_flag(gone) != 0) return;
    if (clock64() - since < kPatience) continue;
    store_flag(gone, 1);
    *fault = number << 40;
    return;
  }
}

// `words`: the counter of items, whether a block waited in vain, then for each head of queries and tile how many parts its dq has; zeros at the beginning.
extern "C" __global__ void __launch_bounds__(128 * (kGroups + 1), 1)
attention_gradients(Params p, Gradients g, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap y_map,
                    const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map, int heads, int section, f32* sums, int* words, u64* fault, u64 number) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kPlaces + 3 * kSumPlaces + 2 * kSlots + 1];
  __shared__ f32 rows[kPlaces][2][kBy];
  __shared__ Work works[kSlots];
  const u32 slots = (place_of(shared) + 1023) & ~1023u, scores = slots + kSlots * 2 * kPartTile, tiles = scores + 2 * kPartTile, others = tiles + kPlaces * kPlaceBytes;
  const u32 full = place_of(barriers), empty = full + 8 * kPlaces, ready = empty + 8 * kPlaces, added = ready + 8 * kSumPlaces, told = added + 8 * kSumPlaces;
  const u32 asked = told + 8 * kSumPlaces, done = asked + 8 * kSlots, written = done + 8 * kSlots;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), group = warp / 4, column = lane % 4 * 2;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kPlaces; ++i) barrier_init(full + 8 * i, 33), barrier_init(empty + 8 * i, 128 * kGroups);
    for (int i = 0; i < kSumPlaces; ++i) barrier_init(ready + 8 * i, 1), barrier_init(added + 8 * i, 128 * kGroups), barrier_init(told + 8 * i, 1);
    for (int i = 0; i < kSlots; ++i) barrier_init(asked + 8 * i, 1), barrier_init(done + 8 * i, 128 * kGroups + 2);
    barrier_init(written, 128 * kGroups);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  begin_alone();
  const int blocks = (p.k_len + kPart - 1) / kPart, items = heads * blocks, shared_by = p.q_heads / p.kv_heads, shift = p.k_len - p.q_len;
  const int q_tiles = (p.q_len + kBy - 1) / kBy;
  int* const parts = words + 2;
  // The last block of keys that some query of a tile sees; tiles that see none belong to the first.
  const auto last_of = [&](int tile) {
    const int seen = tile * kBy + kBy - 1 + shift, last = kCausal ? (seen < 0 ? 0 : seen / kPart) : blocks - 1;
    return last < blocks ? last : blocks - 1;
  };

  if (group == kGroups) {
    keep_registers<40>();
    if (warp == 4 * kGroups) {
      int stage = 0, uses = 0;
      for (int turn = 0;; ++turn) {
        int i = 0;
        if (lane == 0) i = atomicAdd(words, 1);
        i = __shfl_sync(~0u, i, 0);
        const int slot = turn % kSlots;
        if (turn >= kSlots) barrier_wait(done + slot * 8, turn / kSlots - 1 & 1);
        if (i >= items) {  // the end
          if (lane == 0) works[slot].each = -1, barrier_arrive(asked + slot * 8);
          break;
        }
        // Long items first, and so many heads in turn that what goes by stays in the cache.
        const int head0 = i / (section * blocks) * section, many = heads - head0 < section ? heads - head0 : section;
        const int y = (i - head0 * blocks) / many, both = head0 + (i - head0 * blocks) % many, b = both / p.kv_heads, kv = both - b * p.kv_heads;
        const int start = y * kPart, from = kCausal && y > 0 && start - shift > 0 ? (start - shift) / kBy : 0, each = q_tiles > from ? q_tiles - from : 0;
        if (lane == 0) {
          works[slot] = {kv, b, start, from, each};
          barrier_expect(asked + slot * 8, 2 * kPartTile);
          copy_tile(slots + slot * 2 * kPartTile, k_map, 0, start, kv, b, asked + slot * 8);
          copy_tile(slots + slot * 2 * kPartTile + kPartTile, v_map, 0, start, kv, b, asked + slot * 8);
        }
        __syncwarp();
        for (int h = kv * shared_by; h < (kv + 1) * shared_by; ++h) {
          const i64 head = i64(b) * p.q_heads + h;
          for (int t = from; t < q_tiles; ++t) {
            const u32 to = tiles + stage * kPlaceBytes, barrier = full + stage * 8;
            if (uses > 0) barrier_wait(empty + stage * 8, uses - 1 & 1);
            if (lane == 0) {
              barrier_expect(barrier, 2 * kByTile);
              copy_tile(to, q_map, 0, t * kBy, h, b, barrier);
              copy_tile(to + kByTile, y_map, 0, t * kBy, h, b, barrier);
            }
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
              const int r = t * kBy + k % 2 * 32 + lane;
              copy4(&rows[stage][k / 2][k % 2 * 32 + lane], (k / 2 ? g.delta : g.lse) + head * p.q_len + (r < p.q_len ? r : 0), r < p.q_len);
            }
            copies_arrive(barrier);
            __syncwarp();
            if (++stage == kPlaces) stage = 0, ++uses;
          }
        }
      }
    } else if (warp < 4 * kGroups + 3 && lane == 0) {
      const bool tells = warp == 4 * kGroups + 1;
      int place = 0, uses = 0;
      for (int turn = 0;; ++turn) {
        const int slot = turn % kSlots;
        barrier_wait(asked + slot * 8, turn / kSlots & 1);
        const Work work = works[slot];
        barrier_arrive(done + slot * 8);
        if (work.each < 0) break;
        const int y = work.start / kPart;
        for (int h = work.kv * shared_by; h < (work.kv + 1) * shared_by; ++h) {
          const i64 head = (i64(work.batch) * p.q_heads + h) * q_tiles;
          for (int t = work.from; t < q_tiles; ++t) {
            if (tells) {
              barrier_wait(added + place * 8, uses & 1);
              asm volatile("fence.acq_rel.gpu;" ::: "memory");
              store_flag(parts + head + t, y + 1);
              barrier_arrive(told + place * 8);
            } else {
              if (uses > 0) barrier_wait(told + place * 8, uses - 1 & 1);
              if (y == 0) {
                barrier_arrive(ready + place * 8);
              } else {
                wait_until(parts + head + t, y, words + 1, fault, number);
                asm volatile("fence.acq_rel.gpu;\nfence.proxy.async;" ::: "memory");
                barrier_expect(ready + place * 8, kSumBytes);
                copy_sums(others + place * kSumBytes, sums + (head + t) * (kBy * 64), ready + place * 8);
              }
            }
            if (++place == kSumPlaces) place = 0, ++uses;
          }
        }
      }
    }
    return;
  }

  take_registers<232>();
  const f32 scale = p.scale * kLog2e;
  // Gradients of scores of a tile are there from both groups, and what was read of those before: one group may be most of a tile ahead of the other.
  int phase = 1;
  const auto groups_meet = [&] { barrier_wait(written, phase); };
  int stage = 0, parity = 0, buffer = 0, other = 0, turned = 0;
  #pragma unroll 1
  for (int turn = 0;; ++turn) {
    const int slot = turn % kSlots;
    barrier_wait(asked + slot * 8, turn / kSlots & 1);
    const Work work = works[slot];
    if (work.each < 0) break;
    const int b = work.batch, kv = work.kv, y0 = work.start / kPart, key0 = work.start + group * 64, key = work.start + warp * 16 + lane / 4;
    const u32 keys = slots + slot * 2 * kPartTile;
    u32 k[4][4], w[4][4], u[4][4];
    #pragma unroll
    for (int d = 0; d < 4; ++d) {
      const int r = warp * 16 + lane % 16, piece = 2 * d + lane / 16;
      load_four(k[d], keys + r * 128 + (piece ^ r % 8) * 16);
    }
    f32 dk[8][4] = {}, dv[8][4] = {}, s[8][4], ds[8][4], dq[4][4];
    // What this block of keys gives to dq of a tile, half of the lanes for each group, is multiplied and added to the sums together with the tile behind it.
    const auto multiply_scores = [&] {
      const u64 left = tile_at(scores + (buffer ^ 1) * kPartTile), right = tile_at(keys + group * 64);
      #pragma unroll
      for (int n = 0; n < 8; ++n) multiply32(dq, further(left, n * 2048), further(right, n * 2048), n > 0, T{});
      products_commit();
    };
    const auto end_sums = [&](const f32 (&dq)[4][4], int h, int tile) {
      barrier_wait(ready + other * 8, turned);
      f32 all[4][4];
      #pragma unroll
      for (int m = 0; m < 4; ++m) {
        const float4 before = y0 > 0 ? read_four(others + other * kSumBytes + group * 8192 + m * 2048 + threadIdx.x % 128 * 16) : float4{0, 0, 0, 0};
        all[m][0] = dq[m][0] + before.x, all[m][1] = dq[m][1] + before.y, all[m][2] = dq[m][2] + before.z, all[m][3] = dq[m][3] + before.w;
      }
      if (y0 < last_of(tile)) {
        f32* const to = sums + ((i64(b) * p.q_heads + h) * q_tiles + tile) * (kBy * 64) + group * 2048 + threadIdx.x % 128 * 4;
        #pragma unroll
        for (int m = 0; m < 4; ++m) *reinterpret_cast<float4*>(to + m * 512) = float4{all[m][0], all[m][1], all[m][2], all[m][3]};
      } else {
        #pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int r = tile * kBy + warp % 4 * 16 + lane / 4 + c * 8;
          if (r < p.q_len) write_gradient(g.dq + b * g.dqs.batch + h * g.dqs.head + i64(r) * g.dqs.row + group * 32, all, c, p.scale, column);
        }
      }
      barrier_arrive(added + other * 8);
      if (++other == kSumPlaces) other = 0, turned ^= 1;
    };
    int last_stage = -1, last_tile = 0, last_head = 0, t = work.from, h = kv * shared_by;
    #pragma unroll 1
    for (int left = work.each * shared_by; left > 0; --left) {
      const u32 q = tiles + stage * kPlaceBytes, y = q + kByTile;
      const int first = t * kBy;
      barrier_wait(full + stage * 8, parity);
      hold(s), hold(ds), hold(dk), hold(dv);
      products_begin();
      multiply_lanes(s, k, q);
      {
        const u64 left = tile_at(keys + kPartTile + group * 8192), right = tile_at(y);
        #pragma unroll
        for (int d = 0; d < 4; ++d) multiply_shared(ds, further(left, d * 32), further(right, d * 32), d > 0, T{});
        products_commit();
      }
      products_wait<1>();
      hold(s), hold(dk), hold(dv), hold(w), hold(u);
      if (last_stage >= 0) barrier_arrive(empty + last_stage * 8);
      const int behind = kCausal ? key - shift - first - column : 0;  // queries before this one do not see the thread's first key
      const bool edge = (kCausal && key0 + 63 > first + shift) || key0 + 64 > p.k_len;
      weigh_keys(p, s, rows[stage][0], scale, edge, behind, key, column);
      pack_rows(w, s, T{});
      hold(w), hold(dv);
      products_begin();
      multiply_rows(dv, w, y);
      groups_meet();  // at the first tile of an item nothing was written before, and the product is not used
      products_begin();
      multiply_scores();
      products_wait<2>();
      hold(ds);
      slope_keys(ds, s, rows[stage][1], column);
      pack_rows(u, ds, T{});
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int r = warp * 16 + lane % 16, piece = 2 * n + lane / 16;
        store_four(scores + buffer * kPartTile + r * 128 + (piece ^ r % 8) * 16, u[n]);
      }
      asm volatile("fence.proxy.async;" ::: "memory");
      hold(u), hold(dk);
      products_begin();
      multiply_rows(dk, u, q);
      products_wait<1>();
      hold(dq);
      if (last_stage >= 0) end_sums(dq, last_head, last_tile);
      barrier_arrive(written), phase ^= 1;
      buffer ^= 1;
      last_stage = stage, last_tile = t, last_head = h;
      if (++stage == kPlaces) stage = 0, parity ^= 1;
      if (++t == q_tiles) t = work.from, ++h;
    }
    products_wait<0>();
    hold(dk), hold(dv);
    groups_meet();
    if (last_stage >= 0) {
      barrier_arrive(empty + last_stage * 8);
      // The compiler would wait for every product of groups of warps if there were one more of them here.
      f32 rest[4][4] = {};
      #pragma unroll
      for (int n = 0; n < kPart / 16; ++n) {
        const int r = n * 16 + lane % 8 + lane / 16 * 8, piece = warp % 4 * 2 + lane / 8 % 2, r2 = n * 16 + lane % 16;
        u32 a[4], c[4];
        load_turned(a, scores + (buffer ^ 1) * kPartTile + r * 128 + (piece ^ r % 8) * 16);
        #pragma unroll
        for (int d = 0; d < 2; ++d) {
          load_turned(c, keys + r2 * 128 + ((group * 4 + d * 2 + lane / 16) ^ r2 % 8) * 16);
          multiply(rest[2 * d], a, c[0], c[1], T{});
          multiply(rest[2 * d + 1], a, c[2], c[3], T{});
        }
      }
      end_sums(rest, last_head, last_tile);
    }
    barrier_arrive(done + slot * 8);
    write_keys(p, g, dk, dv, b, kv, key, column);
  }
}
)cuda";

}  // namespace rlx::cuda
