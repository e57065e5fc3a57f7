// Attention of few queries over many keys on matrix units, for f16 and bf16 with heads of a multiple of 32 lanes (values: of 64). As in
// attention_split.h a block takes a part of the keys for up to eight rows of queries that share a head of keys, and each warp a few keys at
// a time; but keys and values go from memory straight into the fragments of the products:
//   S = Q K^T: thread (g, t) of a warp, g = lane / 4, t = lane % 4, reads 8 lanes of key g at 32 c + 8 t. The order of the sum over lanes is free, so that
//     these are its parts of two products of depth 16, and it reads the same lanes of query g.
//   O = P V: what a thread has of S is what it needs of P. It reads lanes 8 g .. 8 g + 7 of four values; lane 8 g + j is column g of product j.
// kFragmentParts comes after kAttentionShared, kAttentionParts and kClusterBlocks, with kWarps and kShares before it; kFragmentJoin and kAttentionFragments, the kernel, after these, with kCluster (blocks that join their parts; 1: a second
// kernel does, or there is one part) and the macro kClusterShape. kFragmentPhase and kJoinPhase are the same as phases of a chain (kernels/chain.h).
#pragma once

namespace rlx::cuda {

inline constexpr char kFragmentParts[] = R"cuda(
inline void multiply(f32 (&c)[4], u32 a0, u32 a2, u32 b0, u32 b1, f16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(0), "r"(a2), "r"(0), "r"(b0), "r"(b1));
}
inline void multiply(f32 (&c)[4], u32 a0, u32 a2, u32 b0, u32 b1, bf16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(0), "r"(a2), "r"(0), "r"(b0), "r"(b1));
}
inline u32 pair_of(f32 x, f32 y) { T a, b; put(a, x); put(b, y); return u32(a.bits) | u32(b.bits) << 16; }
inline u32 word(const uint4& x, int i) { return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w; }
inline uint4 sixteen(const T* p) { return *reinterpret_cast<const uint4*>(p); }

// Rows of queries r < 8: what was found of each by several warps or blocks.
struct alignas(16) Found { f32 most[8], sum[8], out[8][kValueDim]; };

// What one warp found so far, for eight rows of queries from `first` on that share a head of keys: a share, of kShares, of the lanes of values.
struct Finder {
  static constexpr int kKeys = 16, kChunks = kDim / 32, kWide = kValueDim / 64 / kShares;
  const Params& p;
  const i64 b;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  int head, query, from, end;
  bool mine;
  uint4 q[kChunks];
  f32 most = -from_bits(0x7f800000u), sum = 0, out[kWide * 8][4] = {};

  // Keys below `stop` count.
  Finder(const Params& params, i64 batch, int kv, int first, int stop) : p(params), b(batch) {
    const int group = p.q_heads / p.kv_heads, r = first + g < group * p.q_len ? first + g : first;
    mine = r == first + g;
    head = kv * group + r / p.q_len, query = r % p.q_len;
    #pragma unroll
    for (int c = 0; c < kChunks; ++c)
      q[c] = mine ? sixteen(p.q + b * p.qs.batch + head * p.qs.head + query * p.qs.row + c * 32 + t * 8) : uint4{};
    const int to = keys_to(p, p.q_len - 1);
    from = keys_from(p, 0), end = stop < to ? stop : to;
  }

  // 16 keys from `start` on: this thread has pieces of keys 8 n + g and of values 8 (n / 2) + 2 t + n % 2.
  void add(int start, const uint4 (&k)[2][kChunks], const uint4 (&v)[4][kWide]) {
    const f32 minus_infinity = -from_bits(0x7f800000u);
    f32 s[2][4] = {};
    #pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      #pragma unroll
      for (int n = 0; n < 2; ++n) {
        multiply(s[n], q[c].x, q[c].y, k[n][c].x, k[n][c].y, T{});
        multiply(s[n], q[c].z, q[c].w, k[n][c].z, k[n][c].w, T{});
      }
    }
    f32 now = most;
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int j = start + n / 2 * 8 + 2 * t + n % 2;
      f32& x = s[n / 2][n % 2];
      const bool seen = mine && j < end && !key_blocked(p, b, head, j);
      x = seen ? masked(p, x, b, head, query, j) : minus_infinity;
      now = op_max(now, x);
    }
    now = op_max(now, __shfl_xor_sync(~0u, now, 1));
    now = op_max(now, __shfl_xor_sync(~0u, now, 2));
    const f32 base = now == minus_infinity ? 0.0f : now, factor = weight_of(most - base);
    most = now;
    sum *= factor;
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      f32& x = s[n / 2][n % 2];
      x = weight_of(x - base);
      sum += x;
    }
    #pragma unroll
    for (int i = 0; i < kWide * 8; ++i) out[i][0] *= factor, out[i][1] *= factor;
    const u32 a0 = pair_of(s[0][0], s[0][1]), a2 = pair_of(s[1][0], s[1][1]);
    #pragma unroll
    for (int c = 0; c < kWide; ++c) {
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        const u32 half = j % 2 ? 0x7632 : 0x5410;
        multiply(out[c * 8 + j], a0, a2, __byte_perm(word(v[0][c], j / 2), word(v[1][c], j / 2), half),
                 __byte_perm(word(v[2][c], j / 2), word(v[3][c], j / 2), half), T{});
      }
    }
  }

  void put_into(Found& own, int share) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (t == 0) own.most[g] = most, own.sum[g] = sum;
    #pragma unroll
    for (int c = 0; c < kWide; ++c) {
      #pragma unroll
      for (int half = 0; half < 2; ++half) {
        f32* const to = &own.out[g][share * (kWide * 64) + c * 64 + t * 16 + half * 8];
        #pragma unroll
        for (int j = 0; j < 8; ++j) to[j] = out[c * 8 + j][half];
      }
    }
  }
};

