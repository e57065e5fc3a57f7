// Four-bit floats (E2M1) under a shared scale.
//
//           bytes                                                        value
//   mxfp4   exponent e | 16 nibble bytes (order as q4_0), 32 elements    2^(e-127) * e2m1
//   nvfp4   4 scales | 4 groups of 8 nibble bytes, 64 elements           ue4m3(scale) * e2m1
//
// nvfp4 (GGUF form): scale g covers elements 16g..16g+15; in its 8 bytes the low nibbles are the first 8
// elements, the high nibbles the last 8. A per-tensor factor, if the file has one, is a tensor of its own.
#pragma once

#include <cstddef>

#include "rlx/quant/half.h"

namespace rlx::quant {

/// E2M1: sign, two exponent bits, one mantissa bit. Code 8 is -0.
inline constexpr float kE2m1Table[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                         -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/// Block scale of NVFP4: E4M3 (bias 7); the NaN code means 0 on purpose, so that a bad scale cannot spread.
float nvfp4_scale(uint8_t code);
/// The E2M1 code nearest to `value`; a tie goes to the even code.
uint8_t e2m1_nearest(float value);

/// The scale code, 0..0x7e, that stores these values with the least squared error.
uint8_t nvfp4_best_scale(const float* x, int n);

struct BlockMXFP4 {
  uint8_t exponent;
  uint8_t codes[16];
};
struct BlockNVFP4 {
  uint8_t scales[4];
  uint8_t codes[32];
};

static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockNVFP4) == 36);

void decode_mxfp4(const std::byte* in, float* out, int64_t count);
void decode_nvfp4(const std::byte* in, float* out, int64_t count);
void encode_mxfp4(const float* in, std::byte* out, int64_t count);
void encode_nvfp4(const float* in, std::byte* out, int64_t count);

}  // namespace rlx::quant
