// Codes and scales of one strip of a group as vectors, one output row per lane, for every layout.
#pragma once

#include "rlx/backend/cpu/kernels/isa/quant_product_bytes.h"
#include "rlx/backend/cpu/kernels/isa/quant_product_grid.h"
#include "rlx/backend/cpu/kernels/quant/quant_product.h"
#include "rlx/backend/cpu/simd/narrow.h"

namespace rlx::cpu::RLX_ISA {

void quant_multiply_exact(const QuantRows&, const QuantTile&, float* y, int64_t y_stride);
void quant_decode_groups(const QuantView&, int64_t begin, int64_t end, float* out, int64_t stride);

/// body.template operator()<layout>() for the layout of `kind`.
template <int i = 0, class Body>
RLX_INLINE void with_layout(QuantKind kind, Body body) {
  if constexpr (i < kQuantKinds) {
    if (int(kind) == i) return body.template operator()<quant_layout(QuantKind(i))>();
    with_layout<i + 1>(kind, body);
  }
}

// ---- codes ----

/// Bits `mask` from bit `from` on of each byte, moved to bit `to`. Shifts of words carry bits into the next
/// byte; the mask takes them away.
template <int from, int to, uint32_t mask>
RLX_INLINE U32 field(U32 plane) {
  constexpr uint32_t all = mask * 0x01010101u << to;
  if constexpr (from > to) return (plane >> (from - to)) & all;
  if constexpr (from < to) return (plane << (to - from)) & all;
  return plane & all;
}

/// table[byte] for each byte of v, bytes below 16.
RLX_INLINE U32 look_up(const uint8_t* table, U32 v) {
#if defined(RLX_AVX512)
  const __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return (U32)_mm512_shuffle_epi8(t, (__m512i)v);
#elif defined(RLX_AVX2)
  const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return (U32)_mm256_shuffle_epi8(t, (__m256i)v);
#elif defined(RLX_NEON)
  return (U32)vqtbl1q_u8(vld1q_u8(table), (uint8x16_t)v);
#else
  uint8_t bytes[kVectorBytes];
  std::memcpy(bytes, &v, sizeof bytes);
  for (uint8_t& b : bytes) b = table[b];
  return load_bytes<U32>(bytes);
#endif
}

// Values of the tables plus the offset of the layout.
alignas(16) inline constexpr uint8_t kIq4Offset128[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                          129, 141, 153, 166, 181, 197, 217, 241};
alignas(16) inline constexpr uint8_t kTwiceE2m1Offset12[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                               12, 11, 10, 9,  8,  6,  4,  0};

/// The eight words of codes of a strip, before any table.
template <QuantLayout layout>
RLX_INLINE void load_codes(const std::byte* strip, U32 (&c)[8]) {
  U32 words[layout.bits];
#pragma GCC unroll 8
  for (int v = 0; v < layout.bits; ++v) words[v] = load_bytes<U32>(strip + v * kVectorBytes);
  if constexpr (layout.bits == 8) {
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) c[v] = words[v];
    return;
  }
  constexpr bool nibbles = layout.bits >= 4, pairs = layout.bits % 4 >= 2, ones = layout.bits % 2 == 1;
  constexpr int pair_word = nibbles ? 4 : 0, pair_bit = nibbles ? 4 : 0;
  constexpr int one_word = layout.bits - 1, one_bit = layout.bits - 1;
  if constexpr (nibbles) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      c[v] = field<0, 0, 15>(words[v]);
      c[4 + v] = field<4, 0, 15>(words[v]);
    }
  }
  const auto join = [&](int v, U32 bits, bool first) { c[v] = first ? bits : c[v] | bits; };
  if constexpr (pairs) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      join(v, field<0, pair_bit, 3>(words[pair_word + v]), !nibbles);
      join(2 + v, field<2, pair_bit, 3>(words[pair_word + v]), !nibbles);
      join(4 + v, field<4, pair_bit, 3>(words[pair_word + v]), !nibbles);
      join(6 + v, field<6, pair_bit, 3>(words[pair_word + v]), !nibbles);
    }
  }
  if constexpr (ones) {
    const U32 plane = words[one_word];
    join(0, field<0, one_bit, 1>(plane), false);
    join(1, field<1, one_bit, 1>(plane), false);
    join(2, field<2, one_bit, 1>(plane), false);
    join(3, field<3, one_bit, 1>(plane), false);
    join(4, field<4, one_bit, 1>(plane), false);
    join(5, field<5, one_bit, 1>(plane), false);
    join(6, field<6, one_bit, 1>(plane), false);
    join(7, field<7, one_bit, 1>(plane), false);
  }
}

/// Codes as the whole numbers of the product: 0 .. 255, offset included.
template <QuantLayout layout>
RLX_INLINE void to_numbers(U32 (&c)[8]) {
  if constexpr (layout.code == CodeForm::iq4 || layout.code == CodeForm::e2m1) {
    const uint8_t* table = layout.code == CodeForm::iq4 ? kIq4Offset128 : kTwiceE2m1Offset12;
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) c[v] = look_up(table, c[v]);
  }
}

// ---- scales ----

