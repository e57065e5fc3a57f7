// Attention without the matrix of scores: keys go by in tiles, each query keeps the largest score m, the
// sum l of exp(s - m) and the weighted sum of values, rescaled when m grows. Two kernels with one set of
// parameters: `attention_matrix` multiplies f16 and bf16 on matrix units, `attention_plain` takes every
// type and size. Before them stand T, Mask, Bias (types in memory), kDim and kValueDim (padded sizes of a
// head), kHasMask, kKeyMask (the mask is the same for all queries), kHasBias, kCausal, kWindow, kSoftcap;
// kRowTiles before the second.
#pragma once

namespace rlx::cuda {

inline constexpr char kAttentionShared[] = R"cuda(
struct Heads { i64 batch, head, row; };
struct Params {
  const T *q, *k, *v;
  const Mask* mask;
  const Bias* bias;
  T* o;
  f32* lse;
  Heads qs, ks, vs, os, ms, bs;
  i64 window;
  int q_heads, kv_heads, q_len, k_len, head_dim, value_dim;
  f32 scale, softcap;
};

typedef T Key;
inline const Key* key_row(const Params& p, i64 b, int kv, int j) { return p.k + b * p.ks.batch + kv * p.ks.head + j * p.ks.row; }
inline const Key* value_row(const Params& p, i64 b, int kv, int j) { return p.v + b * p.vs.batch + kv * p.vs.head + j * p.vs.row; }

// The score of query i and key j, -inf where it is masked. Queries are counted from the end of the keys.
inline f32 masked(const Params& p, f32 product, i64 b, i64 h, int i, int j) {
  f32 s = product * p.scale;
  if (kSoftcap) s = p.softcap * tanhf(s / p.softcap);
  if (kHasBias) s += as_f32(p.bias[b * p.bs.batch + h * p.bs.head + i * p.bs.row + j]);
  const int at = i + p.k_len - p.q_len;
  bool allowed = true;
  if (kCausal) allowed = allowed && j <= at;
  if (kWindow) allowed = allowed && i64(j) >= i64(at) - p.window;
  if (kHasMask && !kKeyMask && allowed)
    allowed = !(as_f32(p.mask[b * p.ms.batch + h * p.ms.head + i * p.ms.row + j]) < 0.5f);
  return allowed ? s : -from_bits(0x7f800000u);
}

// Whether key j is blocked for all queries; kept for a tile of keys in shared memory.
inline bool key_blocked(const Params& p, i64 b, i64 h, int j) {
  return j >= p.k_len || (kHasMask && kKeyMask && as_f32(p.mask[b * p.ms.batch + h * p.ms.head + j]) < 0.5f);
}

// The keys that queries first .. last may see.
inline int keys_from(const Params& p, int first) {
  if (!kWindow) return 0;
  const i64 from = i64(first) + p.k_len - p.q_len - p.window;
  return from < 0 ? 0 : int(from);
}
inline int keys_to(const Params& p, int last) {
  if (!kCausal) return p.k_len;
  const int to = last + p.k_len - p.q_len + 1;
  return to < p.k_len ? (to < 0 ? 0 : to) : p.k_len;
}
)cuda";