// What one of kWarps warps finds of keys begin_key, .. below `stop`, read where they lie.
inline void find_part(const Params& p, i64 b, int kv, int first, int begin_key, int stop, int warp, int share, Found& own) {
  constexpr int kKeys = Finder::kKeys, kChunks = Finder::kChunks, kWide = Finder::kWide;
  Finder found(p, b, kv, first, stop);
  const int g = found.g, t = found.t;
  const T* const keys = p.k + b * p.ks.batch + kv * p.ks.head;
  const T* const values = p.v + b * p.vs.batch + kv * p.vs.head + share * (kWide * 64);
  const auto inside = [&](int j) { return j < p.k_len ? j : p.k_len - 1; };
  for (int start = begin_key + warp * kKeys; start < found.end; start += kWarps * kKeys) {
    if (start + kKeys <= found.from) continue;
    uint4 k[2][kChunks], v[4][kWide];
    #pragma unroll
    for (int n = 0; n < 2; ++n) {
      const T* const row = keys + inside(start + n * 8 + g) * p.ks.row + t * 8;
      #pragma unroll
      for (int c = 0; c < kChunks; ++c) k[n][c] = sixteen(row + c * 32);
    }
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      const T* const row = values + inside(start + n / 2 * 8 + 2 * t + n % 2) * p.vs.row + g * 8;
      #pragma unroll
      for (int c = 0; c < kWide; ++c) v[n][c] = sixteen(row + c * 64);
    }
    asm volatile("" ::: "memory");  // all are on their way
    found.add(start, k, v);
  }
  found.put_into(own, share);
}

// What the warps of a block found of lane d of row r, in order: the largest score, the sum of weights, the weighted value.
inline void join_warps(const Found* found, int r, int d, f32& top, f32& total, f32& all) {
  const f32 minus_infinity = -from_bits(0x7f800000u);
  top = minus_infinity, total = 0, all = 0;
  #pragma unroll
  for (int w = 0; w < kWarps; ++w) top = op_max(top, found[w].most[r]);
  const f32 base = top == minus_infinity ? 0.0f : top;
  #pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const f32 weight = weight_of(found[w].most[r] - base);
    total = fmaf(weight, found[w].sum[r], total);
    all = fmaf(weight, found[w].out[r][d], all);
  }
}
)cuda";

