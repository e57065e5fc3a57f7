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
//
// Codebook formats (rlx/quant/grid.h) keep their indices; a strip is
//
//   low bytes of its 4 or 8 indices, each [L] | signs, a plane of 1 bit | bits 8 .. of the indices, bytes [L]
//
// with the byte of bits above: iq2 and iq1 bits 8-9 of index i at bit 2i, iq3_s bit 8 of index i at bit i. iq1
// has no signs, but a byte with bit 10 of index i at bit i and the sign of the shift of octet i at bit 4 + i:
// iq1_m has it behind the others, iq1_s in the head, with s in bits 4-6 and the sign of the one shift in bit 7.
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
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  int8,
  int8_16,
  int8_zero,
  int8_zero_16,
  int4_zero,
  int4_zero_16,
  fp8_e4m3,
  fp8_e5m2,
};
inline constexpr int kQuantKinds = 31;

/// What a code q stands for. Products use whole numbers t(q) >= 0 and subtract `offset`.
enum class CodeForm : uint8_t {
  linear,  // q - offset
  iq4,     // table of iq4_nl, offset 128
  e2m1,    // twice the number, offset 12
  e4m3,    // the number; f32 arithmetic only
  e5m2,
  iq1_s,  // numbers of rlx/quant/grid.h: iq1 with offset 9, the others with 128
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
};

/// How a scale (and a least value or zero point) is made of the head. Run: the elements under one scale.
enum class ScaleForm : uint8_t {
  none,
  half,                // d
  half_least,          // d, least
  half_bytes_least,    // d * u8, -dmin * u8: a byte of each per run
  half_nibbles_least,  // d * low nibble, -dmin * high nibble: one byte per run
  half_signed,         // d * i8 per run
  half_odd,            // d * unit * (2 s + 1), s a nibble per run: one byte per strip, the first run low
  e8m0,                // half of a power of two per run
  e4m3,                // half of an E4M3 number per run
  f32,                 // one float for the block, or one for each run of 16
  f32_zero,            // as f32, zero points behind; the value is (q - zero) * scale
};

struct QuantLayout {
  int elements;  // per block; 0: as the matrix says, a multiple of 32
  int bits;      // per code; 0: indices of a codebook
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
      case ScaleForm::half_odd:
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
      case ScaleForm::half_odd:
        return elements / 32;
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
  constexpr int strip_bytes() const {
    return is_grid() ? indices() + (has_signs() ? 4 : 0) + tops() : 4 * bits;
  }
  constexpr bool has_least() const {
    return scale == ScaleForm::half_least || scale == ScaleForm::half_bytes_least ||
           scale == ScaleForm::half_nibbles_least || scale == ScaleForm::f32_zero;
  }

  // Codebook formats: how many indices and bytes of bits above the eighth a strip has.
  constexpr bool is_grid() const { return code >= CodeForm::iq1_s; }
  constexpr bool is_iq1() const { return code == CodeForm::iq1_s || code == CodeForm::iq1_m; }
  constexpr int indices() const { return code == CodeForm::iq3_xxs || code == CodeForm::iq3_s ? 8 : 4; }
  constexpr int tops() const {
    return code == CodeForm::iq1_m ? 2 : code == CodeForm::iq2_xxs || code == CodeForm::iq3_xxs ? 0 : 1;
  }
  constexpr bool has_signs() const { return is_grid() && !is_iq1(); }
  /// Of half_odd: the value of a code less offset is d * unit * (2 s + 1) times it.
  constexpr float unit() const {
    return code == CodeForm::iq3_xxs ? 0.25f : code == CodeForm::iq3_s ? 1.0f : 0.125f;
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
      {256, 0, 32, 9, C::iq1_s, S::half_odd},             // iq1_s
      {256, 0, 16, 9, C::iq1_m, S::half_odd},             // iq1_m
      {256, 0, 32, 128, C::iq2_xxs, S::half_odd},         // iq2_xxs
      {256, 0, 16, 128, C::iq2_xs, S::half_odd},          // iq2_xs
      {256, 0, 16, 128, C::iq2_s, S::half_odd},           // iq2_s
      {256, 0, 32, 128, C::iq3_xxs, S::half_odd},         // iq3_xxs
      {256, 0, 32, 128, C::iq3_s, S::half_odd},           // iq3_s
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
