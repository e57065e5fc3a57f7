#include "rlx/quant/ternary.h"

#include "rlx/quant/blocks.h"

namespace rlx::quant {
namespace {

// Digit k of the base-3 fraction b/256.
int ternary_digit(uint8_t b, int k) {
  constexpr uint8_t kPower[5] = {1, 3, 9, 27, 81};
  return uint8_t(b * kPower[k]) * 3 >> 8;
}

}  // namespace

void decode_tq1_0(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockTQ1_0>(in, out, count, 256, [](const BlockTQ1_0& b, float* y) {
    const float d = b.d.value();
    for (int k = 0; k < 5; ++k) {
      for (int l = 0; l < 32; ++l) y[32 * k + l] = float(ternary_digit(b.fives[l], k) - 1) * d;
      for (int l = 0; l < 16; ++l) y[160 + 16 * k + l] = float(ternary_digit(b.fives[32 + l], k) - 1) * d;
    }
    for (int k = 0; k < 4; ++k) {
      for (int l = 0; l < 4; ++l) y[240 + 4 * k + l] = float(ternary_digit(b.fours[l], k) - 1) * d;
    }
  });
}

void decode_tq2_0(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockTQ2_0>(in, out, count, 256, [](const BlockTQ2_0& b, float* y) {
    const float d = b.d.value();
    for (int e = 0; e < 256; ++e) {
      const int code = b.codes[32 * (e / 128) + e % 32] >> (2 * (e % 128 / 32)) & 3;
      y[e] = float(code - 1) * d;
    }
  });
}

}  // namespace rlx::quant
