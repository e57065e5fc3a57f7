#include "rlx/quant/ternary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rlx/quant/blocks.h"
#include "rlx/quant/fit.h"
#include "rlx/quant/weighted.h"

namespace rlx::quant {
namespace {

// The best scale is exact here. If the k largest magnitudes are kept, d is their weighted mean and the squared error
// removed is (sum of w |x|)^2 / (sum of w); take the best k.
float fit_ternary(const float* x, const float* w) {
  std::pair<float, float> elements[256];  // magnitude, weight
  for (int i = 0; i < 256; ++i) elements[i] = {std::abs(x[i]), w != nullptr ? w[i] : 1.0f};
  std::sort(elements, elements + 256, [](const auto& a, const auto& b) { return a.first > b.first; });
  double sum = 0, weight = 0, best_gain = 0, best = 0;
  for (const auto& [magnitude, own] : elements) {
    sum += double(own) * double(magnitude), weight += double(own);
    const double gain = weight > 0 ? sum * sum / weight : 0;
    if (gain > best_gain) best_gain = gain, best = sum / weight;
  }
  return float(best);
}

// Codes 0, 1, 2 for -d, 0, d.
Half encode_ternary(const float* x, const float* w, uint8_t (&codes)[256]) {
  const Half d = Half::saturated(fit_ternary(x, w));
  const float inverse = inverse_or_zero(d.value());
  for (int i = 0; i < 256; ++i) codes[i] = uint8_t(nearest_code(x[i] * inverse, -1, 1) + 1);
  return d;
}

}  // namespace

int ternary_digit(uint8_t b, int k) {
  constexpr uint8_t kPower[5] = {1, 3, 9, 27, 81};
  return uint8_t(b * kPower[k]) * 3 >> 8;
}

uint8_t pack_ternary_digits(const uint8_t* codes, int stride, int digits) {
  int t = 0;
  for (int k = 0; k < 5; ++k) t = t * 3 + (k < digits ? codes[k * stride] : 0);
  // The fraction t/3^5 of 256, rounded up so that truncation finds every digit again.
  return uint8_t((t * 256 + 242) / 243);
}

void encode_tq1_0(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockTQ1_0>(in, weights, out, count, 256,
                                   [](const float* x, const float* w, BlockTQ1_0& b) {
                                     uint8_t codes[256];
                                     b.d = encode_ternary(x, w, codes);
                                     for (int l = 0; l < 32; ++l)
                                       b.fives[l] = pack_ternary_digits(codes + l, 32, 5);
                                     for (int l = 0; l < 16; ++l)
                                       b.fives[32 + l] = pack_ternary_digits(codes + 160 + l, 16, 5);
                                     for (int l = 0; l < 4; ++l)
                                       b.fours[l] = pack_ternary_digits(codes + 240 + l, 4, 4);
                                   });
}

void encode_tq2_0(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockTQ2_0>(in, weights, out, count, 256,
                                   [](const float* x, const float* w, BlockTQ2_0& b) {
                                     uint8_t codes[256];
                                     b.d = encode_ternary(x, w, codes);
                                     for (int i = 0; i < 64; ++i) {
                                       const uint8_t* q = codes + 128 * (i / 32) + i % 32;
                                       b.codes[i] = uint8_t(q[0] | q[32] << 2 | q[64] << 4 | q[96] << 6);
                                     }
                                   });
}

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
