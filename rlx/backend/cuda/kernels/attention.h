// Attention without the matrix of scores: keys go by in tiles, each query keeps the largest score m, the
// sum l of exp(s - m) and the weighted sum of values, rescaled when m grows. Two kernels with one set of
// parameters: `attention_matrix` multiplies f16 and bf16 on matrix units, `attention_plain` takes every
// type and size. Before them stand T, Mask, Bias (types in memory), kDim and kValueDim (padded sizes of a
// head), kHasMask, kKeyMask (the mask is the same for all queries), kHasBias, kCausal, kWindow, kSoftcap.
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

inline constexpr char kAttentionMatrix[] = R"cuda(
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
inline u32 pair(f32 low, f32 high, f16) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
inline u32 pair(f32 low, f32 high, bf16) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }

// 64 queries a block, 16 a warp; tiles of 64 keys.
extern "C" __global__ void __launch_bounds__(128, 2) attention_matrix(Params p) {
  constexpr bool kSimple = !kHasBias && !kSoftcap && !kWindow && (!kHasMask || kKeyMask);
  constexpr int kRows = 64, kKeys = 64, kStride = kDim + 8, kValueStride = kValueDim + 8;
  __shared__ alignas(16) T ks[kKeys * kStride];
  __shared__ alignas(16) T vs[kKeys * kValueStride];
  const i64 b = blockIdx.z, h = blockIdx.y, kv = h * p.kv_heads / p.q_heads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * kRows;
  const int low = first + warp * 16 + lane / 4, high = low + 8, column = lane % 4 * 2;
  const T* const query = p.q + b * p.qs.batch + h * p.qs.head;
  u32 q[kDim / 16][4];
  #pragma unroll
  for (int d = 0; d < kDim / 16; ++d) {
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int row = n % 2 ? high : low, at = d * 16 + column + n / 2 * 8;
      q[d][n] = row < p.q_len ? *reinterpret_cast<const u32*>(query + row * p.qs.row + at) : 0u;
    }
  }
  f32 out[kValueDim / 8][4] = {};
  const f32 minus_infinity = -from_bits(0x7f800000u);
  f32 most[2] = {minus_infinity, minus_infinity}, sum[2] = {};
  const int last = first + kRows - 1 < p.q_len ? first + kRows - 1 : p.q_len - 1;
  const int end = keys_to(p, last);
  for (int start = keys_from(p, first) / kKeys * kKeys; start < end; start += kKeys) {
    __syncthreads();
    for (int e = threadIdx.x; e < kKeys * kDim / 8; e += 128) {
      const int r = e / (kDim / 8), d = e % (kDim / 8) * 8;
      uint4 x = {};
      if (start + r < p.k_len) x = *reinterpret_cast<const uint4*>(p.k + b * p.ks.batch + kv * p.ks.head + (start + r) * p.ks.row + d);
      *reinterpret_cast<uint4*>(ks + r * kStride + d) = x;
    }
    for (int e = threadIdx.x; e < kKeys * kValueDim / 8; e += 128) {
      const int r = e / (kValueDim / 8), d = e % (kValueDim / 8) * 8;
      uint4 x = {};
      if (start + r < p.k_len) x = *reinterpret_cast<const uint4*>(p.v + b * p.vs.batch + kv * p.vs.head + (start + r) * p.vs.row + d);
      *reinterpret_cast<uint4*>(vs + r * kValueStride + d) = x;
    }
    __syncthreads();
    f32 s[kKeys / 8][4] = {};
    #pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      #pragma unroll
      for (int d = 0; d < kDim / 16; ++d) {
        const T* const at = ks + (n * 8 + lane / 4) * kStride + d * 16 + column;
        multiply(s[n], q[d], *reinterpret_cast<const u32*>(at), *reinterpret_cast<const u32*>(at + 8), T{});
      }
    }
    // One bit for each key of the tile. Where all are open and none lies behind the queries of the warp,
    // scores need no mask.
    const u32 open[2] = {__ballot_sync(~0u, !key_blocked(p, b, h, start + lane)),
                         __ballot_sync(~0u, !key_blocked(p, b, h, start + 32 + lane))};
    const bool behind = kCausal && start + kKeys - 1 > first + warp * 16 + p.k_len - p.q_len;
    if (kSimple && !behind && (open[0] & open[1]) == ~0u) {
      #pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        #pragma unroll
        for (int c = 0; c < 4; ++c) s[n][c] *= p.scale;
      }
    } else {
      #pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        #pragma unroll
        for (int c = 0; c < 4; ++c) {
          const bool seen = open[n / 4] >> (n % 4 * 8 + column + c % 2) & 1;
          const int row = c < 2 ? low : high;
          s[n][c] = seen ? masked(p, s[n][c], b, h, row < p.q_len ? row : p.q_len - 1, start + n * 8 + column + c % 2)
                         : minus_infinity;
        }
      }
    }
    f32 now[2] = {most[0], most[1]};
    #pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      #pragma unroll
      for (int c = 0; c < 4; ++c) now[c / 2] = fmaxf(now[c / 2], s[n][c]);  // a NaN goes on through its weight
    }
    f32 factor[2], base[2];
    #pragma unroll
    for (int c = 0; c < 2; ++c) {
      now[c] = fmaxf(now[c], __shfl_xor_sync(~0u, now[c], 1));
      now[c] = fmaxf(now[c], __shfl_xor_sync(~0u, now[c], 2));
      base[c] = now[c] == minus_infinity ? 0.0f : now[c];
      factor[c] = __expf(most[c] - base[c]);
      most[c] = now[c];
      sum[c] *= factor[c];
    }
    #pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      #pragma unroll
      for (int c = 0; c < 4; ++c) {
        s[n][c] = __expf(s[n][c] - base[c / 2]);
        sum[c / 2] += s[n][c];
      }
    }
    #pragma unroll
    for (int d = 0; d < kValueDim / 8; ++d) {
      #pragma unroll
      for (int c = 0; c < 4; ++c) out[d][c] *= factor[c / 2];
    }
    #pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      const u32 w[4] = {pair(s[2 * n][0], s[2 * n][1], T{}), pair(s[2 * n][2], s[2 * n][3], T{}),
                        pair(s[2 * n + 1][0], s[2 * n + 1][1], T{}), pair(s[2 * n + 1][2], s[2 * n + 1][3], T{})};
      #pragma unroll
      for (int d = 0; d < kValueDim / 16; ++d) {
        u32 v0, v1, v2, v3;
        const u32 at = u32(__cvta_generic_to_shared(vs + (n * 16 + lane % 16) * kValueStride + d * 16 + lane / 16 * 8));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(v0), "=r"(v1), "=r"(v2), "=r"(v3) : "r"(at));
        multiply(out[2 * d], w, v0, v1, T{});
        multiply(out[2 * d + 1], w, v2, v3, T{});
      }
    }
  }
  #pragma unroll
  for (int c = 0; c < 2; ++c) {
    sum[c] += __shfl_xor_sync(~0u, sum[c], 1);
    sum[c] += __shfl_xor_sync(~0u, sum[c], 2);
    const int i = c ? high : low;
    if (i >= p.q_len) continue;
    const f32 inverse = sum[c] > 0 || sum[c] != sum[c] ? 1.0f / sum[c] : 0.0f;
    T* const to = p.o + b * p.os.batch + h * p.os.head + i * p.os.row;
    #pragma unroll
    for (int d = 0; d < kValueDim / 8; ++d)
      *reinterpret_cast<u32*>(to + d * 8 + column) = pair(out[d][2 * c] * inverse, out[d][2 * c + 1] * inverse, T{});
    if (lane % 4 == 0) p.lse[(b * p.q_heads + h) * p.q_len + i] = sum[c] == 0 ? minus_infinity : most[c] + logf(sum[c]);
  }
}
)cuda";

}  // namespace rlx::cuda
