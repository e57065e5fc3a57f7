// Encoders of the super-block formats.
//
// Each sub-block is fitted alone (fit.h), its scale and minimum are rounded to the few bits the format has,
// then, because rounding moves the optimum, the neighbouring integer scales are tried against the values and
// the super-scales are refitted once by least squares over the whole super-block with all integers fixed. Weights `w`, where there are
// some, count in every sum of squares.
#include <cmath>
#include <cstring>

#include "rlx/quant/blocks.h"
#include "rlx/quant/fit.h"
#include "rlx/quant/k_quants.h"
#include "rlx/quant/weighted.h"

namespace rlx::quant {
namespace {

constexpr int kMaxSubBlocks = 16;

// Weights from element i on.
const float* from(const float* w, int i) { return w != nullptr ? w + i : nullptr; }
float weight_of(const float* w, int i) { return w != nullptr ? w[i] : 1.0f; }

// Formats with scale and minimum: value = d*scale[j]*q - dmin*min[j]

struct AffinePlan {
  int sub_blocks, length, code_max, scale_max;
};

struct AffineCodes {
  Half d, dmin;
  int scale[kMaxSubBlocks], min[kMaxSubBlocks];
  uint8_t q[kSuperBlock];
};

void choose_affine_integers(const float* x, const float* w, const AffinePlan& plan, const Affine* fits,
                            AffineCodes& out) {
  const float d = out.d.value(), dmin = out.dmin.value();
  const float top = float(plan.scale_max);
  for (int j = 0; j < plan.sub_blocks; ++j) {
    const float* values = x + j * plan.length;
    const int scale0 = int(nearest_code(fits[j].d * inverse_or_zero(d), 0, top));
    const int min0 = int(nearest_code(-fits[j].m * inverse_or_zero(dmin), 0, top));
    float least = -1;
    for (int scale = std::max(0, scale0 - 1); scale <= std::min(plan.scale_max, scale0 + 1); ++scale) {
      for (int min = std::max(0, min0 - 1); min <= std::min(plan.scale_max, min0 + 1); ++min) {
        const float error = affine_error(values, plan.length, d * float(scale), -dmin * float(min), 0,
                                         plan.code_max, from(w, j * plan.length));
        if (least < 0 || error < least) least = error, out.scale[j] = scale, out.min[j] = min;
      }
    }
  }
}

void choose_affine_codes(const float* x, const AffinePlan& plan, AffineCodes& out) {
  const float d = out.d.value(), dmin = out.dmin.value();
  for (int e = 0; e < kSuperBlock; ++e) {
    const int j = e / plan.length;
    const float m = -dmin * float(out.min[j]), inverse = inverse_or_zero(d * float(out.scale[j]));
    out.q[e] = uint8_t(nearest_code((x[e] - m) * inverse, 0, float(plan.code_max)));
  }
}

// With all integers fixed, x ~ d*a - dmin*b for a = scale*q, b = min: two unknowns.
Affine refit_affine(const float* x, const float* w, const AffinePlan& plan, const AffineCodes& codes) {
  double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
  for (int e = 0; e < kSuperBlock; ++e) {
    const int j = e / plan.length;
    const double a = codes.scale[j] * codes.q[e], b = codes.min[j], f = double(weight_of(w, e));
    aa += f * a * a, ab += f * a * b, bb += f * b * b, xa += f * x[e] * a, xb += f * x[e] * b;
  }
  const double determinant = aa * bb - ab * ab;
  if (!(determinant > 1e-9 * aa * bb)) return {codes.d.value(), codes.dmin.value()};
  return {float((xa * bb - xb * ab) / determinant), float((xa * ab - xb * aa) / determinant)};
}

float total_error(const float* x, const float* w, const AffinePlan& plan, const AffineCodes& codes) {
  const float d = codes.d.value(), dmin = codes.dmin.value();
  float error = 0;
  for (int e = 0; e < kSuperBlock; ++e) {
    const int j = e / plan.length;
    const float r = x[e] - (d * float(codes.scale[j]) * float(codes.q[e]) - dmin * float(codes.min[j]));
    error += weight_of(w, e) * (r * r);
  }
  return error;
}

AffineCodes encode_affine(const float* x, const float* w, const AffinePlan& plan) {
  Affine fits[kMaxSubBlocks];
  float largest_scale = 0, largest_min = 0;
  for (int j = 0; j < plan.sub_blocks; ++j) {
    fits[j] = fit_affine(x + j * plan.length, plan.length, plan.code_max, true, from(w, j * plan.length));
    largest_scale = std::max(largest_scale, fits[j].d);
    largest_min = std::max(largest_min, -fits[j].m);
  }
  AffineCodes best{};
  best.d = Half::saturated(largest_scale / float(plan.scale_max));
  best.dmin = Half::saturated(largest_min / float(plan.scale_max));
  choose_affine_integers(x, w, plan, fits, best);
  choose_affine_codes(x, plan, best);
  AffineCodes next = best;
  const Affine refit = refit_affine(x, w, plan, best);
  if (refit.d > 0 && refit.m >= 0) {
    next.d = Half::saturated(refit.d), next.dmin = Half::saturated(refit.m);
    choose_affine_integers(x, w, plan, fits, next);
    choose_affine_codes(x, plan, next);
    if (total_error(x, w, plan, next) < total_error(x, w, plan, best)) best = next;
  }
  return best;
}

// Formats with a signed scale: value = d*scale[j]*q, q in [-half, half), scale in [scale_min, -scale_min)

struct SymmetricCodes {
  Half d;
  int scale[16];
  int8_t q[kSuperBlock];
};

void choose_symmetric(const float* x, const float* w, int half, int scale_min, const float* fits,
                      SymmetricCodes& out) {
  constexpr int kLength = 16;
  const float d = out.d.value(), inverse_d = inverse_or_zero(d);
  const int scale_max = -scale_min - 1;
  for (int j = 0; j < 16; ++j) {
    const float* values = x + j * kLength;
    const int middle = int(nearest_code(fits[j] * inverse_d, float(scale_min), float(scale_max)));
    float least = -1;
    for (int scale = std::max(scale_min, middle - 1); scale <= std::min(scale_max, middle + 1); ++scale) {
      const float error =
          affine_error(values, kLength, d * float(scale), 0, -half, half - 1, from(w, j * kLength));
      if (least < 0 || error < least) least = error, out.scale[j] = scale;
    }
    const float inverse = inverse_or_zero(d * float(out.scale[j]));
    for (int l = 0; l < kLength; ++l) {
      out.q[j * kLength + l] = int8_t(nearest_code(values[l] * inverse, float(-half), float(half - 1)));
    }
  }
}

// Squared error with the given d, and the least-squares d for these integers.
struct Refit {
  double error, d;
};
Refit refit_symmetric(const float* x, const float* w, const SymmetricCodes& codes) {
  double error = 0, xa = 0, aa = 0;
  for (int e = 0; e < kSuperBlock; ++e) {
    const double a = codes.scale[e / 16] * codes.q[e], r = x[e] - double(codes.d.value()) * a;
    const double f = double(weight_of(w, e));
    error += f * r * r, xa += f * x[e] * a, aa += f * a * a;
  }
  return {error, aa > 0 ? xa / aa : 0};
}

SymmetricCodes encode_symmetric(const float* x, const float* w, int half, int scale_min) {
  float fits[16], extreme = 0;
  for (int j = 0; j < 16; ++j) {
    fits[j] = fit_symmetric(x + 16 * j, 16, -half, half - 1, from(w, 16 * j));
    if (std::abs(fits[j]) > std::abs(extreme)) extreme = fits[j];
  }
  SymmetricCodes best{};
  best.d = Half::saturated(extreme / float(scale_min));  // the largest scale becomes the code scale_min
  choose_symmetric(x, w, half, scale_min, fits, best);
  const Refit first = refit_symmetric(x, w, best);
  SymmetricCodes next = best;
  next.d = Half::saturated(float(first.d));
  choose_symmetric(x, w, half, scale_min, fits, next);
  return refit_symmetric(x, w, next).error < first.error ? next : best;
}

// Two low bits of each code, as q2_k and q3_k lay them out.
template <class Code>
void pack_two_bits(const Code& code, uint8_t (&out)[64]) {
  for (int i = 0; i < 64; ++i) {
    const int first = 128 * (i / 32) + i % 32;
    out[i] = 0;
    for (int s = 0; s < 4; ++s) out[i] |= uint8_t((code(first + 32 * s) & 3) << (2 * s));
  }
}

void pack_nibbles(const uint8_t (&q)[kSuperBlock], uint8_t (&out)[128]) {
  for (int i = 0; i < 128; ++i) {
    const int low = 64 * (i / 32) + i % 32;
    out[i] = uint8_t((q[low] & 15) | (q[low + 32] & 15) << 4);
  }
}

ScalesAndMins scales_and_mins(const AffineCodes& codes) {
  ScalesAndMins out;
  for (int j = 0; j < 8; ++j) out.scale[j] = uint8_t(codes.scale[j]), out.min[j] = uint8_t(codes.min[j]);
  return out;
}

}  // namespace

void pack_scales_q3_k(const uint8_t (&scales)[16], uint8_t (&packed)[12]) {
  std::memset(packed, 0, sizeof packed);
  for (int s = 0; s < 16; ++s) {
    packed[s % 8] |= uint8_t((scales[s] & 15) << (4 * (s / 8)));
    packed[8 + s % 4] |= uint8_t((scales[s] >> 4) << (2 * (s / 4)));
  }
}

void pack_scales_q4_k(const ScalesAndMins& s, uint8_t (&packed)[12]) {
  for (int j = 0; j < 4; ++j) {
    packed[j] = uint8_t(s.scale[j] | (s.scale[j + 4] >> 4) << 6);
    packed[j + 4] = uint8_t(s.min[j] | (s.min[j + 4] >> 4) << 6);
    packed[j + 8] = uint8_t((s.scale[j + 4] & 15) | (s.min[j + 4] & 15) << 4);
  }
}

void encode_q2_k(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockQ2_K>(in, weights, out, count, kSuperBlock,
                                  [](const float* x, const float* w, BlockQ2_K& b) {
                                    const AffineCodes codes = encode_affine(x, w, {16, 16, 3, 15});
                                    b.d = codes.d, b.dmin = codes.dmin;
                                    for (int j = 0; j < 16; ++j)
                                      b.scales[j] = uint8_t(codes.scale[j] | codes.min[j] << 4);
                                    pack_two_bits([&](int e) { return codes.q[e]; }, b.codes);
                                  });
}

void encode_q3_k(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockQ3_K>(in, weights, out, count, kSuperBlock,
                                  [](const float* x, const float* w, BlockQ3_K& b) {
                                    const SymmetricCodes codes = encode_symmetric(x, w, 4, -32);
                                    b.d = codes.d;
                                    uint8_t scales[16];
                                    for (int j = 0; j < 16; ++j) scales[j] = uint8_t(codes.scale[j] + 32);
                                    pack_scales_q3_k(scales, b.scales);
                                    pack_two_bits([&](int e) { return codes.q[e] + 4; }, b.codes);
                                    std::memset(b.high, 0, sizeof b.high);
                                    for (int e = 0; e < kSuperBlock; ++e)
                                      b.high[e % 32] |= uint8_t((codes.q[e] >= 0) << (e / 32));
                                  });
}

void encode_q4_k(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockQ4_K>(in, weights, out, count, kSuperBlock,
                                  [](const float* x, const float* w, BlockQ4_K& b) {
                                    const AffineCodes codes = encode_affine(x, w, {8, 32, 15, 63});
                                    b.d = codes.d, b.dmin = codes.dmin;
                                    pack_scales_q4_k(scales_and_mins(codes), b.scales);
                                    pack_nibbles(codes.q, b.codes);
                                  });
}

void encode_q5_k(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockQ5_K>(in, weights, out, count, kSuperBlock,
                                  [](const float* x, const float* w, BlockQ5_K& b) {
                                    const AffineCodes codes = encode_affine(x, w, {8, 32, 31, 63});
                                    b.d = codes.d, b.dmin = codes.dmin;
                                    pack_scales_q4_k(scales_and_mins(codes), b.scales);
                                    pack_nibbles(codes.q, b.codes);
                                    std::memset(b.fifth, 0, sizeof b.fifth);
                                    for (int e = 0; e < kSuperBlock; ++e)
                                      b.fifth[e % 32] |= uint8_t((codes.q[e] >> 4) << (e / 32));
                                  });
}

void encode_q6_k(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockQ6_K>(
      in, weights, out, count, kSuperBlock, [](const float* x, const float* w, BlockQ6_K& b) {
        const SymmetricCodes codes = encode_symmetric(x, w, 32, -128);
        b.d = codes.d;
        for (int j = 0; j < 16; ++j) b.scales[j] = int8_t(codes.scale[j]);
        std::memset(b.low, 0, sizeof b.low);
        std::memset(b.high, 0, sizeof b.high);
        for (int e = 0; e < kSuperBlock; ++e) {
          const int half = e / 128, quarter = e % 128 / 32, l = e % 32, q = codes.q[e] + 32;
          b.low[64 * half + 32 * (quarter % 2) + l] |= uint8_t((q & 15) << (4 * (quarter / 2)));
          b.high[32 * half + l] |= uint8_t((q >> 4) << (2 * quarter));
        }
      });
}

void encode_q8_k(const float* in, std::byte* out, int64_t count) {
  for (int64_t i = 0; i < count; i += kSuperBlock, in += kSuperBlock, out += sizeof(BlockQ8_K)) {
    BlockQ8_K b{};
    float largest = 0;
    for (int e = 0; e < kSuperBlock; ++e) largest = std::max(largest, std::abs(in[e]));
    b.d = largest / 127;
    const float inverse = inverse_or_zero(b.d);
    for (int e = 0; e < kSuperBlock; ++e) {
      b.codes[e] = int8_t(nearest_code(in[e] * inverse, -127, 127));
      b.sums[e / 16] = int16_t(b.sums[e / 16] + b.codes[e]);
    }
    std::memcpy(out, &b, sizeof b);
  }
}

}  // namespace rlx::quant
