#include "rlx/quant/linear32.h"

#include <cmath>

#include "rlx/quant/blocks.h"
#include "rlx/quant/fit.h"
#include "rlx/quant/weighted.h"

namespace rlx::quant {
namespace {

constexpr int kBlock = 32;

uint32_t read_bits(const uint8_t (&b)[4]) {
  return uint32_t(b[0]) | uint32_t(b[1]) << 8 | uint32_t(b[2]) << 16 | uint32_t(b[3]) << 24;
}

int nibble(const uint8_t* codes, int j) { return j < 16 ? codes[j] & 15 : codes[j - 16] >> 4; }

void pack_nibbles(const int (&q)[kBlock], uint8_t (&codes)[16]) {
  for (int j = 0; j < 16; ++j) codes[j] = uint8_t((q[j] & 15) | (q[j + 16] & 15) << 4);
}

void pack_fifth(const int (&q)[kBlock], uint8_t (&fifth)[4]) {
  for (int j = 0; j < 4; ++j) fifth[j] = 0;
  for (int j = 0; j < kBlock; ++j) fifth[j / 8] |= uint8_t((q[j] >> 4 & 1) << (j % 8));
}

// Codes are taken against the scale as stored, not as searched: f16 rounding moves it.
Half encode_symmetric(const float* x, const float* w, int half_range, int (&q)[kBlock]) {
  const Half d = Half::saturated(fit_symmetric(x, kBlock, -half_range, half_range - 1, w));
  const float inverse = inverse_or_zero(d.value());
  for (int j = 0; j < kBlock; ++j) {
    q[j] = int(nearest_code(x[j] * inverse, float(-half_range), float(half_range - 1))) + half_range;
  }
  return d;
}

struct HalfAffine {
  Half d, m;
};
HalfAffine encode_affine(const float* x, const float* w, int hi, int (&q)[kBlock]) {
  const Affine fit = fit_affine(x, kBlock, hi, false, w);
  const HalfAffine out{Half::saturated(fit.d), Half::saturated(fit.m)};
  const float inverse = inverse_or_zero(out.d.value()), m = out.m.value();
  for (int j = 0; j < kBlock; ++j) q[j] = int(nearest_code((x[j] - m) * inverse, 0, float(hi)));
  return out;
}

// Eight bits leave nothing to search for: the largest magnitude becomes 127.
Half encode_bytes(const float* x, int8_t (&codes)[kBlock]) {
  float largest = 0;
  for (int j = 0; j < kBlock; ++j) largest = std::max(largest, std::abs(x[j]));
  const Half d = Half::saturated(largest / 127);
  const float inverse = inverse_or_zero(d.value());
  for (int j = 0; j < kBlock; ++j) codes[j] = int8_t(nearest_code(x[j] * inverse, -127, 127));
  return d;
}

}  // namespace

void encode_q4_0(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockQ4_0>(in, weights, out, count, kBlock,
                                  [](const float* x, const float* w, BlockQ4_0& b) {
                                    int q[kBlock];
                                    b.d = encode_symmetric(x, w, 8, q);
                                    pack_nibbles(q, b.codes);
                                  });
}

void encode_q4_1(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockQ4_1>(in, weights, out, count, kBlock,
                                  [](const float* x, const float* w, BlockQ4_1& b) {
                                    int q[kBlock];
                                    const HalfAffine fit = encode_affine(x, w, 15, q);
                                    b.d = fit.d, b.m = fit.m;
                                    pack_nibbles(q, b.codes);
                                  });
}

void encode_q5_0(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockQ5_0>(in, weights, out, count, kBlock,
                                  [](const float* x, const float* w, BlockQ5_0& b) {
                                    int q[kBlock];
                                    b.d = encode_symmetric(x, w, 16, q);
                                    pack_nibbles(q, b.codes);
                                    pack_fifth(q, b.fifth);
                                  });
}

void encode_q5_1(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockQ5_1>(in, weights, out, count, kBlock,
                                  [](const float* x, const float* w, BlockQ5_1& b) {
                                    int q[kBlock];
                                    const HalfAffine fit = encode_affine(x, w, 31, q);
                                    b.d = fit.d, b.m = fit.m;
                                    pack_nibbles(q, b.codes);
                                    pack_fifth(q, b.fifth);
                                  });
}

void encode_q8_0(const float* in, std::byte* out, int64_t count) {
  encode_each<BlockQ8_0>(in, out, count, kBlock,
                         [](const float* x, BlockQ8_0& b) { b.d = encode_bytes(x, b.codes); });
}

void encode_q8_1(const float* in, std::byte* out, int64_t count) {
  encode_each<BlockQ8_1>(in, out, count, kBlock, [](const float* x, BlockQ8_1& b) {
    b.d = encode_bytes(x, b.codes);
    int sum = 0;
    for (const int8_t q : b.codes) sum += q;
    b.s = Half::saturated(b.d.value() * float(sum));
  });
}

void decode_q4_0(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ4_0>(in, out, count, kBlock, [](const BlockQ4_0& b, float* y) {
    const float d = b.d.value();
    for (int j = 0; j < kBlock; ++j) y[j] = float(nibble(b.codes, j) - 8) * d;
  });
}

void decode_q4_1(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ4_1>(in, out, count, kBlock, [](const BlockQ4_1& b, float* y) {
    const float d = b.d.value(), m = b.m.value();
    for (int j = 0; j < kBlock; ++j) y[j] = float(nibble(b.codes, j)) * d + m;
  });
}

void decode_q5_0(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ5_0>(in, out, count, kBlock, [](const BlockQ5_0& b, float* y) {
    const float d = b.d.value();
    const uint32_t fifth = read_bits(b.fifth);
    for (int j = 0; j < kBlock; ++j) y[j] = float((nibble(b.codes, j) | int(fifth >> j & 1) << 4) - 16) * d;
  });
}

void decode_q5_1(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ5_1>(in, out, count, kBlock, [](const BlockQ5_1& b, float* y) {
    const float d = b.d.value(), m = b.m.value();
    const uint32_t fifth = read_bits(b.fifth);
    for (int j = 0; j < kBlock; ++j) y[j] = float(nibble(b.codes, j) | int(fifth >> j & 1) << 4) * d + m;
  });
}

void decode_q8_0(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ8_0>(in, out, count, kBlock, [](const BlockQ8_0& b, float* y) {
    const float d = b.d.value();
    for (int j = 0; j < kBlock; ++j) y[j] = float(b.codes[j]) * d;
  });
}

void decode_q8_1(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ8_1>(in, out, count, kBlock, [](const BlockQ8_1& b, float* y) {
    const float d = b.d.value();
    for (int j = 0; j < kBlock; ++j) y[j] = float(b.codes[j]) * d;
  });
}

}  // namespace rlx::quant
