// Weights in {-d, 0, d}, 256 to a block.
//
//           bytes                                  value
//   tq1_0   48 bytes of five digits | 4 of four | d   d * (digit - 1), 1.69 bits a weight
//   tq2_0   64 bytes of four 2-bit codes | d          d * (code - 1), 2.06 bits a weight
//
// tq1_0: a byte b holds base-3 digits as a fraction of 256: digit k = ((b * 3^k mod 256) * 3) >> 8.
//   bytes 0-31: digit k of byte l is element 32k + l; bytes 32-47: element 160 + 16k + (l - 32);
//   the last four: digit k (k < 4) of byte l is element 240 + 4k + l.
// tq2_0: each half of 128 elements has 32 bytes; element 32s + l of the half is bits 2s..2s+1 of byte l.
#pragma once

#include <cstddef>

#include "rlx/quant/half.h"

namespace rlx::quant {

struct BlockTQ1_0 {
  uint8_t fives[48];
  uint8_t fours[4];
  Half d;
};
struct BlockTQ2_0 {
  uint8_t codes[64];
  Half d;
};

static_assert(sizeof(BlockTQ1_0) == 54 && sizeof(BlockTQ2_0) == 66);

/// Digit k of the base-3 fraction b / 256: 0, 1 or 2.
int ternary_digit(uint8_t b, int k);
/// Digits codes[0], codes[stride], ... with the first most significant, at most five, as one byte.
uint8_t pack_ternary_digits(const uint8_t* codes, int stride, int digits);

void decode_tq1_0(const std::byte* in, float* out, int64_t count);
void decode_tq2_0(const std::byte* in, float* out, int64_t count);
void encode_tq1_0(const float* in, std::byte* out, int64_t count);
void encode_tq2_0(const float* in, std::byte* out, int64_t count);

}  // namespace rlx::quant
