// Three or four rows that share keys and values, for levels with 16 registers: narrow formats are widened in registers once for all
// rows, and never stored. Sums go in the order of attention_decode.cpp, so a row has the bits it has alone.
//   keys    two keys by R rows of sums along head_dim; keys j and j + 4 together, so that the sums of eight keys lie in order
//           when quads have been turned
//   values  R rows by two vectors of sums while the keys of a tile go by
// Both ask for rows in advance: two keys at a time, and one line of many values, are nothing a processor foresees.
// q8_0 has a form of its own, attention_q8_lanes.h.
#pragma once

#include "rlx/backend/cpu/kernels/isa/attention_q8_lanes.h"
#include "rlx/backend/cpu/kernels/isa/attention_scores.h"
#include "rlx/backend/cpu/kernels/isa/quads.h"

namespace rlx::cpu::RLX_ISA {

#if defined(RLX_AVX2)

inline constexpr int64_t kWideStep = 4 * kLanes;
inline constexpr int64_t kKeysAhead = 16;    // that are asked for before they are needed
inline constexpr int64_t kValuesAhead = 64;  // a tile: the same vectors of the next

/// Four vectors from a multiple of kWideStep on.
template <class T>
RLX_INLINE void load_four(const T* p, F32 (&x)[4]) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) x[i] = load(p + i * kLanes);
}

template <class T>
RLX_INLINE const char* address(const T* p) {
  return reinterpret_cast<const char*>(p);
}

/// Quad 0 of the result: key `first` by the rows; quad 1: key `second`.
template <int R, class P>
RLX_INLINE F32 score_two(P first, P second, int64_t dim, const float* q, int64_t q_stride) {
  F32 a[4] = {}, b[4] = {};
  for (int64_t d = 0; d < dim; d += kWideStep) {
    F32 x[4], y[4];
    load_four(first + d, x);
    load_four(second + d, y);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const F32 v = load(q + r * q_stride + d + i * kLanes);
        a[r] = fma(x[i], v, a[r]);
        b[r] = fma(y[i], v, b[r]);
      }
    }
  }
  const F32 t[kQuads] = {sum_quads(a[0], a[1], a[2], a[3]), sum_quads(b[0], b[1], b[2], b[3])};
  return sum_across(t);
}

/// Within quads: row r of the result has lane r of each.
RLX_INLINE void turn_quads(const F32 (&v)[4], F32 (&out)[4]) {
  const __m256 a = (__m256)v[0], b = (__m256)v[1], c = (__m256)v[2], d = (__m256)v[3];
  const __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d), AB = _mm256_unpackhi_ps(a, b),
               CD = _mm256_unpackhi_ps(c, d);
  out[0] = (F32)_mm256_shuffle_ps(ab, cd, 0x44);
  out[1] = (F32)_mm256_shuffle_ps(ab, cd, 0xee);
  out[2] = (F32)_mm256_shuffle_ps(AB, CD, 0x44);
  out[3] = (F32)_mm256_shuffle_ps(AB, CD, 0xee);
}

template <int R, class P>
RLX_INLINE void score_eight(P k, int64_t stride, int64_t dim, const float* q, int64_t q_stride, int64_t keys,
                            float* scores) {
  const int64_t row_bytes = address(k + stride) - address(k), bytes = address(k + dim) - address(k);
  for (int64_t key = 0; key < keys; key += 8) {
    F32 v[4], rows[4];
    for (int64_t i = key + kKeysAhead; i < key + kKeysAhead + 8; ++i) {
      for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(address(k) + i * row_bytes + line);
    }
#pragma GCC unroll 1
    for (int i = 0; i < 4; ++i) {  // behind the last key, it again
      v[i] = score_two<R>(k + least(key + i, keys - 1) * stride, k + least(key + 4 + i, keys - 1) * stride,
                          dim, q, q_stride);
    }
    turn_quads(v, rows);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) store(scores + r * kAttentionSplit + key, rows[r]);
  }
}

/// Two vectors of each row in turn.
template <class P>
struct TwoOfRows {
  P at;
  int64_t stride;