inline constexpr char kAttentionPlain[] = R"cuda(
// 32 queries a block, 8 threads a query, tiles of 32 keys.
extern "C" __global__ void __launch_bounds__(256) attention_plain(Params p) {
  constexpr int kRows = 32, kKeys = 32, kShare = 8;
  extern __shared__ f32 memory[];
  f32* const q = memory;                                // [kRows][kDim + 1]
  f32* const k = q + kRows * (kDim + 1);                // [kKeys][kDim + 1]
  f32* const v = k + kKeys * (kDim + 1);                // [kKeys][kValueDim + 1]
  f32* const weights = v + kKeys * (kValueDim + 1);     // [kRows][kKeys + 1]
  __shared__ bool blocked[kKeys];
  const i64 b = blockIdx.z, h = blockIdx.y, kv = h * p.kv_heads / p.q_heads;
  const int first = blockIdx.x * kRows, row = threadIdx.x / kShare, sub = threadIdx.x % kShare, i = first + row;
  for (int e = threadIdx.x; e < kRows * kDim; e += 256) {
    const int r = e / kDim, d = e % kDim;
    const bool inside = first + r < p.q_len && d < p.head_dim;
    q[r * (kDim + 1) + d] = inside ? as_f32(p.q[b * p.qs.batch + h * p.qs.head + (first + r) * p.qs.row + d]) : 0.0f;
  }
  f32 most = -from_bits(0x7f800000u), sum = 0;
  f32 out[kValueDim / kShare] = {};
  const int last = first + kRows - 1 < p.q_len ? first + kRows - 1 : p.q_len - 1;
  const int end = keys_to(p, last);
  for (int start = keys_from(p, first) / kKeys * kKeys; start < end; start += kKeys) {
    __syncthreads();
    if (threadIdx.x < kKeys) blocked[threadIdx.x] = key_blocked(p, b, h, start + threadIdx.x);
    for (int e = threadIdx.x; e < kKeys * kDim; e += 256) {
      const int r = e / kDim, d = e % kDim;
      const bool inside = start + r < p.k_len && d < p.head_dim;
      k[r * (kDim + 1) + d] = inside ? as_f32(p.k[b * p.ks.batch + kv * p.ks.head + (start + r) * p.ks.row + d]) : 0.0f;
    }
    for (int e = threadIdx.x; e < kKeys * kValueDim; e += 256) {
      const int r = e / kValueDim, d = e % kValueDim;
      const bool inside = start + r < p.k_len && d < p.value_dim;
      v[r * (kValueDim + 1) + d] = inside ? as_f32(p.v[b * p.vs.batch + kv * p.vs.head + (start + r) * p.vs.row + d]) : 0.0f;
    }
    __syncthreads();
    f32 s[kKeys / kShare] = {};
    for (int d = 0; d < kDim; ++d) {
      const f32 x = q[row * (kDim + 1) + d];
      #pragma unroll
      for (int n = 0; n < kKeys / kShare; ++n) s[n] = op_fma(x, k[(n * kShare + sub) * (kDim + 1) + d], s[n]);
    }
    f32 now = most;
    #pragma unroll
    for (int n = 0; n < kKeys / kShare; ++n) {
      const int j = start + n * kShare + sub;
      s[n] = i < p.q_len && !blocked[n * kShare + sub] ? masked(p, s[n], b, h, i, j) : -from_bits(0x7f800000u);
      now = op_max(now, s[n]);
    }
    #pragma unroll
    for (int o = kShare / 2; o > 0; o >>= 1) now = op_max(now, __shfl_xor_sync(~0u, now, o));
    const f32 base = now == -from_bits(0x7f800000u) ? 0.0f : now, factor = expf(most - base);
    f32 part = 0;
    #pragma unroll
    for (int n = 0; n < kKeys / kShare; ++n) {
      const f32 w = expf(s[n] - base);
      weights[row * (kKeys + 1) + n * kShare + sub] = w;
      part += w;
    }
    #pragma unroll
    for (int o = kShare / 2; o > 0; o >>= 1) part += __shfl_xor_sync(~0u, part, o);
    sum = sum * factor + part;
    most = now;
    __syncwarp();
    #pragma unroll
    for (int n = 0; n < kValueDim / kShare; ++n) out[n] *= factor;
    for (int j = 0; j < kKeys; ++j) {
      const f32 w = weights[row * (kKeys + 1) + j];
      #pragma unroll
      for (int n = 0; n < kValueDim / kShare; ++n) out[n] = op_fma(w, v[j * (kValueDim + 1) + n * kShare + sub], out[n]);
    }
  }
  if (i >= p.q_len) return;
  const f32 inverse = sum > 0 || sum != sum ? 1.0f / sum : 0.0f;
  #pragma unroll
  for (int n = 0; n < kValueDim / kShare; ++n) {
    const int d = n * kShare + sub;
    if (d < p.value_dim) put(p.o[b * p.os.batch + h * p.os.head + i * p.os.row + d], out[n] * inverse);
  }
  if (sub == 0) p.lse[(b * p.q_heads + h) * p.q_len + i] = sum == 0 ? -from_bits(0x7f800000u) : most + logf(sum);
}
)cuda";

inline constexpr char kAttentionWeights[] = R"cuda(
inline u32 pair(f32 low, f32 high, f16) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
inline u32 pair(f32 low, f32 high, bf16) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
inline f32 power_of_two(f32 x) { f32 y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }

// Asynchronous copies into shared memory; what is not there is filled with zeros.
inline void copy16(u32 to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(there ? 16 : 0));
}

