// Numbers of every type from and to f64, as rlx/ir/literal.h casts them: floats round once, halves to even; to integers they truncate and
// saturate, NaN is 0; what f8e4m3 cannot hold is NaN, f8e5m2 has infinities.
#pragma once

namespace rlx::cuda {

inline constexpr char kCasts[] = R"cuda(
struct f8e4m3 { u8 bits; };
struct f8e5m2 { u8 bits; };
struct Truth { u8 is; };

inline u32 bits_of(f32 x) { return u32(__float_as_int(x)); }
inline f64 as_f64(f8e5m2 x) { return as_f64(f16{u16(x.bits << 8)}); }
inline f64 as_f64(f8e4m3 x) {
  const int exponent = x.bits >> 3 & 15, mantissa = x.bits & 7;
  const f32 magnitude = exponent == 15 && mantissa == 7 ? from_bits(0x7fc00000u)
                        : exponent == 0                 ? f32(mantissa) * 0.001953125f
                                                        : from_bits(u32(exponent + 120) << 23 | u32(mantissa) << 20);
  return f64(x.bits & 0x80 ? -magnitude : magnitude);
}
inline f64 as_f64(Truth x) { return x.is ? 1.0 : 0.0; }

// The f32 next to x that tells on which side of halves of shorter formats it lies: its last bit is set where it is not exact.
inline f32 keeping_side(f64 x) {
  const f32 f = f32(x);
  if (f64(f) == x || f - f != 0) return f;
  return from_bits((fabs(f64(f)) > fabs(x) ? bits_of(f) - 1 : bits_of(f)) | 1u);
}
// Exponent and mantissa of a finite |x| joined, rounded to so many bits of mantissa: a carry moves to the next exponent by itself.
inline u32 rounded_code(u32 magnitude, int mantissa_bits, int least_exponent) {
  const int exponent = int(magnitude >> 23) - 127;
  const u32 significand = (exponent == -127 ? 0u : 0x800000u) | (magnitude & 0x7fffffu);
  const int shift = 23 - mantissa_bits + (exponent < least_exponent ? least_exponent - exponent : 0);
  if (shift > 25) return 0;
  const u32 code = (significand + (1u << (shift - 1)) - 1 + (significand >> shift & 1)) >> shift;
  return exponent >= least_exponent ? code + (u32(exponent - least_exponent) << mantissa_bits) : code;
}
inline void put_cast(f8e4m3& to, f64 x) {
  const u32 u = bits_of(keeping_side(x)), magnitude = u & 0x7fffffffu;
  const u32 code = magnitude >= 0x7f800000u ? 0x7fu : rounded_code(magnitude, 3, -6);
  to.bits = u8((u >> 24 & 0x80) | (code < 0x7f ? code : 0x7f));
}
inline void put_cast(f8e5m2& to, f64 x) {
  const u32 u = bits_of(keeping_side(x)), magnitude = u & 0x7fffffffu;
  const u32 code = magnitude > 0x7f800000u ? 0x7eu : magnitude == 0x7f800000u ? 0x7cu : rounded_code(magnitude, 2, -14);
  to.bits = u8((u >> 24 & 0x80) | (magnitude > 0x7f800000u || code < 0x7c ? code : 0x7c));
}
inline void put_cast(f16& to, f64 x) { to = to_f16(keeping_side(x)); }
inline void put_cast(bf16& to, f64 x) { to = to_bf16(keeping_side(x)); }
inline void put_cast(f32& to, f64 x) { to = f32(x); }
inline void put_cast(f64& to, f64 x) { to = x; }
inline void put_cast(c64& to, f64 x) { to = {f32(x), 0.0f}; }
inline void put_cast(Truth& to, f64 x) { to.is = x != 0; }
template <class T> void put_within(T& to, f64 x, i64 low, i64 high) {
  to = x != x ? T(0) : x <= f64(low) ? T(low) : x >= f64(high) ? T(high) : T(i64(x));
}
inline void put_cast(u8& to, f64 x) { put_within(to, x, 0, 255); }
inline void put_cast(i8& to, f64 x) { put_within(to, x, -128, 127); }
inline void put_cast(i16& to, f64 x) { put_within(to, x, -32768, 32767); }
inline void put_cast(i32& to, f64 x) { put_within(to, x, -2147483648ll, 2147483647ll); }
inline void put_cast(u32& to, f64 x) { put_within(to, x, 0, 4294967295ll); }
inline void put_cast(i64& to, f64 x) { put_within(to, x, -9223372036854775807ll - 1, 9223372036854775807ll); }

// From i64 to integers without f64 in between.
inline i64 cut(i64 x, i64 low, i64 high) { return x < low ? low : x > high ? high : x; }
inline void put_cast(u8& to, i64 x) { to = u8(cut(x, 0, 255)); }
inline void put_cast(i8& to, i64 x) { to = i8(cut(x, -128, 127)); }
inline void put_cast(i16& to, i64 x) { to = i16(cut(x, -32768, 32767)); }
inline void put_cast(i32& to, i64 x) { to = i32(cut(x, -2147483648ll, 2147483647ll)); }
inline void put_cast(u32& to, i64 x) { to = u32(cut(x, 0, 4294967295ll)); }
inline void put_cast(i64& to, i64 x) { to = x; }
)cuda";

}  // namespace rlx::cuda
