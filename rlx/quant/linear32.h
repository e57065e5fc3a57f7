// Blocks of 32 elements with codes on a line: value = d*q, d*(q - offset) or d*q + m.
//
//          bytes                                             value
//   q4_0   d | 16 nibbles bytes                              (nibble - 8) * d
//   q4_1   d | m | 16 nibble bytes                           nibble * d + m
//   q5_0   d | 32 fifth bits | 16 nibble bytes               (nibble + 16*bit - 16) * d
//   q5_1   d | m | 32 fifth bits | 16 nibble bytes           (nibble + 16*bit) * d + m
//   q8_0   d | 32 i8                                         q * d
//   q8_1   d | s | 32 i8, s = d * sum of q                   q * d   (an activation format, never in files)
//
// Nibble order: element j < 16 is the low nibble of byte j, element j >= 16 the high nibble of byte j - 16.
// Fifth bit of element j is bit j of the little-endian u32.
#pragma once

#include <cstddef>

#include "rlx/quant/half.h"

namespace rlx::quant {

struct BlockQ4_0 {
  Half d;
  uint8_t codes[16];
};
struct BlockQ4_1 {
  Half d, m;
  uint8_t codes[16];
};
struct BlockQ5_0 {
  Half d;
  uint8_t fifth[4];
  uint8_t codes[16];
};
struct BlockQ5_1 {
  Half d, m;
  uint8_t fifth[4];
  uint8_t codes[16];
};
struct BlockQ8_0 {
  Half d;
  int8_t codes[32];
};
struct BlockQ8_1 {
  Half d, s;
  int8_t codes[32];
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 &&
              sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockQ8_1) == 36);

void decode_q4_0(const std::byte* in, float* out, int64_t count);
void decode_q4_1(const std::byte* in, float* out, int64_t count);
void decode_q5_0(const std::byte* in, float* out, int64_t count);
void decode_q5_1(const std::byte* in, float* out, int64_t count);
void decode_q8_0(const std::byte* in, float* out, int64_t count);
void decode_q8_1(const std::byte* in, float* out, int64_t count);

void encode_q4_0(const float* in, std::byte* out, int64_t count);
void encode_q4_1(const float* in, std::byte* out, int64_t count);
void encode_q5_0(const float* in, std::byte* out, int64_t count);
void encode_q5_1(const float* in, std::byte* out, int64_t count);
void encode_q8_0(const float* in, std::byte* out, int64_t count);
void encode_q8_1(const float* in, std::byte* out, int64_t count);

}  // namespace rlx::quant
