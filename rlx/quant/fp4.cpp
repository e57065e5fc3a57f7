#include "rlx/quant/fp4.h"

#include <cmath>

#include "rlx/quant/blocks.h"

namespace rlx::quant {
namespace {

constexpr int kMx = 32, kNv = 64, kNvGroup = 16;

// 2^(e-128), exact down to the f32 subnormals. Half the block scale: E2M1 values are multiples of 1/2, and
// this way no product overflows before its value does.
float half_mx_scale(uint8_t e) { return std::ldexp(1.0f, int(e) - 128); }

}  // namespace

float nvfp4_scale(uint8_t code) {
  code &= 0x7f;
  return code == 0x7f ? 0.0f : f8e4m3_to_f32(code);
}

void decode_mxfp4(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockMXFP4>(in, out, count, kMx, [](const BlockMXFP4& b, float* y) {
    const float half = half_mx_scale(b.exponent);
    for (int j = 0; j < 16; ++j) {
      y[j] = half * (2 * kE2m1Table[b.codes[j] & 15]);
      y[j + 16] = half * (2 * kE2m1Table[b.codes[j] >> 4]);
    }
  });
}

void decode_nvfp4(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockNVFP4>(in, out, count, kNv, [](const BlockNVFP4& b, float* y) {
    for (int g = 0; g < kNv / kNvGroup; ++g, y += kNvGroup) {
      const float scale = nvfp4_scale(b.scales[g]);
      for (int j = 0; j < 8; ++j) {
        y[j] = scale * kE2m1Table[b.codes[8 * g + j] & 15];
        y[j + 8] = scale * kE2m1Table[b.codes[8 * g + j] >> 4];
      }
    }
  });
}

}  // namespace rlx::quant
