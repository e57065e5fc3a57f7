// Conversions between f32 and the narrow float formats, exact, rounding half to even.
//
//   f16     1 sign, 5 exponent (bias 15), 10 mantissa
//   bf16    1, 8 (bias 127), 7: the upper half of an f32
//   f8e4m3  1, 4 (bias 7), 3: OCP "FN", no infinities, 0x7f and 0xff are NaN, largest 448
//   f8e5m2  1, 5 (bias 15), 2: OCP, IEEE-like with infinities, largest 57344
#pragma once

#include <bit>
#include <cstdint>

namespace rlx {

constexpr float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(uint32_t(h) << 16); }

constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return uint16_t((u >> 16) | 0x40);  // keep NaN quiet
  return uint16_t((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

constexpr float f16_to_f32(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in f32
    const float magnitude = float(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

namespace detail {

// Rounds |value| to a format with `mantissa_bits` and minimum normal exponent `min_exponent` (unbiased),
// returning exponent and mantissa joined as an integer: codes of one sign are ordered like their values, so a
// carry out of the mantissa moves to the next exponent by itself. Overflow is left to the caller.
constexpr uint32_t round_to_code(float magnitude, int mantissa_bits, int min_exponent) {
  const uint32_t u = std::bit_cast<uint32_t>(magnitude);
  const int exponent = int(u >> 23) - 127;
  const uint32_t significand = (exponent == -127 ? 0u : 0x800000u) | (u & 0x7fffffu);
  int shift = 23 - mantissa_bits;
  if (exponent < min_exponent) shift += min_exponent - exponent;
  if (shift > 25) return 0;
  const uint32_t half = 1u << (shift - 1);
  uint32_t code = (significand + half - 1 + ((significand >> shift) & 1)) >> shift;
  if (exponent >= min_exponent) code += uint32_t(exponent - min_exponent) << mantissa_bits;
  return code;
}

}  // namespace detail

constexpr uint16_t f32_to_f16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint16_t sign = uint16_t((u >> 16) & 0x8000u);
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  const uint32_t code =
      magnitude >= 0x7f800000u ? 0x7c00u : detail::round_to_code(std::bit_cast<float>(magnitude), 10, -14);
  return uint16_t(sign | (code > 0x7c00u ? 0x7c00u : code));
}

constexpr float f8e4m3_to_f32(uint8_t b) {
  const int exponent = (b >> 3) & 15, mantissa = b & 7;
  float magnitude = 0;
  if (exponent == 15 && mantissa == 7) {
    magnitude = std::bit_cast<float>(0x7fc00000u);
  } else if (exponent == 0) {
    magnitude = float(mantissa) * 0x1p-9f;
  } else {
    magnitude = std::bit_cast<float>(uint32_t(exponent + 120) << 23 | uint32_t(mantissa) << 20);
  }
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | uint32_t(b & 0x80) << 24);
}

/// Values beyond the largest finite one become NaN, or the largest one when `saturate`.
constexpr uint8_t f32_to_f8e4m3(float value, bool saturate = false) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint8_t sign = uint8_t((u >> 24) & 0x80u);
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return uint8_t(sign | 0x7f);
  const uint32_t code =
      magnitude == 0x7f800000u ? 0x7fu : detail::round_to_code(std::bit_cast<float>(magnitude), 3, -6);
  if (code < 0x7f) return uint8_t(sign | code);
  return uint8_t(sign | (saturate ? 0x7e : 0x7f));
}

constexpr float f8e5m2_to_f32(uint8_t b) { return f16_to_f32(uint16_t(b << 8)); }

constexpr uint8_t f32_to_f8e5m2(float value, bool saturate = false) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint8_t sign = uint8_t((u >> 24) & 0x80u);
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return uint8_t(sign | 0x7e);
  const uint32_t code =
      magnitude == 0x7f800000u ? 0x7cu : detail::round_to_code(std::bit_cast<float>(magnitude), 2, -14);
  if (code < 0x7c) return uint8_t(sign | code);
  return uint8_t(sign | (saturate ? 0x7b : 0x7c));
}

}  // namespace rlx