  RLX_INLINE TwoOfRows(P first, int64_t stride) : at(first), stride(stride) {}
  RLX_INLINE Two next() {
    __builtin_prefetch(address(at + kValuesAhead * stride));
    const Two x = load_two(at);
    at = at + stride;
    return x;
  }
};

/// out[r * out_stride + c] += sum over keys of weights[r * kAttentionSplit + key] * v[key][c], c < two vectors.
template <int R, class P>
RLX_INLINE void add_two_vectors(P v, int64_t stride, int64_t keys, const float* weights, float* out,
                                int64_t out_stride) {
  F32 low[R], high[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    low[r] = load(out + r * out_stride);
    high[r] = load(out + r * out_stride + kLanes);
  }
  TwoOfRows<P> rows(v, stride);
  for (int64_t j = 0; j < keys; ++j) {
    const Two x = rows.next();
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const F32 w = set1(weights[r * kAttentionSplit + j]);
      low[r] = fma(w, x.low, low[r]);
      high[r] = fma(w, x.high, high[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    store(out + r * out_stride, low[r]);
    store(out + r * out_stride + kLanes, high[r]);
  }
}

/// body.operator()<R>(r) for rows r .. r + R in fours and a three; the first row that is left.
template <class F>
RLX_INLINE int64_t by_fours(int64_t rows, F body) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) body.template operator()<4>(r);
  if (rows - r == 3) body.template operator()<3>(r), r += 3;
  return r;
}

/// Scores of a tile of keys for as many rows as this form takes: scores[r * kAttentionSplit + key]. The first row that is left.
template <class P>
RLX_INLINE int64_t score_many(P k, int64_t stride, int64_t dim, const float* q, int64_t q_stride,
                              int64_t rows, int64_t keys, float* scores) {
  if (dim % kWideStep != 0) return 0;
  return by_fours(rows, [&]<int R>(int64_t r) __attribute__((always_inline)) {
    score_eight<R>(k, stride, dim, q + r * q_stride, q_stride, keys, scores + r * kAttentionSplit);
  });
}

/// The same for values: out[r * out_stride + c] += ...
template <class P>
RLX_INLINE int64_t add_many_values(P v, int64_t stride, int64_t dim, const float* weights, int64_t rows,
                                   int64_t keys, float* out, int64_t out_stride) {
  if (dim % kWideStep != 0) return 0;
  return by_fours(rows, [&]<int R>(int64_t r) __attribute__((always_inline)) {
    for (int64_t d = 0; d < dim; d += 2 * kLanes) {
      add_two_vectors<R>(v + d, stride, keys, weights + r * kAttentionSplit, out + r * out_stride + d,
                         out_stride);
    }
  });
}

inline int64_t score_many(Q8 k, int64_t stride, int64_t dim, const float* q, int64_t q_stride, int64_t rows,
                          int64_t keys, float* scores) {
  each_four(rows, [&]<int R>(int64_t r) __attribute__((always_inline)) {
    score_codes<R>(q8_block(k), stride / kQ8Elements * kQ8Bytes, dim, q + r * q_stride, q_stride, keys,
                   scores + r * kAttentionSplit);
  });
  return rows;
}
inline int64_t add_many_values(Q8 v, int64_t stride, int64_t dim, const float* weights, int64_t rows,
                               int64_t keys, float* out, int64_t out_stride) {
  each_four(rows, [&]<int R>(int64_t r) __attribute__((always_inline)) {
    add_scaled_codes<R>(q8_block(v), stride / kQ8Elements * kQ8Bytes, dim, keys,
                        weights + r * kAttentionSplit, out + r * out_stride, out_stride);
  });
  return rows;
}

#else

template <class P>
RLX_INLINE int64_t score_many(P, int64_t, int64_t, const float*, int64_t, int64_t, int64_t, float*) {
  return 0;
}
template <class P>
RLX_INLINE int64_t add_many_values(P, int64_t, int64_t, const float*, int64_t, int64_t, float*, int64_t) {
  return 0;
}

#endif

}  // namespace rlx::cpu::RLX_ISA
