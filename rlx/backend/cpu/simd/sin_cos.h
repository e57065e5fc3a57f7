// sin and cos of f32, on a vector and on one number, which takes the steps of a lane in the narrowest registers: what a
// wide register adds to each step is time where a loop waits for the one number.
//
// x = n pi/2 + r with the remainder taken in f64: pi/2 in two parts, the first of 33 bits, makes n * first exact for
// |x| < 1.5e6; larger arguments go to the C library.
#pragma once

#include <cmath>

#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {

inline constexpr float kTurnsEnd = 1.5e6f;

#if defined(RLX_AVX512) || defined(RLX_AVX2)
/// One number in the first lane; what is in the others does not matter.
typedef float One32 __attribute__((vector_size(16)));
typedef double One64 __attribute__((vector_size(16)));
typedef int32_t OneI32 __attribute__((vector_size(16)));

RLX_INLINE One32 one(float x) { return (One32)_mm_set_ss(x); }
RLX_INLINE One32 fma(One32 a, One32 b, One32 c) {
  return (One32)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
}
RLX_INLINE One64 fma(One64 a, One64 b, One64 c) {
  return (One64)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
}
RLX_INLINE OneI32 to_int(One32 x) { return (OneI32)_mm_cvttps_epi32((__m128)x); }
template <class F>
RLX_INLINE One32 by_halves(One32 x, F f) {
  return (One32)_mm_cvtpd_ps((__m128d)f((One64)_mm_cvtps_pd((__m128)x)));
}
#else
typedef F32 One32;
RLX_INLINE One32 one(float x) { return set1(x); }
#endif

/// f on the numbers in f64.
template <class F>
RLX_INLINE F32 by_halves(F32 x, F f) {
  const F64Pair d = to_double(x);
  return to_float(F64Pair{f(d.low), f(d.high)});
}

/// sin(r + k * pi/2) for |r| <= pi/4, in vectors V of f32 and I of i32.
template <class I, class V>
RLX_INLINE V sin_of_remainder(V r, I k) {
  // Taylor, first terms left out z^5 / 11! and z^6 / 12!. By pairs: half as long as one after the other.
  const V z = r * r, z2 = z * z;
  const auto series = [&](float a, float b, float c, float d) {
    return fma(z2, fma(z, V{} + d, V{} + c), fma(z, V{} + b, V{} + a));
  };
  const V s = fma(r * z, series(-1.f / 6, 1.f / 120, -1.f / 5040, 1.f / 362880), r);
  const V c =
      fma(z2, series(1.f / 24, -1.f / 720, 1.f / 40320, -1.f / 3628800), fma(z, V{} - 0.5f, V{} + 1.0f));
  const V y = (k & 1) != 0 ? c : s;
  return (V)((I)y ^ ((k & 2) << 30));
}

/// sin(x + quarter * pi/2) for |x| < kTurnsEnd.
template <class I, class V>
RLX_INLINE V sin_quarter_inside(V x, int quarter) {
  const auto quarters = [](auto v) {
    using D = decltype(v);
    constexpr double kWhole = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves no fraction
    return fma(v, D{} + 0.6366197723675814, D{} + kWhole) - kWhole;
  };
  const I k = to_int(by_halves(x, quarters)) + quarter;
  const V r = by_halves(x, [&](auto v) {
    using D = decltype(v);
    const D n = quarters(v);
    return fma(n, D{} - 6.07710050630396597660e-11, fma(n, D{} - 1.57079632673412561417, v));
  });
  const V turned = sin_of_remainder(r, k);
  return quarter == 0 ? (x == 0.0f ? x : turned) : turned;  // sin(-0) is -0
}

RLX_INLINE float sin_quarter_outside(float x, int quarter) {
  return float(quarter ? std::cos(double(x)) : std::sin(double(x)));
}

RLX_INLINE F32 sin_quarter(F32 x, int quarter) {
  const I32 outside = ~(abs(x) < kTurnsEnd);
  const F32 y = sin_quarter_inside<I32>(outside ? F32{} : x, quarter);
  if (any(outside)) {
    return patch_lanes(outside, y, x, [&](float v) { return sin_quarter_outside(v, quarter); });
  }
  return y;
}
RLX_INLINE F32 sin(F32 x) { return sin_quarter(x, 0); }
RLX_INLINE F32 cos(F32 x) { return sin_quarter(x, 1); }

/// The same of one number. Below pi/4 there is no quarter to take off, the remainder is x itself, and whoever waits for the
/// number is spared the way to f64 and back, which is as long as the rest.
RLX_INLINE float sin_quarter_of_one(float x, int quarter) {
  if (!(std::fabs(x) < kTurnsEnd)) return sin_quarter_outside(x, quarter);
  using I = decltype(to_int(one(x)));
  if (std::fabs(x) < 0.785f && x != 0.0f) return sin_of_remainder(one(x), I{} + quarter)[0];
  return sin_quarter_inside<I>(one(x), quarter)[0];
}

}  // namespace rlx::cpu::RLX_ISA
