// Few queries by q8_0 keys and values where the machine has dot products of 8-bit integers. What meets the codes is cut into three
// bytes, 24 bits of the largest magnitude of a block (queries) or of a tile (weights), as many as f32 has: products and sums are exact,
// and a row has the same bits with any others.
//   keys    16 keys in the lanes: the 32 codes of each are turned into dwords of four, each of which meets the dword of four numbers
//           of a query, byte by byte. Codes are taken as unsigned, k + 128; 128 times the query's bytes is taken off at the start.
//   values  each weight by the scale of its key first; the codes of four keys are turned into dwords, which meet the weights of these
//           keys. Weights are not negative, so that their bytes are unsigned; a block with a scale that is negative or no number
//           goes through f32.
// With four heads on one and head_dim 64 a key and its value are 24 instructions of 64 products each and about 20 others, where f32
// needs 32 multiply-adds and 16 instructions to widen.
#pragma once

#include "rlx/backend/cpu/kernels/isa/attention_scores.h"

namespace rlx::cpu::RLX_ISA {

#if defined(__AVX512VNNI__)
inline constexpr bool kDotsCodes = true;
#else
inline constexpr bool kDotsCodes = false;
#endif

/// One block of a query: q = scale (65536 bytes[0] + 256 bytes[1] + bytes[2]).
struct QueryBlock {
  int8_t bytes[3][kQ8Elements];
  int32_t start[3];  // -128 times the sum of the bytes
  float scale;
};

#if defined(__AVX512VNNI__)

inline constexpr int64_t kCodeKeys = 16;    // that are scored together
inline constexpr int64_t kWeightKeys = 64;  // a tile of values

/// Rows of blocks that lie row_bytes apart; behind the last, where `whole` does not say that there are enough, it again.
template <bool whole>
struct CodeRows {
  const uint8_t* first;
  int64_t row_bytes, rows;

  RLX_INLINE const uint8_t* operator()(int64_t i) const {
    return first + (whole ? i : least(i, rows - 1)) * row_bytes;
  }
  /// Asks for the place of row i of the next split, which the same thread mostly goes on with: it lies in the second cache then. Closer by,
  /// or into the first cache, they wait for memory on a Zen 4.
  RLX_INLINE void ask_for_next(int64_t i) const {
    __builtin_prefetch(first + (i + kAttentionSplit) * row_bytes, 0, 2);
  }
};

/// body(rows) with CodeRows for `count` rows in steps of `step`.
template <int64_t step, class F>
RLX_INLINE void each_step(const uint8_t* first, int64_t row_bytes, int64_t count, F body) {
  int64_t i = 0;
  for (; i + step <= count; i += step, first += step * row_bytes)
    body(i, CodeRows<true>{first, row_bytes, step});
  if (i < count) body(i, CodeRows<false>{first, row_bytes, count - i});
}

/// A block with an infinity or a NaN gets the scale NaN.
inline void cut_query(const float* q, int64_t blocks, QueryBlock* out) {
  constexpr float kMost = 127 * 65536;
  for (int64_t b = 0; b < blocks; ++b, q += kQ8Elements, ++out) {
    const F32 x[2] = {load(q), load(q + kLanes)};
    const float top = reduce_max(max(max(abs(x[0]), abs(x[1])), set1(1e-30f)));
    const float bad = reduce_add((x[0] + x[1]) * 0.0f), inverse = kMost / top;
    I32 sums[3] = {};
    for (int half = 0; half < 2; ++half) {
      I32 rest = (I32)_mm512_cvtps_epi32((__m512)(x[half] * inverse));
      for (int i = 2; i >= 0; --i) {  // the byte nearest to what is left, from the last on
        const I32 byte = (rest << 24) >> 24;
        rest = (rest - byte) >> 8;
        sums[i] += byte;
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out->bytes[i] + half * kLanes),
                         _mm512_cvtepi32_epi8((__m512i)byte));
      }
    }
    for (int i = 0; i < 3; ++i) out->start[i] = -128 * _mm512_reduce_add_epi32((__m512i)sums[i]);
    out->scale = top / kMost + bad;
  }
}

/// The scales of 16 blocks, in f16.
template <class Rows>
RLX_INLINE __m256i sixteen_scales(Rows row) {
  typedef uint16_t Eight __attribute__((vector_size(16)));
  Eight half[2] = {};
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    uint16_t bits;
    std::memcpy(&bits, row(i), 2);
    half[i / 8][i % 8] = bits;
  }
  return _mm256_set_m128i((__m128i)half[1], (__m128i)half[0]);
}

