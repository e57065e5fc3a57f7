// Super-blocks of 256 elements whose sub-blocks have small integer scales under one or two f16.
//
//          bytes                                       sub-blocks    value
//   q2_k   16 (scale | min<<4) | 64 codes | d | dmin   16 of 16      d*scale*q - dmin*min
//   q3_k   32 high bits | 64 codes | 12 scales | d     16 of 16      d*(scale - 32)*(q - 4*[bit clear])
//   q4_k   d | dmin | 12 scales and mins | 128 nibbles 8 of 32       d*scale*q - dmin*min
//   q5_k   d | dmin | 12 as q4_k | 32 fifth bits | 128 8 of 32       d*scale*(nibble + 16*bit) - dmin*min
//   q6_k   128 low | 64 high | 16 i8 scales | d        16 of 16      d*scale*(q - 32)
//   q8_k   f32 d | 256 i8 | 16 i16 sums of 16          1 of 256      d*q
//
// Two-bit planes (q2_k, q3_k): each half of 128 elements has 32 bytes; element 32*s + l of the half is bits
// 2s..2s+1 of byte l. Mask of q3_k: element 32*b + l has bit b of byte l.
// Nibbles of q4_k and q5_k: group t of 32 bytes holds sub-block 2t low and 2t+1 high; fifth bit of element l
// of sub-block j is bit j of byte l.
// q6_k: half h has low bytes 64h.. and high bytes 32h..; for l < 32 the elements l, 32+l, 64+l, 96+l take
// low(ql[l]), low(ql[32+l]), high(ql[l]), high(ql[32+l]) plus 16 * bits 0-1, 2-3, 4-5, 6-7 of qh[l].
// Scales of q3_k and q4_k are packed in 6 bits each: see unpack_scales_q3_k and unpack_scales_q4_k.
#pragma once

#include <array>
#include <cstddef>

#include "rlx/quant/half.h"

namespace rlx::quant {

inline constexpr int kSuperBlock = 256;

struct BlockQ2_K {
  uint8_t scales[16];
  uint8_t codes[64];
  Half d, dmin;
};
struct BlockQ3_K {
  uint8_t high[32];
  uint8_t codes[64];
  uint8_t scales[12];
  Half d;
};
struct BlockQ4_K {
  Half d, dmin;
  uint8_t scales[12];
  uint8_t codes[128];
};
struct BlockQ5_K {
  Half d, dmin;
  uint8_t scales[12];
  uint8_t fifth[32];
  uint8_t codes[128];
};
struct BlockQ6_K {
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  Half d;
};
/// Read and written with memcpy: d and sums are little-endian and may lie unaligned.
struct BlockQ8_K {
  float d;
  int8_t codes[256];
  int16_t sums[16];
};

static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 &&
              sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210 && sizeof(BlockQ8_K) == 292);

/// The sixteen scales, 0..63; the value uses scale - 32.
std::array<uint8_t, 16> unpack_scales_q3_k(const uint8_t (&packed)[12]);
void pack_scales_q3_k(const uint8_t (&scales)[16], uint8_t (&packed)[12]);

struct ScalesAndMins {
  uint8_t scale[8], min[8];  // 0..63
};
/// Shared by q4_k and q5_k.
ScalesAndMins unpack_scales_q4_k(const uint8_t (&packed)[12]);
void pack_scales_q4_k(const ScalesAndMins&, uint8_t (&packed)[12]);

void decode_q2_k(const std::byte* in, float* out, int64_t count);
void decode_q3_k(const std::byte* in, float* out, int64_t count);
void decode_q4_k(const std::byte* in, float* out, int64_t count);
void decode_q5_k(const std::byte* in, float* out, int64_t count);
void decode_q6_k(const std::byte* in, float* out, int64_t count);
void decode_q8_k(const std::byte* in, float* out, int64_t count);

void encode_q2_k(const float* in, std::byte* out, int64_t count);
void encode_q3_k(const float* in, std::byte* out, int64_t count);
void encode_q4_k(const float* in, std::byte* out, int64_t count);
void encode_q5_k(const float* in, std::byte* out, int64_t count);
void encode_q6_k(const float* in, std::byte* out, int64_t count);
void encode_q8_k(const float* in, std::byte* out, int64_t count);

}  // namespace rlx::quant
