// Attention of up to 128 queries and keys, f16 and bf16 with heads of up to 64 lanes: a block has a head of one text, a warp 16 queries at a time, and all their scores
// are in registers at once, so that no maximum is corrected later. After kAttentionShared, kAttentionWeights and kAttentionTiles (attention.h); before it stand kKeys (padded to 16), kWarps and
// kRounds: 16 kWarps kRounds queries.
#pragma once

namespace rlx::cuda {

inline constexpr char kAttentionShort[] = R"cuda(
// Rows of one head, zeros behind the last of `count`.
template <int Rows, int Lanes> void fetch_head(T* to, const T* from, i64 stride, int count) {
  #pragma unroll
  for (int e = threadIdx.x; e < Rows * (Lanes / 8); e += 32 * kWarps) {
    const int r = e / (Lanes / 8), d = e % (Lanes / 8) * 8;
    copy16(to + r * (Lanes + 8) + d, from + i64(r < count ? r : 0) * stride + d, r < count);
  }
}

// blockIdx = head, batch.
extern "C" __global__ void __launch_bounds__(32 * kWarps) attention_short(Params p) {
  constexpr int kRows = 16 * kWarps * kRounds, kStride = kDim + 8, kValueStride = kValueDim + 8, kWords = (kKeys + 31) / 32;
  extern __shared__ uint4 shared[];
  T* const qs = reinterpret_cast<T*>(shared);
  T* const ks = qs + kRows * kStride;
  T* const vs = ks + kKeys * kStride;
  const i64 b = blockIdx.y, h = blockIdx.x, kv = h * p.kv_heads / p.q_heads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % 4 * 2;
  begin();
  fetch_head<kRows, kDim>(qs, p.q + b * p.qs.batch + h * p.qs.head, p.qs.row, p.q_len);
  fetch_head<kKeys, kDim>(ks, p.k + b * p.ks.batch + kv * p.ks.head, p.ks.row, p.k_len);
  asm volatile("cp.async.commit_group;");
  fetch_head<kKeys, kValueDim>(vs, p.v + b * p.vs.batch + kv * p.vs.head, p.vs.row, p.k_len);
  asm volatile("cp.async.commit_group;");
  // A bit for each key that some query may see, those of this thread first.
  u32 open[kWords];
  bool all = kKeys % 32 == 0;
  #pragma unroll
  for (int w = 0; w < kWords; ++w) {
    open[w] = __ballot_sync(~0u, !key_blocked(p, b, h, w * 32 + lane));
    all = all && open[w] == ~0u;
    open[w] >>= column;
  }
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
  constexpr f32 kLog2e = 1.4426950408889634f;
  const f32 minus_infinity = -from_bits(0x7f800000u), scale = p.scale * kLog2e;
  #pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    const int row0 = (warp * kRounds + round) * 16, row = row0 + lane / 4;
    f32 s[kKeys / 8][4] = {}, out[kValueDim / 8][4] = {};
    #pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
      u32 q[4];
      load_matrices(q, qs + (row0 + lane % 16) * kStride + d * 16 + lane / 16 * 8);
      #pragma unroll
      for (int n = 0; n < kKeys / 8; n += 2) {
        u32 k[4];
        load_matrices(k, ks + (n * 8 + lane % 8 + lane / 16 * 8) * kStride + d * 16 + lane / 8 % 2 * 8);
        multiply(s[n], q, k[0], k[1], T{});
        multiply(s[n + 1], q, k[2], k[3], T{});
      }
    }
    const bool behind = kCausal && kKeys - 1 > row0 + p.k_len - p.q_len;
    const int last = row + p.k_len - p.q_len - column;
    f32 most[2], sum[2];
    #pragma unroll
    for (int c = 0; c < 2; ++c) {
      f32 now = minus_infinity;
      #pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
          f32& x = s[n][2 * c + e];
          if (!all) x = open[n / 4] >> (n % 4 * 8 + e) & 1 ? x : minus_infinity;
          if (behind) x = n * 8 + e <= last + c * 8 ? x : minus_infinity;
          now = fmaxf(now, x);
        }
      }
      now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
      now = fmaxf(now, __shfl_xor_sync(~0u, now, 2)) * scale;
      most[c] = now;
      const f32 base = now == minus_infinity ? 0.0f : now;
      f32 part[2] = {};
      #pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
          f32& x = s[n][2 * c + e];
          x = power_of_two(fmaf(x, scale, -base));
          part[e] += x;
        }
      }
      sum[c] = part[0] + part[1];
    }
    if (round == 0) {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      __syncthreads();
    }
    #pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      const u32 w[4] = {pair(s[2 * n][0], s[2 * n][1], T{}), pair(s[2 * n][2], s[2 * n][3], T{}), pair(s[2 * n + 1][0], s[2 * n + 1][1], T{}),
                        pair(s[2 * n + 1][2], s[2 * n + 1][3], T{})};
      #pragma unroll
      for (int d = 0; d < kValueDim / 16; ++d) {
        u32 v[4];
        load_transposed(v, vs + (n * 16 + lane % 16) * kValueStride + d * 16 + lane / 16 * 8);
        multiply(out[2 * d], w, v[0], v[1], T{});
        multiply(out[2 * d + 1], w, v[2], v[3], T{});
      }
    }
    if (kValueDim > kDim) {
      write_rows(p, most, sum, out, b, h, row, column);
      continue;
    }
    // Results leave through the rows of these queries, which no other warp reads, sixteen bytes at a time.
    __syncwarp();
    #pragma unroll
    for (int c = 0; c < 2; ++c) {
      sum[c] += __shfl_xor_sync(~0u, sum[c], 1);
      sum[c] += __shfl_xor_sync(~0u, sum[c], 2);
      const f32 total = sum[c], inverse = total > 0 || total != total ? 1.0f / total : 0.0f;
      #pragma unroll
      for (int d = 0; d < kValueDim / 8; ++d)
        *reinterpret_cast<u32*>(qs + (row + c * 8) * kStride + d * 8 + column) = pair(out[d][2 * c] * inverse, out[d][2 * c + 1] * inverse, T{});
      if (lane % 4 == 0 && row + c * 8 < p.q_len) write_sum(p, most[c], total, b, h, row + c * 8);
    }
    __syncwarp();
    #pragma unroll
    for (int e = lane; e < 2 * kValueDim; e += 32) {
      const int r = row0 + e / (kValueDim / 8), d = e % (kValueDim / 8) * 8;
      if (r < p.q_len) *reinterpret_cast<uint4*>(p.o + b * p.os.batch + h * p.os.head + r * p.os.row + d) = *reinterpret_cast<const uint4*>(qs + r * kStride + d);
    }
  }
}
)cuda";

}  // namespace rlx::cuda