/// out[i], lane j: codes 4 i .. 4 i + 4 of block j, plus 128, one a byte; i < 8.
template <class Rows>
RLX_INLINE void turn_codes(Rows row, __m512i (&out)[8]) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m512i x[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const auto part = [&](int key) __attribute__((always_inline)) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row(key) + 2 + 16 * half));
      };
      x[j] = _mm512_castsi128_si512(part(j));
      x[j] = _mm512_inserti32x4(x[j], part(j + 4), 1);
      x[j] = _mm512_inserti32x4(x[j], part(j + 8), 2);
      x[j] = _mm512_inserti32x4(x[j], part(j + 12), 3);
    }
    const __m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpackhi_epi32(x[0], x[1]),
                  c = _mm512_unpacklo_epi32(x[2], x[3]), d = _mm512_unpackhi_epi32(x[2], x[3]),
                  flip = _mm512_set1_epi8(-128);
    out[4 * half] = _mm512_xor_si512(_mm512_unpacklo_epi64(a, c), flip);
    out[4 * half + 1] = _mm512_xor_si512(_mm512_unpackhi_epi64(a, c), flip);
    out[4 * half + 2] = _mm512_xor_si512(_mm512_unpacklo_epi64(b, d), flip);
    out[4 * half + 3] = _mm512_xor_si512(_mm512_unpackhi_epi64(b, d), flip);
  }
}

RLX_INLINE __m512i set1_dword(const void* p) {
  int32_t x;
  std::memcpy(&x, p, sizeof x);
  return _mm512_set1_epi32(x);
}
/// 65536 a + 256 b + c of sums of at most 64 products of two bytes.
RLX_INLINE F32 joined(__m512i a, __m512i b, __m512i c) {
  const I32 low = ((I32)b << 8) + (I32)c;
  return fma(to_float((I32)a), set1(65536.0f), to_float(low));
}

/// scores[r * kAttentionSplit + i] for 16 keys; q[r * blocks + b] is block b of query r.
template <int R, class Rows>
RLX_INLINE void score_sixteen(Rows row, int64_t blocks, const QueryBlock* q, float* scores) {
  for (int64_t b = 0; b < blocks; ++b, row.first += kQ8Bytes) {
    __m512i codes[8], sums[R][3];
    turn_codes(row, codes);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) sums[r][i] = set1_dword(&q[r * blocks + b].start[i]);
    }
#pragma GCC unroll 8
    for (int d = 0; d < 8; ++d) {
      row.ask_for_next(2 * d);
      row.ask_for_next(2 * d + 1);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
        for (int i = 0; i < 3; ++i) {
          sums[r][i] =
              _mm512_dpbusd_epi32(sums[r][i], codes[d], set1_dword(q[r * blocks + b].bytes[i] + 4 * d));
        }
      }
    }
    const F32 scale = (F32)_mm512_cvtph_ps(sixteen_scales(row));
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      float* to = scores + r * kAttentionSplit;
      const F32 s = joined(sums[r][0], sums[r][1], sums[r][2]), factor = scale * q[r * blocks + b].scale;
      store(to, b == 0 ? s * factor : fma(s, factor, load(to)));
    }
  }
}

/// scores[r * kAttentionSplit + key] = q[r] . k[key]; rows of k row_bytes apart.
template <int R>
RLX_INLINE void score_codes(const uint8_t* k, int64_t row_bytes, int64_t blocks, const QueryBlock* q,
                            int64_t keys, float* scores) {
  each_step<kCodeKeys>(k, row_bytes, keys, [&](int64_t key, auto rows) __attribute__((always_inline)) {
    score_sixteen<R>(rows, blocks, q, scores + key);
  });
}

/// Weights of a tile by the scales of a block of their keys, as whole numbers of 24 bits: of four keys together first the lowest bytes,
/// then the middle ones and the highest, and four zeros.
struct WeightBytes {
  alignas(64) uint8_t bytes[kWeightKeys / 4][4][4];
  float scale;
};

/// Lane r of every quad: the largest lane of t[r], as unsigned whole numbers.
RLX_INLINE __m512i largest_of(const __m512i (&t)[4]) {
  const __m512i ab = _mm512_max_epu32(_mm512_unpacklo_epi32(t[0], t[1]), _mm512_unpackhi_epi32(t[0], t[1])),
                cd = _mm512_max_epu32(_mm512_unpacklo_epi32(t[2], t[3]), _mm512_unpackhi_epi32(t[2], t[3]));
  const __m512i quads = _mm512_max_epu32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m512i pairs = _mm512_max_epu32(quads, _mm512_shuffle_i32x4(quads, quads, 0xb1));
  return _mm512_max_epu32(pairs, _mm512_shuffle_i32x4(pairs, pairs, 0x4e));
}

/// w[r * kAttentionSplit + i] for up to `vectors` of keys, and the scales of the keys, none negative. Bits of numbers that are not negative
/// are ordered as they are, with NaN behind them: a row with a NaN has the scale NaN.
template <int R>
RLX_INLINE void cut_weights(const float* w, const F32* scales, int vectors, WeightBytes (&out)[R]) {
  constexpr float kMost = 16776960;  // 2^24 - 256: a rounding is no byte more
  F32 x[R][kWeightKeys / kLanes];
  __m512i top[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    top[r] = (__m512i)set1(1e-30f);
    for (int i = 0; r < R && i < vectors; ++i) {
      x[r][i] = load(w + r * kAttentionSplit + i * kLanes) * scales[i];
      top[r] = _mm512_max_epu32(top[r], (__m512i)x[r][i]);
    }
  }
  const F32 most = (F32)largest_of(top), inverse = kMost / most, scale = most * (1.0f / kMost);
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, -1, -1, -1, -1));
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    out[r].scale = scale[r];
    for (int i = 0; i < vectors; ++i) {
      const __m512i n = _mm512_cvtps_epi32((__m512)(x[r][i] * set1(inverse[r])));
      _mm512_store_si512(out[r].bytes[i * 4], _mm512_shuffle_epi8(n, order));
    }
  }
}

