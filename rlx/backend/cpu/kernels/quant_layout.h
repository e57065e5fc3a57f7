// The block formats of quantised products, one row each, and how their packed groups lie in memory.
//
// A row of w is cut into blocks, a block into strips of 32 elements. L rows together (L = lanes of a vector)
// form a group; a block of a group is
//
//   head    halves [..][L] f16 | bytes [..][L] | floats [..][L]      the scales, see ScaleForm
//   strips  `bits` words each, a word being [L][4 bytes]
//
// so that a vector load brings the same word of every row, and a group is read from one end to the other.
// The codes of a strip are eight words of bytes, word v holding elements 4v .. 4v + 3, cut into planes:
//
//   8 bits  the eight words
//   4 bits  words 0-3: code word v < 4 in the low nibbles of word v, code word 4 + v in the high ones
//   2 bits  2 words: code word v in bits 2 (v / 2) .. of word v % 2
//   1 bit   1 word: code word v in bit v
//
// Five bits are a plane of 4 and one of 1 above it, six are 4 + 2, three are 2 + 1.
#pragma once

#include <cstdint>

namespace rlx::cpu {

enum class QuantKind : uint8_t {
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  nvfp4,
  tq1_0,
  tq2_0,
  int8,
  int8_16,
  int8_zero,
  int8_zero_16,
  int4_zero,
  int4_zero_16,
  fp8_e4m3,
  fp8_e5m2,
};
inline constexpr int kQuantKinds = 24;

/// What a code q stands for. Products use whole numbers t(q) >= 0 and subtract `offset`.
enum class CodeForm : uint8_t {
  linear,  // q - offset
  iq4,     // table of iq4_nl, offset 128
  e2m1,    // twice the number, offset 12
  e4m3,    // the number; f32 arithmetic only
  e5m2,
};

/// How a scale (and a least value or zero point) is made of the head. Run: the elements under one scale.
enum class ScaleForm : uint8_t {
  none,
  half,                // d
  half_least,          // d, least
  half_bytes_least,    // d * u8, -dmin * u8: a byte of each per run
  half_nibbles_least,  // d * low nibble, -dmin * high nibble: one byte per run
  half_signed,         // d * i8 per run
  e8m0,                // half of a power of two per run
  e4m3,                // half of an E4M3 number per run
  f32,                 // one float for the block, or one for each run of 16
  f32_zero,            // as f32, zero points behind; the value is (q - zero) * scale
};

struct QuantLayout {
  int elements;  // per block; 0: as the matrix says, a multiple of 32
  int bits;      // per code
  int run;       // 16 or 32
  int offset;
  CodeForm code;
  ScaleForm scale;

  constexpr int runs() const { return elements / run; }
  constexpr int runs_per_strip() const { return 32 / run; }
  constexpr int halves() const {
    switch (scale) {
      case ScaleForm::half:
      case ScaleForm::half_signed:
        return 1;
      case ScaleForm::half_least:
      case ScaleForm::half_bytes_least:
      case ScaleForm::half_nibbles_least:
        return 2;
      default:
        return 0;
    }
  }
  constexpr int bytes() const {
    switch (scale) {
      case ScaleForm::half_bytes_least:
        return 2 * runs();
      case ScaleForm::half_nibbles_least:
      case ScaleForm::half_signed:
      case ScaleForm::e8m0:
      case ScaleForm::e4m3:
        return runs();
      default:
        return 0;
    }
  }
  constexpr int floats() const {
    return scale == ScaleForm::f32        ? runs_per_strip()
           : scale == ScaleForm::f32_zero ? 2 * runs_per_strip()
                                          : 0;
  }
  constexpr int head_bytes() const { return 2 * halves() + bytes() + 4 * floats(); }
  constexpr int strip_bytes() const { return 4 * bits; }
  constexpr bool has_least() const {
    return scale == ScaleForm::half_least || scale == ScaleForm::half_bytes_least ||
           scale == ScaleForm::half_nibbles_least || scale == ScaleForm::f32_zero;
  }
  /// Whether codes are whole numbers, so that there is an integer product.
  constexpr bool is_integer() const { return code != CodeForm::e4m3 && code != CodeForm::e5m2; }
};

// Always inlined: a shared copy of one level could run at another.
[[gnu::always_inline]] constexpr QuantLayout quant_layout(QuantKind kind) {
  using C = CodeForm;
  using S = ScaleForm;
  constexpr QuantLayout kLayouts[kQuantKinds] = {
      {32, 4, 32, 8, C::linear, S::half},                 // q4_0
      {32, 4, 32, 0, C::linear, S::half_least},           // q4_1
      {32, 5, 32, 16, C::linear, S::half},                // q5_0
      {32, 5, 32, 0, C::linear, S::half_least},           // q5_1
      {32, 8, 32, 128, C::linear, S::half},               // q8_0
      {256, 2, 16, 0, C::linear, S::half_nibbles_least},  // q2_k
      {256, 3, 16, 4, C::linear, S::half_signed},         // q3_k
      {256, 4, 32, 0, C::linear, S::half_bytes_least},    // q4_k
      {256, 5, 32, 0, C::linear, S::half_bytes_least},    // q5_k
      {256, 6, 16, 32, C::linear, S::half_signed},        // q6_k
      {32, 4, 32, 128, C::iq4, S::half},                  // iq4_nl
      {256, 4, 32, 128, C::iq4, S::half_signed},          // iq4_xs
      {32, 4, 32, 12, C::e2m1, S::e8m0},                  // mxfp4
      {64, 4, 16, 12, C::e2m1, S::e4m3},                  // nvfp4
      {256, 2, 32, 1, C::linear, S::half},                // tq1_0: stored as tq2_0
      {256, 2, 32, 1, C::linear, S::half},                // tq2_0
      {0, 8, 32, 128, C::linear, S::f32},                 // int8
      {32, 8, 16, 128, C::linear, S::f32},                // int8_16
      {0, 8, 32, 128, C::linear, S::f32_zero},            // int8_zero
      {32, 8, 16, 128, C::linear, S::f32_zero},           // int8_zero_16
      {0, 4, 32, 0, C::linear, S::f32_zero},              // int4_zero
      {32, 4, 16, 0, C::linear, S::f32_zero},             // int4_zero_16
      {32, 8, 32, 0, C::e4m3, S::none},                   // fp8_e4m3
      {32, 8, 32, 0, C::e5m2, S::none},                   // fp8_e5m2
  };
  return kLayouts[int(kind)];
}

}  // namespace rlx::cpu