// What a block does behind find_part: the warps' parts together, then those of the blocks of a cluster; or into `parts` for a second kernel.
inline constexpr char kFragmentJoin[] = R"cuda(
inline void join_found(const Params& p, f32* parts, Found* found, i64 b, int kv, int first) {
  const f32 minus_infinity = -from_bits(0x7f800000u);
  const int group = p.q_heads / p.kv_heads, rows = group * p.q_len;
  const auto head_of = [&](int r) { return kv * group + (first + r) / p.q_len; };
  const auto query_of = [&](int r) { return (first + r) % p.q_len; };
  __syncthreads();
  // What the warps found together takes the place of the first.
  constexpr int kEach = (8 * kValueDim + 32 * kWarps - 1) / (32 * kWarps);
  f32 all[kEach], top[kEach], total[kEach];
  #pragma unroll
  for (int n = 0; n < kEach; ++n) {
    const int e = threadIdx.x + n * 32 * kWarps, r = e / kValueDim, d = e % kValueDim;
    join_warps(found, r, d, top[n], total[n], all[n]);
  }
  const auto finish = [&](int r, int d, f32 value, f32 largest, f32 weights) {
    if (first + r >= rows) return;
    const i64 h = head_of(r), i = query_of(r);
    const f32 inverse = weights > 0 || weights != weights ? 1.0f / weights : 0.0f;
    put(p.o[b * p.os.batch + h * p.os.head + i * p.os.row + d], value * inverse);
    if (d == 0) p.lse[(b * p.q_heads + h) * p.q_len + i] = weights == 0 ? minus_infinity : largest + logf(weights);
  };
  if (kCluster == 1) {
    #pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int e = threadIdx.x + n * 32 * kWarps, r = e / kValueDim, d = e % kValueDim;
      if (gridDim.x == 1) {
        finish(r, d, all[n], top[n], total[n]);
      } else if (first + r < rows) {
        f32* const to = parts + (((b * p.q_heads + head_of(r)) * p.q_len + query_of(r)) * gridDim.x + blockIdx.x) * kPartFloats;
        to[2 + d] = all[n];
        if (d == 0) to[0] = top[n], to[1] = total[n];
      }
    }
    return;
  }
  __syncthreads();
  #pragma unroll
  for (int n = 0; n < kEach; ++n) {
    const int e = threadIdx.x + n * 32 * kWarps, r = e / kValueDim, d = e % kValueDim;
    found[0].out[r][d] = all[n];
    if (d == 0) found[0].most[r] = top[n], found[0].sum[r] = total[n];
  }
  join_cluster();
  constexpr int kShare = 8 * kValueDim / kCluster;
  for (int e = threadIdx.x; e < kShare; e += 32 * kWarps) {
    const int place = rank_in_cluster() * kShare + e, r = place / kValueDim, d = place % kValueDim;
    f32 largest = minus_infinity, weights = 0, value = 0;
    f32 tops[kCluster];
    #pragma unroll
    for (int w = 0; w < kCluster; ++w) tops[w] = in_block(&found[0].most[r], w), largest = op_max(largest, tops[w]);
    const f32 base = largest == minus_infinity ? 0.0f : largest;
    #pragma unroll
    for (int w = 0; w < kCluster; ++w) {
      const f32 weight = weight_of(tops[w] - base);
      weights = fmaf(weight, in_block(&found[0].sum[r], w), weights);
      value = fmaf(weight, in_block(&found[0].out[r][d], w), value);
    }
    finish(r, d, value, largest, weights);
  }
  join_cluster();  // nobody leaves while others read
}
)cuda";

inline constexpr char kAttentionFragments[] = R"cuda(
extern "C" __global__ void kClusterShape __launch_bounds__(32 * kWarps) attention_fragments(Params p, f32* parts, int keys_each, int chunks) {
  __shared__ Found found[kWarps];
  const int kv = blockIdx.y / chunks, first = blockIdx.y % chunks * 8, begin_key = blockIdx.x * keys_each;
  find_part(p, blockIdx.z, kv, first, begin_key, begin_key + keys_each, threadIdx.x / 32, 0, found[threadIdx.x / 32]);
  join_found(p, parts, found, blockIdx.z, kv, first);
}
)cuda";

// Before them stand struct Words and `Params params(const Words&)`, kSplits (of the keys), kKeysEach, kRowChunks (of eight rows that share a head of keys) and kBatch.
inline constexpr char kFragmentPhase[] = R"cuda(
inline void run(const Words& words, Ring&, u8* room) {
  const Params p = params(words);
  Found* const found = reinterpret_cast<Found*>(room);
  const int warp = threadIdx.x / 32, group = p.q_heads / p.kv_heads, rows = group * p.q_len;
  for (int unit = blockIdx.x; unit < kBatch * p.kv_heads * kRowChunks * kSplits; unit += kBlocks) {
    const int split = unit % kSplits, over = unit / kSplits, first = over % kRowChunks * 8, kv = over / kRowChunks % p.kv_heads;
    const i64 b = over / (kRowChunks * p.kv_heads);
    if (warp < kWarps * kShares)
      find_part(p, b, kv, first, split * kKeysEach, (split + 1) * kKeysEach, warp / kShares, warp % kShares, found[warp / kShares]);
    __syncthreads();
    for (int e = threadIdx.x; e < 8 * kValueDim; e += kChainThreads) {
      const int r = e / kValueDim, d = e % kValueDim;
      if (first + r >= rows) break;
      f32 top, total, all;
      join_warps(found, r, d, top, total, all);
      const i64 row = (b * p.q_heads + kv * group + (first + r) / p.q_len) * p.q_len + (first + r) % p.q_len;
      f32* const to = words.parts + (row * kSplits + split) * kPartFloats;
      to[2 + d] = all;
      if (d == 0) to[0] = top, to[1] = total;
    }
    __syncthreads();
  }
}
)cuda";

inline constexpr char kJoinPhase[] = R"cuda(
inline void run(const Words& words, Ring&, u8*) {
  const Params p = params(words);
  const int warp = threadIdx.x / 32 * kBlocks + blockIdx.x;
  for (int e = warp * 32 + threadIdx.x % 32; e < kBatch * p.q_heads * p.q_len * kValueDim; e += kBlocks * kChainThreads)
    join_parts(p, words.parts, kSplits, e / kValueDim, e % kValueDim);
}
)cuda";

}  // namespace rlx::cuda