/// Codes 0 .. 4, 16 .. 20, 4 .. 8 and 20 .. 24 of four keys, or those 8 further on: dword by dword one code of each key.
template <int half, class Rows>
RLX_INLINE __m512i turn_four(Rows row) {
  __m256i x[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) x[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row(i)));
  const __m256i a = half == 0 ? _mm256_unpacklo_epi8(x[0], x[1]) : _mm256_unpackhi_epi8(x[0], x[1]),
                b = half == 0 ? _mm256_unpacklo_epi8(x[2], x[3]) : _mm256_unpackhi_epi8(x[2], x[3]);
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_unpacklo_epi16(a, b)), _mm256_unpackhi_epi16(a, b),
                            1);
}

/// sums[r]: over the keys, weights of row r times these codes; 16 codes at a time, for whose sums there are registers.
template <int R, int half>
RLX_INLINE void sum_codes(const uint8_t* codes, int64_t row_bytes, int64_t keys, const WeightBytes* w,
                          F32 (&sums)[R]) {
  __m512i s[R][3] = {};
  each_step<4>(codes, row_bytes, keys, [&](int64_t key, auto rows) __attribute__((always_inline)) {
    rows.ask_for_next(2 * half);
    rows.ask_for_next(2 * half + 1);
    const __m512i x = turn_four<half>(rows);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i)
        s[r][i] = _mm512_dpbusd_epi32(s[r][i], set1_dword(w[r].bytes[key / 4][i]), x);
    }
  });
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) sums[r] = joined(s[r][2], s[r][1], s[r][0]);
}

/// out[r * out_stride + c] += sum over keys of w[r] * code c of the key, c < 32.
template <int R>
RLX_INLINE void add_block(const uint8_t* codes, int64_t row_bytes, int64_t keys, const WeightBytes* w,
                          float* out, int64_t out_stride) {
  F32 low[R], high[R];
  sum_codes<R, 0>(codes, row_bytes, keys, w, low);
  sum_codes<R, 1>(codes, row_bytes, keys, w, high);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const F32 scale = set1(w[r].scale);
    const __m512 a = (__m512)low[r], b = (__m512)high[r];
    float* to = out + r * out_stride;
    store(to, fma((F32)_mm512_shuffle_f32x4(a, b, 0x88), scale, load(to)));
    store(to + kLanes, fma((F32)_mm512_shuffle_f32x4(a, b, 0xdd), scale, load(to + kLanes)));
  }
}

/// The same in f32, for scales that are negative or no numbers; codes lie 2 bytes behind the scale.
inline void add_block_plain(const uint8_t* block, int64_t row_bytes, int64_t keys, const float* weights,
                            float* out) {
  for (int64_t key = 0; key < keys; ++key, block += row_bytes) {
    const F32 w = set1(weights[key]), scale = q8_scale(block);
    store(out, fma(w, q8_codes(block + 2) * scale, load(out)));
    store(out + kLanes, fma(w, q8_codes(block + 2 + kLanes) * scale, load(out + kLanes)));
  }
}

/// out[r * out_stride + c] += sum over keys of weights[r * kAttentionSplit + key] * v[key][c]; up to kWeightKeys keys, weights behind the
/// last are zeros.
template <int R>
RLX_INLINE void add_codes(const uint8_t* v, int64_t row_bytes, int64_t blocks, int64_t keys,
                          const float* weights, float* out, int64_t out_stride) {
  const int vectors = int((keys + kLanes - 1) / kLanes);
  for (int64_t b = 0; b < blocks; ++b, v += kQ8Bytes, out += kQ8Elements) {
    F32 scales[kWeightKeys / kLanes];
    uint32_t bad = 0;
    each_step<kLanes>(v, row_bytes, keys, [&](int64_t key, auto rows) __attribute__((always_inline)) {
      const __m256i bits = sixteen_scales(rows);
      scales[key / kLanes] = (F32)_mm512_cvtph_ps(bits);
      bad |= _mm256_cmpge_epu16_mask(bits, _mm256_set1_epi16(0x7c00));  // infinite, NaN or negative
    });
    if (bad != 0) {
      for (int r = 0; r < R; ++r) {
        add_block_plain(v, row_bytes, keys, weights + r * kAttentionSplit, out + r * out_stride);
      }
      continue;
    }
    WeightBytes w[R];
    cut_weights(weights, scales, vectors, w);
    add_block<R>(v + 2, row_bytes, keys, w, out, out_stride);
  }
}

#endif

}  // namespace rlx::cpu::RLX_ISA
