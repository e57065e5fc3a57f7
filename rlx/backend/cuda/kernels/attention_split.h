// Attention of few queries over many keys, as when a text grows by a token: a block takes a part of the keys for all
// queries that share a head of keys, so that keys and values are read once; a second kernel joins the parts in order. After
// kAttentionShared (attention.h) or kPagedShared (paged_attention.h); before it stand also kQueries (rows of a block), kWide (rows begin at multiples of 16 bytes), and
// how rows are read: kPlainRows here or kBlockRows of paged_attention.h.
#pragma once

namespace rlx::cuda {

inline constexpr char kAttentionParts[] = R"cuda(
inline f32 weight_of(f32 x) { return sizeof(T) == 2 ? __expf(x) : expf(x); }

// parts: for each row of queries and each split, the largest score, the sum of weights, and the weighted values.
constexpr int kPartFloats = 2 + kValueDim;

// Lane d of one row of queries from its parts.
inline void join_parts(const Params& p, const f32* parts, int splits, i64 row, int d) {
  const i64 i = row % p.q_len, h = row / p.q_len % p.q_heads, b = row / (i64(p.q_len) * p.q_heads);
  parts += row * splits * kPartFloats;
  const f32 minus_infinity = -from_bits(0x7f800000u);
  f32 most = minus_infinity;
  for (int s = 0; s < splits; ++s) most = op_max(most, parts[s * kPartFloats]);
  const f32 base = most == minus_infinity ? 0.0f : most;
  f32 total = 0, all = 0;
  for (int s = 0; s < splits; ++s) {
    const f32 weight = weight_of(parts[s * kPartFloats] - base);
    total += weight * parts[s * kPartFloats + 1];
    all = fmaf(weight, parts[s * kPartFloats + 2 + d], all);
  }
  const f32 inverse = total > 0 || total != total ? 1.0f / total : 0.0f;
  put(p.o[b * p.os.batch + h * p.os.head + i * p.os.row + d], all * inverse);
  if (d == 0) p.lse[row] = total == 0 ? minus_infinity : most + logf(total);
}
)cuda";

// Rows of numbers: as many keys as are read together from lane d on, the values of a thread from `column` on. Lanes behind the last are 0.
inline constexpr char kPlainRows[] = R"cuda(
template <int N> void keys_at(const Key* row, int d, int lanes, Key (&to)[N]) {
  if (kWide) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(row + d);
  } else {
    to[0] = d < lanes ? row[d] : Key{};
  }
}
template <int N> void values_at(const Key* row, int column, int lanes, Key (&to)[N]) {
  if (kWide && N == 2) {
    *reinterpret_cast<u32*>(to) = *reinterpret_cast<const u32*>(row + column);
  } else {
    #pragma unroll
    for (int u = 0; u < N; ++u) to[u] = column + u < lanes ? row[column + u] : Key{};
  }
}
)cuda";