/// OCP E4M3 of the low byte: exponent and mantissa moved into place are the value times 2^-120, subnormals
/// included.
RLX_INLINE F32 from_e4m3(I32 code) {
  const F32 magnitude = (F32)((code & 0x7f) << 20) * 0x1p120f;
  const I32 sign = (code & 0x80) << 24;
  const I32 bits = (code & 0x7f) == 0x7f ? I32{} + 0x7fc00000 : (I32)magnitude;
  return (F32)(bits | sign);
}
/// OCP E5M2: as from_e4m3; the largest exponent means infinities and NaN.
RLX_INLINE F32 from_e5m2(I32 code) {
  const I32 magnitude = code & 0x7f;
  const I32 finite = (I32)((F32)(magnitude << 21) * 0x1p112f);
  const I32 bits = magnitude >= 0x7c ? (magnitude << 21) | 0x7f800000 : finite;
  return (F32)(bits | ((code & 0x80) << 24));
}

/// The same of byte `byte` of each word, where no code of it means an infinity or NaN: with the code in the
/// top byte, one shift that keeps the sign moves exponent and mantissa into place.
template <bool e5m2>
RLX_INLINE F32 from_finite_fp8(U32 words, int byte) {
  const I32 code = (I32)(words << (24 - 8 * byte));
  return e5m2 ? (F32)((code >> 3) & int32_t(0x8fe00000)) * 0x1p112f
              : (F32)((code >> 4) & int32_t(0x87f00000)) * 0x1p120f;
}
/// Whether a byte of the words is not finite.
template <bool e5m2>
RLX_INLINE bool has_special_fp8(U32 words) {
  typedef uint8_t Bytes __attribute__((vector_size(kVectorBytes)));
  const uint32_t ignored = e5m2 ? 0x83838383u : 0x80808080u;  // all ones in what is left: special
  return mask_bits((I32)((Bytes)(words | ignored) == uint8_t(255)) != 0) != 0;
}

template <QuantLayout layout>
struct Head {
  const std::byte* bytes;  // behind the halves
  F32 d, dmin;

  RLX_INLINE explicit Head(const std::byte* at) : bytes(at + 2 * layout.halves() * kLanes) {
    if constexpr (layout.halves() >= 1) d = load(reinterpret_cast<const F16*>(at));
    if constexpr (layout.halves() == 2) dmin = load(reinterpret_cast<const F16*>(at) + kLanes);
  }

  /// Where a head has one byte per strip.
  RLX_INLINE const std::byte* of_strip(int64_t t) const { return bytes + t * kLanes; }

  /// Of run s of strip t.
  RLX_INLINE F32 scale(int64_t t, int s) const {
    const std::byte* byte = bytes + (t * layout.runs_per_strip() + s) * kLanes;
    if constexpr (layout.scale == ScaleForm::half_bytes_least) return d * to_float(unsigned_bytes(byte));
    if constexpr (layout.scale == ScaleForm::half_nibbles_least)
      return d * to_float(unsigned_bytes(byte) & 15);
    if constexpr (layout.scale == ScaleForm::half_signed) return d * to_float(signed_bytes(byte));
    if constexpr (layout.scale == ScaleForm::half_odd) {
      const I32 both = unsigned_bytes(of_strip(t));
      const I32 code = layout.code == CodeForm::iq1_s ? both >> 4 & 7 : both >> (4 * s) & 15;
      return d * (to_float(2 * code + 1) * layout.unit());
    }
    if constexpr (layout.scale == ScaleForm::e8m0) {
      // 2^(e - 128): a shift of e - 1 into the exponent, but 2^-127 and 2^-128 are subnormal.
      const I32 e = unsigned_bytes(byte);
      return (F32)(e > 1 ? (e - 1) << 23 : (e + 1) << 21);
    }
    if constexpr (layout.scale == ScaleForm::e4m3) {
      const I32 code = unsigned_bytes(byte);
      return (F32)((code & 0x7f) == 0x7f ? I32{} : (I32)(from_e4m3(code) * 0.5f));
    }
    if constexpr (layout.scale == ScaleForm::f32 || layout.scale == ScaleForm::f32_zero) {
      return load(reinterpret_cast<const float*>(bytes) + s * kLanes);
    }
    if constexpr (layout.scale == ScaleForm::none) return set1(1.0f);
    return d;
  }
  RLX_INLINE F32 zero(int s) const {
    return load(reinterpret_cast<const float*>(bytes) + (layout.runs_per_strip() + s) * kLanes);
  }
  /// What is added to scale * code. With a zero point, code is without its offset.
  RLX_INLINE F32 least(int64_t t, int s) const {
    const std::byte* byte = bytes + (t * layout.runs_per_strip() + s) * kLanes;
    if constexpr (layout.scale == ScaleForm::half_least) return dmin;
    if constexpr (layout.scale == ScaleForm::half_bytes_least) {
      return -(dmin * to_float(unsigned_bytes(byte + layout.runs() * kLanes)));
    }
    if constexpr (layout.scale == ScaleForm::half_nibbles_least) {
      return -(dmin * to_float(unsigned_bytes(byte) >> 4));
    }
    if constexpr (layout.scale == ScaleForm::f32_zero) {
      return -((zero(s) + float(layout.offset)) * scale(t, s));
    }
    return F32{};
  }
};

/// The codes of strip t as the whole numbers of the product: 0 .. 255, offset included.
template <QuantLayout layout>
RLX_INLINE void load_numbers(const Head<layout>& head, const std::byte* strip, int64_t t, U32 (&c)[8]) {
  if constexpr (layout.is_grid()) {
    load_points<layout>(head.of_strip(t), strip, c);
  } else {
    load_codes<layout>(strip, c);
    to_numbers<layout>(c);
  }
}

}  // namespace rlx::cpu::RLX_ISA
