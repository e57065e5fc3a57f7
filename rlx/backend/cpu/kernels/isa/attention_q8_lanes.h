// Few queries by q8_0 keys and values at AVX2. Codes are widened once for up to four rows, scales are applied to sums and weights
// instead of codes, and a row has the same bits with any others.
//   keys    16 keys in the lanes: the 32 codes of each are turned into dwords of four, one code of them after the other is
//           widened and multiplied by one number of each query, and the sums of a block by its scales
//   values  each weight by the scale of its key first; then R rows by some vectors of sums while keys go by
// With four heads on one and head_dim 64 a key and its value are 64 multiply-adds, which two of the four units do, and about 70 other
// operations. On a Zen 3 scores take 30 cycles (22 without turning, 17 without widening), values 22, weights 8, for 136 bytes.
#pragma once

#include "rlx/backend/cpu/kernels/isa/attention_scores.h"

namespace rlx::cpu::RLX_ISA {

#if defined(RLX_AVX2)

inline constexpr int64_t kLaneKeys = 2 * kLanes;  // that are scored together
inline constexpr int64_t kKeyBytesAhead = 4096;   // that are asked for before they are needed
inline constexpr int64_t kValueRowsAhead = 64;    // a tile: the same vectors of the next

/// The scales of the blocks that lie at at[0 .. 8) + offset.
RLX_INLINE F32 eight_scales(const uint8_t* const* at, int64_t offset) {
  U16Half bits = {};
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; ++i) {
    uint16_t one;
    std::memcpy(&one, at[i] + offset, 2);
    bits[i] = one;
  }
  return (F32)_mm256_cvtph_ps((__m128i)bits);
}

/// out[i], lane j: codes 4 i .. 4 i + 4 of the block at at[j] + offset, one a byte; i < 8.
RLX_INLINE void turn_codes(const uint8_t* const* at, int64_t offset, I32* out) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m256i x[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const auto part = [&](int key) __attribute__((always_inline)) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at[key] + offset + 2 + 16 * half));
      };
      x[j] = _mm256_inserti128_si256(_mm256_castsi128_si256(part(j)), part(j + 4), 1);
    }
    const __m256i a = _mm256_unpacklo_epi32(x[0], x[1]), b = _mm256_unpackhi_epi32(x[0], x[1]),
                  c = _mm256_unpacklo_epi32(x[2], x[3]), d = _mm256_unpackhi_epi32(x[2], x[3]);
    out[4 * half] = (I32)_mm256_unpacklo_epi64(a, c);
    out[4 * half + 1] = (I32)_mm256_unpackhi_epi64(a, c);
    out[4 * half + 2] = (I32)_mm256_unpacklo_epi64(b, d);
    out[4 * half + 3] = (I32)_mm256_unpackhi_epi64(b, d);
  }
}

template <int I>
RLX_INLINE F32 code_of(I32 four) {
  return to_float(I == 3 ? four >> 24 : (I32)((U32)four << (24 - 8 * I)) >> 24);
}

/// sums[r] += q[r * q_stride + I] * code I of each lane, for the two vectors of keys.
template <int I, int R>
RLX_INLINE void add_code(I32 low, I32 high, const float* q, int64_t q_stride, F32 (&sums)[R][2]) {
  const F32 x = code_of<I>(low), y = code_of<I>(high);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const F32 v = set1(q[r * q_stride + I]);
    sums[r][0] = fma(x, v, sums[r][0]);
    sums[r][1] = fma(y, v, sums[r][1]);
  }
}

/// scores[r * kAttentionSplit + i] for the 16 keys whose rows begin at at[i].
template <int R>
RLX_INLINE void score_lanes(const uint8_t* const* at, int64_t dim, const float* q, int64_t q_stride,
                            float* scores) {
  for (int64_t d = 0, offset = 0; d < dim; d += kQ8Elements, offset += kQ8Bytes) {
    I32 codes[2][8];
    turn_codes(at, offset, codes[0]);
    turn_codes(at + kLanes, offset, codes[1]);
    F32 sums[R][2] = {};
#pragma GCC unroll 1
    for (int i = 0; i < 8; ++i) {
      const float* from = q + d + 4 * i;
      add_code<0>(codes[0][i], codes[1][i], from, q_stride, sums);
      add_code<1>(codes[0][i], codes[1][i], from, q_stride, sums);
      add_code<2>(codes[0][i], codes[1][i], from, q_stride, sums);
      add_code<3>(codes[0][i], codes[1][i], from, q_stride, sums);
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const F32 scale = eight_scales(at + half * kLanes, offset);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        float* to = scores + r * kAttentionSplit + half * kLanes;
        store(to, d == 0 ? sums[r][half] * scale : fma(sums[r][half], scale, load(to)));
      }
    }
  }
}

