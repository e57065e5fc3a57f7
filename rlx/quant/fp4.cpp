#include "rlx/quant/fp4.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/quant/blocks.h"
#include "rlx/quant/weighted.h"

namespace rlx::quant {
namespace {

constexpr int kMx = 32, kNv = 64, kNvGroup = 16;

// 2^(e-128), exact down to the f32 subnormals. Half the block scale: E2M1 values are multiples of 1/2, and
// this way no product overflows before its value does.
float half_mx_scale(uint8_t e) { return std::ldexp(1.0f, int(e) - 128); }

float largest_magnitude(const float* x, int n) {
  float largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

// kE2m1Table[e2m1_nearest(v)] but for the sign of zero, as sums of steps, which compilers make vectors of.
float on_grid(float value) {
  const float v = std::abs(value);
  const float half = (v > 0.25f ? 0.5f : 0.0f) + (v >= 0.75f ? 0.5f : 0.0f) + (v > 1.25f ? 0.5f : 0.0f) +
                     (v >= 1.75f ? 0.5f : 0.0f);
  const float steps = (v > 2.5f ? 1.0f : 0.0f) + (v >= 3.5f ? 1.0f : 0.0f) + (v > 5.0f ? 2.0f : 0.0f);
  return std::copysign(half + steps, value);
}

// Squared error of x on the E2M1 grid with this scale (given as its half, see half_mx_scale). The terms of a
// piece have no order, so that they are made by vectors; their sum has.
float grid_error(const float* x, const float* w, int n, float half) {
  constexpr int kPiece = 16;
  float error = 0;
  for (int at = 0; at < n; at += kPiece) {
    float terms[kPiece];
    const int count = std::min(n - at, kPiece);
    const auto put = [&](int i) {
      const float e = x[at + i] - half * (2 * on_grid(x[at + i] / half * 0.5f));
      terms[i] = e * e;
    };
    if (count == kPiece) {
      for (int i = 0; i < kPiece; ++i) put(i);
    } else {
      for (int i = 0; i < count; ++i) put(i);
    }
    for (int i = 0; i < count && w != nullptr; ++i) terms[i] *= w[at + i];
    for (int i = 0; i < count; ++i) error += terms[i];
  }
  return error;
}

}  // namespace

uint8_t e2m1_nearest(float value) {
  const float v = std::abs(value);
  // Midpoints of the grid; a tie goes to the code with an even mantissa, as IEEE rounding would.
  const int code =
      (v > 0.25f) + (v >= 0.75f) + (v > 1.25f) + (v >= 1.75f) + (v > 2.5f) + (v >= 3.5f) + (v > 5.0f);
  return uint8_t(code | (value < 0 && code != 0 ? 8 : 0));
}

void encode_mxfp4(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockMXFP4>(
      in, weights, out, count, kMx, [](const float* x, const float* w, BlockMXFP4& b) {
        // The exponent that puts the largest value in the top binade of the grid (4 to 8, clipped at 6), and the
        // next one, which clips nothing but is coarser.
        const float largest = largest_magnitude(x, kMx);
        int best = 0;
        if (largest > 0) {
          const int top = std::ilogb(largest) - 2 + 127;
          float least = std::numeric_limits<float>::infinity();
          for (int e = std::clamp(top - 1, 0, 254); e <= std::clamp(top + 1, 0, 254); ++e) {
            const float error = grid_error(x, w, kMx, half_mx_scale(uint8_t(e)));
            if (error < least) least = error, best = e;
          }
        }
        b.exponent = uint8_t(best);
        const float half = half_mx_scale(b.exponent);
        for (int j = 0; j < 16; ++j) {
          b.codes[j] = uint8_t(e2m1_nearest(x[j] / half * 0.5f) | e2m1_nearest(x[j + 16] / half * 0.5f) << 4);
        }
      });
}

namespace {

uint8_t weighted_scale(const float* x, const float* w, int n) {
  const float largest = largest_magnitude(x, n);
  if (largest == 0) return 0;
  // From a little below "largest = 6" (clips it) to above "largest = 4": eight codes to an octave.
  const int top = f32_to_f8e4m3(largest / 6, true);
  float least = std::numeric_limits<float>::infinity();
  int best = 1;
  for (int code = std::max(1, top - 2); code <= std::min(0x7e, top + 6); ++code) {
    const float error = grid_error(x, w, n, nvfp4_scale(uint8_t(code)) * 0.5f);
    if (error < least) least = error, best = code;
  }
  return uint8_t(best);
}

}  // namespace

uint8_t nvfp4_best_scale(const float* x, int n) { return weighted_scale(x, nullptr, n); }

void encode_nvfp4(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockNVFP4>(
      in, weights, out, count, kNv, [](const float* x, const float* w, BlockNVFP4& b) {
        for (int g = 0; g < kNv / kNvGroup; ++g, x += kNvGroup) {
          b.scales[g] = weighted_scale(x, w != nullptr ? w + g * kNvGroup : nullptr, kNvGroup);
          const float scale = nvfp4_scale(b.scales[g]);
          const float inverse = scale > 0 ? 1 / scale : 0.0f;
          for (int j = 0; j < 8; ++j) {
            b.codes[8 * g + j] =
                uint8_t(e2m1_nearest(x[j] * inverse) | e2m1_nearest(x[j + 8] * inverse) << 4);
          }
        }
      });
}

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
