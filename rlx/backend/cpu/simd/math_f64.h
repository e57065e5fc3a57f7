// Elementary functions on vectors of f64, each within 4 ulp of the true value over the whole range (measured:
// tests/backend/cpu/unary_test.cpp), and the f32 functions that go through f64.
//
// Where rounding of an argument would be magnified by an exponential, the argument is the sum of two numbers:
// two_sum and two_product give a result with its exact error. Levels without a fused multiply-add get the
// error of a product from halves of the factors. Polynomials were fitted at Chebyshev nodes; their relative
// error stands beside them.
#pragma once

#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {

RLX_INLINE bool any(I64 mask) { return any((I32)mask); }

struct Exact {
  F64 value, error;
};
RLX_INLINE Exact two_sum(F64 a, F64 b) {
  const F64 s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
RLX_INLINE Exact two_product(F64 a, F64 b) {
  const F64 p = a * b;
  if constexpr (kHasFma) return {p, fma(a, b, -p)};
  // Halves of 26 bits: (x 2^27 + x) - (x 2^27) keeps the upper one. No overflow below 2^995.
  const auto upper = [](F64 x) {
    const F64 c = x * 134217729.0;
    return c - (c - x);
  };
  const F64 ah = upper(a), al = a - ah, bh = upper(b), bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

// ln 2 = high + low, the high part of 40 bits: n * high is exact for |n| < 2^13.
inline constexpr double kLn2High64 = 0.6931471805601177, kLn2Low64 = -1.7239444525614835e-13;

/// p * 2^n for -2000 < n < 2000, n integral, with gradual underflow.
RLX_INLINE F64 scale_by_power(F64 p, F64 n) {
#if defined(RLX_AVX512)
  return (F64)_mm512_scalef_pd((__m512d)p, (__m512d)n);
#else
  const F64 half = round_small(n * 0.5);
  return p * power_of_two(round_to_int(half)) * power_of_two(round_to_int(n - half));
#endif
}

/// 2^n (1 + s), -0.3 < s < 0.42, n integral.
struct ExpParts64 {
  F64 s, n;
};
/// Of e^(x + low), |x| <= 800 and low below an ulp of x.
RLX_INLINE ExpParts64 exp_parts(F64 x, F64 low) {
  const F64 n = round_small(x * 1.4426950408889634);
  const F64 high = x - n * kLn2High64;  // exact
  const F64 first = high - n * kLn2Low64, rest = (high - first) - n * kLn2Low64 + low;
  const F64 r = first + rest, lost = rest - (r - first);
  // (e^r - 1 - r) / r^2 for |r| <= 0.3467; 1.3e-17 of e^r.
  const F64 p =
      polynomial(r, {0.5000000000000001, 0.16666666666666669, 0.04166666666662404, 0.008333333333330055,
                     0.0013888888917258759, 0.00019841269863088255, 2.4801521225986432e-05,
                     2.7557268406190795e-06, 2.7620121717381933e-07, 2.51004110820149e-08});
  return {r + fma(p * r, r, lost), n};
}

RLX_INLINE F64 exp(F64 x) {
  const ExpParts64 e = exp_parts(min(set1(710.0), max(set1(-746.0), x)), F64{});
  return scale_by_power(e.s + 1.0, e.n);
}

/// (2^n - 1) + 2^n s, the larger term first.
RLX_INLINE F64 expm1(F64 x) {
  const ExpParts64 e = exp_parts(min(set1(710.0), max(set1(-40.0), x)), F64{});
  const F64 power = scale_by_power(set1(0.5), e.n);  // half, for n reaches 1024
  return abs(x) < 1e-17 ? x : 2.0 * fma(power, e.s, power - 0.5);
}

/// x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for finite x > 0.
struct LogParts64 {
  F64 e, f;
};
RLX_INLINE LogParts64 log_parts(F64 x) {
  const I64 tiny = x < 0x1p-1022;
  x = tiny ? x * 0x1p52 : x;
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd, kBias = 1024;
  const U64 bits = (U64)x - uint64_t(kRootHalf);  // unsigned: any other x may come here and is not used
  const I64 shifted = (I64)bits;
  const I64 e = (I64)((bits + (uint64_t(kBias) << 52)) >> 52) - kBias;  // not below 0 before the shift
  return {small_to_double(e) - (tiny ? set1(52.0) : set1(0.0)),
          (F64)((shifted & 0xfffffffffffff) + kRootHalf) - 1.0};
}

RLX_INLINE F64 log(F64 x) {
  const LogParts64 p = log_parts(x);
  // log(1 + f) = 2 atanh(s), s = f / (2 + f), |s| <= 0.172: = f - s (f - R), R = sum 2 s^2k / (2k + 1).
  const F64 s = p.f / (p.f + 2.0), z = s * s;
  const F64 rest = polynomial(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                  2.0 / 19, 2.0 / 21}) *
                   z;
  const F64 y = fma(p.e, set1(kLn2High64), p.f - fma(s, p.f - rest, p.e * -kLn2Low64));
  const F64 infinity = set1(__builtin_inf());
  const F64 special = x == 0.0 ? -infinity : (x > 0.0 ? x : set1(__builtin_nan("")));
  return ((x > 0.0) & (x < infinity)) ? y : special;
}

RLX_INLINE F64 log1p(F64 x) {
  const F64 u = x + 1.0, y = log(u);
  const F64 lost = u - 1.0 - x;
  const F64 repaired = x > 0x1p53 ? y : y - lost / u;
  return abs(x) < 1e-16 ? x : (x == -1.0 ? set1(-__builtin_inf()) : repaired);
}

RLX_INLINE F64 tanh(F64 x) {
  const F64 t = expm1(2.0 * min(set1(20.0), abs(x)));
  return copy_sign(t / (t + 2.0), x);
}

/// base - w E / (1 + E) for E = 2^n (1 + s) <= 1; see the f32 form.
RLX_INLINE F64 minus_sigmoid_tail(F64 base, F64 w, ExpParts64 e) {
  const F64 power = scale_by_power(set1(1.0), e.n);
  return base - scale_by_power(fma(w, e.s, w) / (fma(e.s, power, power) + 1.0), e.n);
}
RLX_INLINE F64 positive_part(F64 x) { return max(set1(-0.0), x); }

RLX_INLINE F64 sigmoid(F64 x) {
  const F64 base = x < 0.0 ? set1(0.0) : set1(1.0);
  return minus_sigmoid_tail(base, 2.0 * base - 1.0, exp_parts(-min(set1(760.0), abs(x)), F64{}));
}
RLX_INLINE F64 silu(F64 x) {
  const F64 a = min(set1(760.0), abs(x));
  return minus_sigmoid_tail(positive_part(x), a, exp_parts(-a, F64{}));
}

/// The argument is (A + B a^2) a with A = 2 sqrt(2/pi) and B = 0.044715 A, each in two parts.
RLX_INLINE F64 gelu_tanh(F64 x) {
  const F64 a = min(set1(22.0), abs(x));
  const Exact z = two_product(a, a), bz = two_product(z.value, set1(0.07135481627260025));
  const Exact p = two_sum(set1(1.5957691216057308), bz.value);
  const F64 p_error = p.error + bz.error +
                      fma(z.error, set1(0.07135481627260025), set1(-9.96930880911092e-17)) +
                      z.value * -6.175149918155315e-19;
  const Exact v = two_product(a, p.value);
  return minus_sigmoid_tail(positive_part(x), a, exp_parts(-v.value, -fma(a, p_error, v.error)));
}

RLX_INLINE F64 gelu_quick(F64 x) {
  const F64 a = min(set1(445.0), abs(x));
  const Exact v = two_product(a, set1(1.702));
  return minus_sigmoid_tail(positive_part(x), a,
                            exp_parts(-v.value, -fma(a, set1(4.263256414560601e-17), v.error)));
}

RLX_INLINE F64 softplus(F64 x) { return max(set1(0.0), x) + log1p(exp(-abs(x))); }

RLX_INLINE F64 erf(F64 x) {
  const F64 a = min(set1(6.0), abs(x)), z = a * a;
  // |x| < 1: erf(x) / x - 1 in x^2, 8e-18.
  const F64 p = polynomial(
      z, {0.12837916709551256, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777,
          0.0052239776071164225, -0.0008548325975389692, 0.00012055294904839707, -1.492473690741966e-05,
          1.6447424703317362e-06, -1.6208483801871705e-07, 1.3720064546777686e-08, -7.795898827002142e-10});
  // 1 - e^-z erfcx(a), (1 + 2a) erfcx(a) in t = (a - 3) / (a + 3), 2e-18 for 0.99 < a < 6.1.
  const F64 t = (a - 3.0) / (a + 3.0);
  const F64 q =
      polynomial(t, {1.2530080582697296, -0.13562110612458128, -0.047562294353450975, 0.12964515870278662,
                     -0.11927366341528155, 0.06830802734194877, -0.023770514921093285, 0.0025293918883317946,
                     0.0018886904793516312, -0.0007798335865308294, -0.00010516273793309882,
                     0.00012511142425790305, 4.986041342300517e-06, -2.014411776212531e-05,
                     -9.529225269493034e-07, 3.409835216842212e-06, 8.578912441013721e-07});
  const F64 large = copy_sign(1.0 - exp(-z) * q / fma(set1(2.0), a, set1(1.0)), x);
  const F64 y = a < 1.0 ? fma(x, p, x) : large;
  return x == x ? y : x;
}

/// As the f32 form, with Phi(-a) = e^(-a^2/2) G / (1 + 1.5 a).
RLX_INLINE F64 gelu(F64 x) {
  const F64 a = min(set1(39.0), abs(x));
  const Exact z = two_product(a, a);
  // |x| < 0.7: (Phi(x) - 1/2) / x in x^2, 4e-18.
  const F64 near =
      polynomial(z.value, {0.3989422804014327, -0.06649038006690496, 0.009973557010009501,
                           -0.0011873282149393709, 0.00011543468203839274, -9.444623920664533e-06,
                           6.658589845581663e-07, -4.100625267192469e-08, 2.033742058621596e-09});
  // 0.69 < a < 39: 2e-17.
  const F64 t = (a - 4.0) / (a + 4.0);
  const F64 g = polynomial(
      t, {0.6608744891137825,    -0.059856355215560944,   -0.041190175582997854,   0.07875424974919248,
          -0.06372915819502445,  0.031150193960443877,    -0.007757348930420162,   -0.0007478415669193805,
          0.001135937868852105,  -0.00011886802866258983, -0.0001461044858860129,  2.9560085094631e-05,
          2.259433346993421e-05, -4.737442096252328e-06,  -4.255773715356859e-06,  5.151695275533408e-07,
          8.830647913281195e-07, 7.976848229345111e-09,   -1.7586966593273553e-07, -1.4640335680438775e-08,
          2.5020675802235286e-08});
  const ExpParts64 e = exp_parts(z.value * -0.5, z.error * -0.5);
  const F64 m = a * g / fma(a, set1(1.5), set1(1.0));
  const F64 far = positive_part(x) - scale_by_power(fma(m, e.s, m), e.n);
  return a < 0.7 ? x * fma(x, near, set1(0.5)) : far;
}

/// x = k pi/2 + r + low, |r| <= pi/4, for |x| < kLargestReduced: pi/2 in parts of 33 bits makes every k *
/// part exact (k < 2^20), and the sums keep their errors for the arguments next to a multiple of pi/2.
struct Quadrant {
  F64 r, low;
  I64 k;
};
inline constexpr double kLargestReduced = 1.6e6;
RLX_INLINE Quadrant reduce_by_quarter_turn(F64 x) {
  const F64 k = round_small(x * 0.6366197723675814);
  const Exact first = two_sum(x - k * 1.5707963267341256, k * -6.077100506303966e-11);
  const Exact second = two_sum(first.value, k * -2.0222662487111665e-21);
  const F64 low = first.error + second.error - k * 8.4784276603689e-32;
  const F64 r = second.value + low;
  return {r, (second.value - r) + low, round_to_int(k)};
}

struct SinCos {
  F64 sin, cos;
};
RLX_INLINE SinCos sin_cos_small(F64 r, F64 low) {
  const F64 z = r * r;
  // Taylor; the first terms left out are z^9 / 19! and z^10 / 20!.
  const F64 s = polynomial(z, {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                               1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000});
  const F64 c = polynomial(z, {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600,
                               -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000});
  const F64 half = z * 0.5, one = 1.0 - half;
  return {r + fma(r * z, s, low * one), one + (((1.0 - one) - half) + fma(z * z, c, -r * low))};
}

template <class F>
RLX_INLINE F64 patch_lanes(I64 mask, F64 fast, F64 x, F scalar) {
  for (int i = 0; i < kLanes64; ++i) {
    if (mask[i]) fast[i] = scalar(x[i]);
  }
  return fast;
}

RLX_INLINE F64 sin_quarter(F64 x, int quarter) {
  const I64 inside = abs(x) < kLargestReduced;
  const Quadrant q = reduce_by_quarter_turn(inside ? x : set1(0.0));
  const SinCos both = sin_cos_small(q.r, q.low);
  const I64 k = q.k + quarter;
  const F64 y = (k & 1) != 0 ? both.cos : both.sin;
  const F64 turned = (F64)((I64)y ^ ((k & 2) << 62));
  const F64 result = quarter == 0 ? (x == 0.0 ? x : turned) : turned;  // sin(-0) is -0
  if (any(~inside)) {
    return patch_lanes(~inside, result, x, [&](double v) { return quarter ? ::cos(v) : ::sin(v); });
  }
  return result;
}
RLX_INLINE F64 sin(F64 x) { return sin_quarter(x, 0); }
RLX_INLINE F64 cos(F64 x) { return sin_quarter(x, 1); }

RLX_INLINE F64 tan(F64 x) {
  const I64 inside = abs(x) < kLargestReduced;
  const Quadrant q = reduce_by_quarter_turn(inside ? x : set1(0.0));
  const SinCos both = sin_cos_small(q.r, q.low);
  const I64 odd = (q.k & 1) != 0;
  const F64 y = x == 0.0 ? x : (odd ? -both.cos : both.sin) / (odd ? both.sin : both.cos);
  if (any(~inside)) return patch_lanes(~inside, y, x, [](double v) { return ::tan(v); });
  return y;
}

/// atan a = base + atan t: t = (a - 1) / (a + 1) above tan(pi/8), -1/a above tan(3 pi/8).
RLX_INLINE F64 atan(F64 x) {
  const F64 a = abs(x), zero = {};
  const I64 large = a > 2.414213562373095, middle = a > 0.41421356237309503;
  const F64 t = (large ? set1(-1.0) : (middle ? a - 1.0 : a)) / (large ? a : (middle ? a + 1.0 : set1(1.0)));
  const F64 base = large ? set1(1.5707963267948966) : (middle ? set1(0.7853981633974483) : zero);
  const F64 low = large ? set1(6.123233995736766e-17) : (middle ? set1(3.061616997868383e-17) : zero);
  // (atan(t) / t - 1) / t^2 in t^2 < 0.1716, 5e-18.
  const F64 z = t * t;
  const F64 p =
      polynomial(z, {-0.3333333333333333, 0.19999999999995519, -0.14285714284666184, 0.11111111015227572,
                     -0.09090904576954117, 0.07692183163650894, -0.06664511064599371, 0.05858145587628202,
                     -0.050854323376990765, 0.0392311556198723, -0.01917627151752634});
  return copy_sign(base + (t + fma(t * z, p, low)), x);
}

/// x^y = e^(y ln x), ln x and the product in two parts: ln x = e ln 2 + 2s + 2 s^3 / 3 + s^5 (...), of which
/// all but the last carry their errors. Everything but finite y and normal x > 0 goes to the C library.
RLX_INLINE F64 pow(F64 x, F64 y) {
  const F64 infinity = set1(__builtin_inf());
  const I64 ordinary = (x >= 0x1p-1022) & (x < infinity) & (abs(y) < infinity);
  const LogParts64 parts = log_parts(ordinary ? x : set1(1.0));
  const Exact d = two_sum(parts.f, set1(2.0));
  const F64 s = parts.f / d.value;
  const Exact back = two_product(s, d.value);
  const F64 s_low = ((parts.f - back.value) - back.error - s * d.error) / d.value;
  const Exact z = two_product(s, s);
  const F64 z_low = fma(2.0 * s, s_low, z.error);
  const Exact cube = two_product(s, z.value);
  const F64 cube_low = cube.error + fma(s, z_low, s_low * z.value);
  const Exact third = two_product(cube.value, set1(0.6666666666666666));
  const F64 third_low =
      third.error + fma(cube.value, set1(3.700743415417188e-17), cube_low * 0.6666666666666666);
  // The first term left out is 2 s^27 / 27, which the exponent magnifies up to 745 times.
  const F64 rest = polynomial(z.value, {2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                        2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25}) *
                   z.value * cube.value;
  const Exact h1 = two_sum(parts.e * kLn2High64, 2.0 * s), h2 = two_sum(h1.value, third.value);
  const F64 small = h1.error + h2.error + third_low + fma(set1(2.0), s_low, rest) + parts.e * kLn2Low64;
  const F64 log_high = h2.value + small, log_low = small - (log_high - h2.value);
  // A larger exponent overflows or underflows for every x but 1, whose logarithm is 0.
  const F64 power = min(set1(1e20), max(set1(-1e20), ordinary ? y : set1(0.0)));
  const Exact v = two_product(power, log_high);
  const F64 v_low = fma(power, log_low, v.error);
  const F64 clamped = min(set1(711.0), max(set1(-747.0), v.value));
  const ExpParts64 e = exp_parts(clamped, clamped == v.value ? v_low : F64{});
  F64 result = scale_by_power(e.s + 1.0, e.n);
  if (any(~ordinary)) {
    for (int i = 0; i < kLanes64; ++i) {
      if (!ordinary[i]) result[i] = ::pow(x[i], y[i]);
    }
  }
  return result;
}

// ---- f32 through f64 ----

template <class F>
RLX_INLINE F32 through_f64(F32 x, F f) {
  const F64Pair d = to_double(x);
  return to_float(F64Pair{f(d.low), f(d.high)});
}
RLX_INLINE F32 tan(F32 x) {
  return through_f64(x, [](F64 v) { return tan(v); });
}
RLX_INLINE F32 atan(F32 x) {
  return through_f64(x, [](F64 v) { return atan(v); });
}

}  // namespace rlx::cpu::RLX_ISA