/// Asks for kLaneKeys rows: those that follow each other share lines.
RLX_INLINE void ask_for_rows(const uint8_t* row, int64_t row_bytes, int64_t bytes) {
  const bool together = row_bytes == bytes;
  const int64_t pieces = together ? 1 : kLaneKeys, piece = together ? bytes * kLaneKeys : bytes;
  for (int64_t i = 0; i < pieces; ++i, row += row_bytes) {
    for (int64_t line = 0; line < piece; line += 64) __builtin_prefetch(row + line);
  }
}

/// scores[r * kAttentionSplit + key] = q[r] . k[key]; rows of k row_bytes apart.
template <int R>
RLX_INLINE void score_codes(const uint8_t* k, int64_t row_bytes, int64_t dim, const float* q,
                            int64_t q_stride, int64_t keys, float* scores) {
  const int64_t bytes = dim / kQ8Elements * kQ8Bytes;
  for (int64_t key = 0; key < keys; key += kLaneKeys) {
    const uint8_t* at[kLaneKeys];
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLaneKeys; ++i) {  // behind the last key, it again
      at[i] = k + least(key + i, keys - 1) * row_bytes;
    }
    ask_for_rows(k + (key + kKeyBytesAhead / bytes) * row_bytes, row_bytes, bytes);
    score_lanes<R>(at, dim, q, q_stride, scores + key);
  }
}

/// out[r * out_stride + c] += sum over keys of weights[r * keys_most + key] * code c of the key, c < V vectors.
template <int R, int V, int64_t keys_most>
RLX_INLINE void add_codes(const uint8_t* codes, int64_t row_bytes, int64_t keys, const float* weights,
                          float* out, int64_t out_stride) {
  F32 sums[R][V];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < V; ++c) sums[r][c] = load(out + r * out_stride + c * kLanes);
  }
  for (int64_t j = 0; j < keys; ++j, codes += row_bytes) {
    __builtin_prefetch(codes + kValueRowsAhead * row_bytes);
    F32 x[V];
#pragma GCC unroll 4
    for (int c = 0; c < V; ++c) x[c] = q8_codes(codes + c * kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const F32 w = set1(weights[r * keys_most + j]);
#pragma GCC unroll 4
      for (int c = 0; c < V; ++c) sums[r][c] = fma(w, x[c], sums[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < V; ++c) store(out + r * out_stride + c * kLanes, sums[r][c]);
  }
}

/// out[r * out_stride + c] += sum over keys of weights[r * kAttentionSplit + key] * v[key][c]; up to 64 keys.
template <int R>
RLX_INLINE void add_scaled_codes(const uint8_t* v, int64_t row_bytes, int64_t dim, int64_t keys,
                                 const float* weights, float* out, int64_t out_stride) {
  constexpr int kVectors = R > 2 ? 2 : 4;
  constexpr int64_t kMost = 64;
  float scaled[R * kMost];
  for (int64_t d = 0; d < dim; d += kQ8Elements, v += kQ8Bytes) {
    for (int64_t j = 0; j < keys; j += kLanes) {
      const uint8_t* at[kLanes];
#pragma GCC unroll 8
      for (int i = 0; i < kLanes; ++i) at[i] = v + least(j + i, keys - 1) * row_bytes;
      const F32 scale = eight_scales(at, 0);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
        store(scaled + r * kMost + j, load(weights + r * kAttentionSplit + j) * scale);
    }
    for (int64_t c = 0; c < kQ8Elements; c += kVectors * kLanes) {
      add_codes<R, kVectors, kMost>(v + 2 + c, row_bytes, keys, scaled, out + d + c, out_stride);
    }
  }
}

#endif

}  // namespace rlx::cpu::RLX_ISA