// Where all keys of a tile are open, scores need no mask but that of keys behind the queries.
constexpr bool kSimple = !kHasBias && !kSoftcap && !kWindow && (!kHasMask || kKeyMask);
constexpr bool kTableSimple = kHasMask && !kKeyMask && !kHasBias && !kSoftcap && !kWindow;

// Scores of rows `row` and `row` + 8 with 64 keys become weights. A thread has keys j, j + 1 of every eight; `open` has one bit for each key of the tile,
// `behind` tells whether some lie behind a query.
// Scores are kept times log2(e): `most` is the largest so far, `sum` adds up the thread's weights.
template <int N>
void weigh(const Params& p, f32 (&s)[8][4], f32 (&most)[2], f32 (&sum)[2], f32 (&out)[N][4], bool simple, bool behind, const u32 (&open)[2], i64 b,
           i64 h, int row, int j) {
  constexpr f32 kLog2e = 1.4426950408889634f;
  const f32 minus_infinity = -from_bits(0x7f800000u);
  const f32 scale = simple ? p.scale * kLog2e : kLog2e;
  if (!simple) {
    #pragma unroll
    for (int n = 0; n < 8; ++n) {
      #pragma unroll
      for (int c = 0; c < 4; ++c) {
        const bool seen = open[n / 4] >> (n % 4 * 8 + threadIdx.x % 4 * 2 + c % 2) & 1;
        const int i = row + c / 2 * 8;
        s[n][c] = seen ? masked(p, s[n][c], b, h, i < p.q_len ? i : p.q_len - 1, j + n * 8 + c % 2) : minus_infinity;
      }
    }
  } else if (kCausal && behind) {
    const int at = row + p.k_len - p.q_len - j;
    #pragma unroll
    for (int n = 0; n < 8; ++n) {
      #pragma unroll
      for (int c = 0; c < 4; ++c) s[n][c] = n * 8 + c % 2 <= at + c / 2 * 8 ? s[n][c] : minus_infinity;
    }
  }
  #pragma unroll
  for (int c = 0; c < 2; ++c) {
    f32 now = minus_infinity;
    #pragma unroll
    for (int n = 0; n < 8; ++n) now = fmaxf(now, fmaxf(s[n][2 * c], s[n][2 * c + 1]));
    now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
    now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
    now = fmaxf(now * scale, most[c]);  // a NaN goes on through its weight
    const f32 base = now == minus_infinity ? 0.0f : now, factor = power_of_two(most[c] - base);
    most[c] = now;
    f32 part = 0;
    #pragma unroll
    for (int n = 0; n < 8; ++n) {
      #pragma unroll
      for (int e = 2 * c; e < 2 * c + 2; ++e) {
        s[n][e] = power_of_two(fmaf(s[n][e], scale, -base));
        part += s[n][e];
      }
    }
    sum[c] = fmaf(sum[c], factor, part);
    if (__any_sync(~0u, factor != 1.0f)) {
      #pragma unroll
      for (int d = 0; d < N; ++d) out[d][2 * c] *= factor, out[d][2 * c + 1] *= factor;
    }
  }
}

// The logarithm of the sum of exp(score) of query i, whose scores are kept times log2(e).
inline void write_sum(const Params& p, f32 most, f32 total, i64 b, i64 h, int i) {
  p.lse[(b * p.q_heads + h) * p.q_len + i] = total == 0 ? -from_bits(0x7f800000u) : fmaf(most, 0.6931471805599453f, logf(total));
}

// Results of rows `row` and `row` + 8, of which a thread has columns `column`, + 1 of every eight.
template <int N>
void write_rows(const Params& p, const f32 (&most)[2], f32 (&sum)[2], const f32 (&out)[N][4], i64 b, i64 h, int row, int column) {
  #pragma unroll
  for (int c = 0; c < 2; ++c) {
    sum[c] += __shfl_xor_sync(~0u, sum[c], 1);
    sum[c] += __shfl_xor_sync(~0u, sum[c], 2);
    const int i = row + c * 8;
    if (i >= p.q_len) continue;
    const f32 total = sum[c], inverse = total > 0 || total != total ? 1.0f / total : 0.0f;
    T* const to = p.o + b * p.os.batch + h * p.os.head + i * p.os.row;
    #pragma unroll
    for (int d = 0; d < N; ++d)
      *reinterpret_cast<u32*>(to + d * 8 + column) = pair(out[d][2 * c] * inverse, out[d][2 * c + 1] * inverse, T{});
    if (threadIdx.x % 4 == 0) write_sum(p, most[c], total, b, h, i);
  }
}
)cuda";