inline constexpr char kAttentionSplit[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 3) attention_split(Params p, f32* parts, int keys_each, int chunks) {
  constexpr int kKeys = 64, kShare = 4, kPiece = kWide ? 16 / sizeof(Key) : 1;
  constexpr int kColumns = 4 / sizeof(Key), kWidth = kValueDim / kColumns;  // values a thread sums; threads across a row
  constexpr int kSlices = 256 / kWidth > 0 ? 256 / kWidth : 1;
  __shared__ f32 q[kQueries][kDim];
  __shared__ f32 weights[kQueries][kKeys];
  __shared__ f32 most[kQueries], sum[kQueries], factor[kQueries];
  __shared__ f32 joined[kSlices][kQueries][kValueDim];
  const f32 minus_infinity = -from_bits(0x7f800000u);
  const i64 b = blockIdx.z;
  const int kv = blockIdx.y / chunks, chunk = blockIdx.y % chunks, group = p.q_heads / p.kv_heads;
  const int rows = group * p.q_len, first = chunk * kQueries;
  const auto head_of = [&](int r) { return kv * group + (first + r) / p.q_len; };
  const auto query_of = [&](int r) { return (first + r) % p.q_len; };
  for (int e = threadIdx.x; e < kQueries * kDim; e += 256) {
    const int r = e / kDim, d = e % kDim;
    const bool inside = first + r < rows && d < p.head_dim;
    q[r][d] = inside ? as_f32(p.q[b * p.qs.batch + head_of(r) * p.qs.head + query_of(r) * p.qs.row + d]) : 0.0f;
  }
  if (threadIdx.x < kQueries) most[threadIdx.x] = minus_infinity, sum[threadIdx.x] = 0;
  const int begin = blockIdx.x * keys_each, stop = begin + keys_each;
  const int from = keys_from(p, 0), to = keys_to(p, p.q_len - 1), end = stop < to ? stop : to;
  const int key = threadIdx.x / kShare, part = threadIdx.x % kShare;
  const int column = threadIdx.x % kWidth * kColumns, slice = threadIdx.x / kWidth;
  f32 out[kQueries][kColumns] = {};
  for (int start = begin; start < end; start += kKeys) {
    if (start + kKeys <= from) continue;
    __syncthreads();
    const int j = start + key;
    f32 s[kQueries] = {};
    if (j < p.k_len) {
      const auto row = key_row(p, b, kv, j);
      #pragma unroll 4
      for (int d = part * kPiece; d < kDim; d += kShare * kPiece) {
        Key piece[kPiece];
        keys_at(row, d, p.head_dim, piece);
        #pragma unroll
        for (int u = 0; u < kPiece; ++u) {
          const f32 x = as_f32(piece[u]);
          #pragma unroll
          for (int r = 0; r < kQueries; ++r) s[r] = fmaf(q[r][d + u], x, s[r]);
        }
      }
    }
    #pragma unroll
    for (int r = 0; r < kQueries; ++r) {
      s[r] += __shfl_xor_sync(~0u, s[r], 1);
      s[r] += __shfl_xor_sync(~0u, s[r], 2);
      if (r % kShare == part) {
        const bool seen = first + r < rows && j < end && j < p.k_len && !key_blocked(p, b, head_of(r), j);
        weights[r][key] = seen ? masked(p, s[r], b, head_of(r), query_of(r), j) : minus_infinity;
      }
    }
    __syncthreads();
    for (int r = threadIdx.x / 32; r < kQueries; r += 8) {
      const int lane = threadIdx.x % 32;
      const f32 x = weights[r][lane], y = weights[r][lane + 32];
      const f32 now = op_max(most[r], over_warp<Max>(op_max(x, y))), base = now == minus_infinity ? 0.0f : now;
      const f32 wx = weight_of(x - base), wy = weight_of(y - base), all = over_warp<Sum>(wx + wy);
      weights[r][lane] = wx;
      weights[r][lane + 32] = wy;
      __syncwarp();
      if (lane == 0) {
        factor[r] = weight_of(most[r] - base);
        sum[r] = sum[r] * factor[r] + all;
        most[r] = now;
      }
    }
    __syncthreads();
    if (slice < kSlices) {
      #pragma unroll
      for (int r = 0; r < kQueries; ++r) {
        #pragma unroll
        for (int u = 0; u < kColumns; ++u) out[r][u] *= factor[r];
      }
      const int open = p.k_len - start < kKeys ? p.k_len - start : kKeys;
      #pragma unroll 4
      for (int n = slice; n < open; n += kSlices) {
        Key v[kColumns];
        values_at(value_row(p, b, kv, start + n), column, p.value_dim, v);
        #pragma unroll
        for (int r = 0; r < kQueries; ++r) {
          #pragma unroll
          for (int u = 0; u < kColumns; ++u) out[r][u] = fmaf(weights[r][n], as_f32(v[u]), out[r][u]);
        }
      }
    }
  }
  __syncthreads();
  if (slice < kSlices) {
    #pragma unroll
    for (int r = 0; r < kQueries; ++r) {
      #pragma unroll
      for (int u = 0; u < kColumns; ++u) joined[slice][r][column + u] = out[r][u];
    }
  }
  __syncthreads();
  for (int e = threadIdx.x; e < kQueries * kValueDim; e += 256) {
    const int r = e / kValueDim, d = e % kValueDim;
    if (first + r >= rows || d >= p.value_dim) continue;
    f32 all = joined[0][r][d];
    #pragma unroll
    for (int n = 1; n < kSlices; ++n) all += joined[n][r][d];
    const i64 h = head_of(r), i = query_of(r), row = (b * p.q_heads + h) * p.q_len + i;
    if (gridDim.x == 1) {
      const f32 total = sum[r], inverse = total > 0 || total != total ? 1.0f / total : 0.0f;
      put(p.o[b * p.os.batch + h * p.os.head + i * p.os.row + d], all * inverse);
      if (d == 0) p.lse[row] = total == 0 ? minus_infinity : most[r] + logf(total);
    } else {
      f32* const to = parts + (row * gridDim.x + blockIdx.x) * kPartFloats;
      to[2 + d] = all;
      if (d == 0) to[0] = most[r], to[1] = sum[r];
    }
  }
}

)cuda";

inline constexpr char kAttentionJoin[] = R"cuda(
// A block for each row of queries.
extern "C" __global__ void __launch_bounds__(128) attention_join(Params p, const f32* parts, int splits) {
  for (int d = threadIdx.x; d < p.value_dim; d += 128) join_parts(p, parts, splits, blockIdx.x, d);
}
)cuda";

}  // namespace rlx::cuda
