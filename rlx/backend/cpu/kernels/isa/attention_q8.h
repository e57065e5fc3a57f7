// Scores of q8_0 keys when decoding, where the machine has dot products of 8-bit integers: queries are
// rounded to 8 bits a block (scale = largest magnitude / 127), the products of codes are exact.
//   lane quad r holds row r; 16 codes of a key go to all quads, four of them to each lane
// Codes of keys are taken as unsigned, k + 128; 128 times the query's codes is taken off at the start. The
// scales of four keys are fetched where they are used: a pass over them beforehand waits for memory alone.
#pragma once

#include "rlx/backend/cpu/kernels/isa/attention_scores.h"
#include "rlx/backend/cpu/kernels/isa/quads.h"

namespace rlx::cpu::RLX_ISA {

#if defined(__AVX512VNNI__)
inline constexpr bool kRoundsQueries = true;
#else
inline constexpr bool kRoundsQueries = false;
#endif

/// One block of up to four queries in 8 bits.
struct RoundedBlock {
  int8_t codes[2][4][16];  // [half of the block][row]
  int32_t start[4][4];     // -128 times the codes that each lane will meet
  float scale[4][4];       // of the row, in each lane of its quad
};

#if defined(__AVX512VNNI__)
/// A block with an infinity or a NaN gets the scale NaN.
inline void round_queries(const float* q, int64_t q_stride, int64_t rows, int64_t blocks, RoundedBlock* out) {
  for (int64_t b = 0; b < blocks; ++b, ++out) {
    *out = {};
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = q + r * q_stride + b * kQ8Elements;
      const F32 x[2] = {load(from), load(from + kLanes)};
      const float top = reduce_max(max(abs(x[0]), abs(x[1]))), bad = reduce_add((x[0] + x[1]) * 0.0f);
      const float inverse = top > 0 ? 127.0f / top : 0.0f;
      for (int half = 0; half < 2; ++half) {
        const I32 codes = round_to_int(x[half] * set1(inverse));
        for (int i = 0; i < 16; ++i) {
          out->codes[half][r][i] = int8_t(codes[i]);
          out->start[r][i / 4] -= 128 * int32_t(out->codes[half][r][i]);
        }
      }
      for (float& scale : out->scale[r]) scale = top / 127.0f + bad;
    }
  }
}

RLX_INLINE I32 dot_quads(I32 sum, const uint8_t* codes, const int8_t (&q)[4][16]) {
  const __m512i k = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  return (I32)_mm512_dpbusd_epi32((__m512i)sum, _mm512_xor_si512(k, _mm512_set1_epi8(-128)),
                                  load_bytes<__m512i>(q));
}

/// The scales of the blocks at four places, to every quad.
RLX_INLINE F32 four_scales(const uint8_t* const (&block)[4]) {
  uint64_t all = 0;
#pragma GCC unroll 4
  for (int m = 0; m < 4; ++m) {
    uint16_t bits;
    std::memcpy(&bits, block[m], 2);
    all |= uint64_t(bits) << 16 * m;
  }
  return (F32)_mm512_broadcast_f32x4(_mm_cvtph_ps(_mm_cvtsi64_si128(int64_t(all))));
}

/// scores[r * score_stride + key] = q[r] . k[key] for up to four rows, k rows of `blocks` blocks row_bytes
/// apart.
inline void score_codes(const uint8_t* k, int64_t row_bytes, int64_t blocks, const RoundedBlock* q,
                        int64_t rows, int64_t keys, float* scores, int64_t score_stride) {
  for (int64_t key = 0; key < keys; key += 4) {
    const uint8_t* at[4];
    for (int m = 0; m < 4; ++m) at[m] = k + least(key + m, keys - 1) * row_bytes;
    F32 sum = {};
    for (int64_t b = 0; b < blocks; ++b) {
      const F32 scale = four_scales(at) * load_bytes<F32>(q[b].scale);
      const I32 start = load_bytes<I32>(q[b].start);
      I32 s[4];
#pragma GCC unroll 4
      for (int m = 0; m < 4; ++m) {
        s[m] = dot_quads(dot_quads(start, at[m] + 2, q[b].codes[0]), at[m] + 18, q[b].codes[1]);
        at[m] += kQ8Bytes;
      }
      sum = fma(to_float(sum_quads(s[0], s[1], s[2], s[3])), scale, sum);
    }
    for (int64_t r = 0; r < rows; ++r) store_quad(scores + r * score_stride + key, sum, int(r));
  }
}
#endif

}  // namespace rlx::cpu::RLX_ISA