inline constexpr char kAttentionTiles[] = R"cuda(
// d += a b for a 16 x 16 tile of a, 16 x 8 of b. Thread l holds of a the pairs at rows l/4 and l/4 + 8,
// columns 2(l%4) and + 8; of b the pairs at rows 2(l%4) and + 8 of column l/4; of d the pairs at rows l/4
// and l/4 + 8, columns 2(l%4).
inline void multiply(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, f16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
inline void multiply(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, bf16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
inline void copy16(void* to, const void* from, bool there) { copy16(u32(__cvta_generic_to_shared(to)), from, there); }
inline void load_matrices(u32 (&r)[4], const T* at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(u32(__cvta_generic_to_shared(at))));
}
inline void load_transposed(u32 (&r)[4], const T* at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(u32(__cvta_generic_to_shared(at))));
}
)cuda";

inline constexpr char kAttentionMatrix[] = R"cuda(
// 64 kRowTiles queries a block, 16 kRowTiles a warp; tiles of 64 keys, the next one on its way while one is multiplied.
// `tiles` tells for blocks of queries and tiles of keys whether a mask lets nothing (0), a part (1) or all
// of it (2) through; null where there is no such table.
extern "C" __global__ void __launch_bounds__(128) attention_matrix(Params p, const u8* tiles) {
  constexpr int kRows = 64 * kRowTiles, kKeys = 64, kStride = kDim + 8, kValueStride = kValueDim + 8;
  extern __shared__ uint4 shared[];
  T* const qs = reinterpret_cast<T*>(shared);
  T* const ks = qs + kRows * kStride;
  T* const vs = ks + 2 * kKeys * kStride;
  const i64 b = blockIdx.z, h = blockIdx.y, kv = h * p.kv_heads / p.q_heads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Blocks with most keys begin first.
  const int block = kCausal ? int(gridDim.x - 1 - blockIdx.x) : int(blockIdx.x), first = block * kRows;
  const int row0 = first + warp * 16 * kRowTiles, column = lane % 4 * 2;
  const int last = first + kRows - 1 < p.q_len ? first + kRows - 1 : p.q_len - 1, end = keys_to(p, last);
  if (kHasMask && tiles) tiles += ((p.ms.batch ? b : 0) * gridDim.x + block) * ((p.k_len + kKeys - 1) / kKeys);
  const auto next_tile = [&](int start) {
    if (kHasMask && tiles) {
      while (start < end && tiles[start / kKeys] == 0) start += kKeys;
    }
    return start;
  };
  const auto fetch = [&](int start, int buffer) {
    for (int e = threadIdx.x; e < kKeys * kDim / 8; e += 128) {
      const int r = e / (kDim / 8), d = e % (kDim / 8) * 8;
      const bool there = start + r < p.k_len;
      copy16(ks + (buffer * kKeys + r) * kStride + d, p.k + b * p.ks.batch + kv * p.ks.head + (there ? start + r : 0) * p.ks.row + d, there);
    }
    for (int e = threadIdx.x; e < kKeys * kValueDim / 8; e += 128) {
      const int r = e / (kValueDim / 8), d = e % (kValueDim / 8) * 8;
      const bool there = start + r < p.k_len;
      copy16(vs + (buffer * kKeys + r) * kValueStride + d, p.v + b * p.vs.batch + kv * p.vs.head + (there ? start + r : 0) * p.vs.row + d, there);
    }
    asm volatile("cp.async.commit_group;");
  };
  for (int e = threadIdx.x; e < kRows * kDim / 8; e += 128) {
    const int r = e / (kDim / 8), d = e % (kDim / 8) * 8;
    const bool there = first + r < p.q_len;
    copy16(qs + r * kStride + d, p.q + b * p.qs.batch + h * p.qs.head + (there ? first + r : 0) * p.qs.row + d, there);
  }
  f32 out[kRowTiles][kValueDim / 8][4] = {};
  const f32 minus_infinity = -from_bits(0x7f800000u);
  f32 most[kRowTiles][2], sum[kRowTiles][2];
  #pragma unroll
  for (int t = 0; t < kRowTiles; ++t) most[t][0] = most[t][1] = minus_infinity, sum[t][0] = sum[t][1] = 0;
  int start = next_tile(keys_from(p, first) / kKeys * kKeys), buffer = 0;
  if (start < end) fetch(start, 0);
  while (start < end) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    const int following = next_tile(start + kKeys);
    if (following < end) fetch(following, buffer ^ 1);
    const T* const key_tile = ks + buffer * kKeys * kStride;
    const T* const value_tile = vs + buffer * kKeys * kValueStride;
    f32 s[kRowTiles][kKeys / 8][4] = {};
    #pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
      u32 q[kRowTiles][4];
      #pragma unroll
      for (int t = 0; t < kRowTiles; ++t)
        load_matrices(q[t], qs + ((warp * kRowTiles + t) * 16 + lane % 16) * kStride + d * 16 + lane / 16 * 8);
      #pragma unroll
      for (int n = 0; n < kKeys / 8; n += 2) {
        u32 k[4];
        load_matrices(k, key_tile + (n * 8 + lane % 8 + lane / 16 * 8) * kStride + d * 16 + lane / 8 % 2 * 8);
        #pragma unroll
        for (int t = 0; t < kRowTiles; ++t) {
          multiply(s[t][n], q[t], k[0], k[1], T{});
          multiply(s[t][n + 1], q[t], k[2], k[3], T{});
        }
      }
    }
    // One bit for each key of the tile.
    const u32 open[2] = {__ballot_sync(~0u, !key_blocked(p, b, h, start + lane)),
                         __ballot_sync(~0u, !key_blocked(p, b, h, start + 32 + lane))};
    const bool behind = kCausal && start + kKeys - 1 > row0 + p.k_len - p.q_len;
    const bool passed = kTableSimple && tiles && tiles[start / kKeys] == 2;
    const bool simple = (kSimple || passed) && p.scale > 0 && (open[0] & open[1]) == ~0u;
    #pragma unroll
    for (int t = 0; t < kRowTiles; ++t)
      weigh(p, s[t], most[t], sum[t], out[t], simple, behind, open, b, h, row0 + t * 16 + lane / 4, start + column);
    #pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      u32 w[kRowTiles][4];
      #pragma unroll
      for (int t = 0; t < kRowTiles; ++t) {
        w[t][0] = pair(s[t][2 * n][0], s[t][2 * n][1], T{}), w[t][1] = pair(s[t][2 * n][2], s[t][2 * n][3], T{});
        w[t][2] = pair(s[t][2 * n + 1][0], s[t][2 * n + 1][1], T{}), w[t][3] = pair(s[t][2 * n + 1][2], s[t][2 * n + 1][3], T{});
      }
      #pragma unroll
      for (int d = 0; d < kValueDim / 16; ++d) {
        u32 v[4];
        load_transposed(v, value_tile + (n * 16 + lane % 16) * kValueStride + d * 16 + lane / 16 * 8);
        #pragma unroll
        for (int t = 0; t < kRowTiles; ++t) {
          multiply(out[t][2 * d], w[t], v[0], v[1], T{});
          multiply(out[t][2 * d + 1], w[t], v[2], v[3], T{});
        }
      }
    }
    start = following;
    buffer ^= 1;
  }
  #pragma unroll
  for (int t = 0; t < kRowTiles; ++t) write_rows(p, most[t], sum[t], out[t], b, h, row0 + t * 16 + lane / 4, column);
}
)cuda";

inline constexpr char kMaskTiles[] = R"cuda(
// The table of `attention_matrix`: blockIdx = tile of keys, block of queries, batch.
extern "C" __global__ void __launch_bounds__(256) mask_tiles(Params p, u8* tiles) {
  constexpr int kRows = 64 * kRowTiles, kKeys = 64;
  bool any = false, all = true;
  for (int e = threadIdx.x; e < kRows * kKeys; e += 256) {
    const int i = blockIdx.y * kRows + e / kKeys, j = blockIdx.x * kKeys + e % kKeys;
    if (i >= p.q_len || j >= p.k_len) continue;
    const bool open = !(as_f32(p.mask[blockIdx.z * p.ms.batch + i * p.ms.row + j]) < 0.5f);
    any = any || open;
    all = all && open;
  }
  const int some = __syncthreads_or(any), whole = __syncthreads_and(all);
  if (threadIdx.x == 0) tiles[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = whole ? 2 : some ? 1 : 0;
}
)cuda";

}  // namespace rlx::cuda
