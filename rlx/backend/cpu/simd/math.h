// Elementary functions on vectors of f32, each within 2 ulp of the true value over the whole range
// (measured: tests/backend/cpu/unary_test.cpp prints and bounds the error of every level).
//
// Series are Taylor where that needs no more terms than the reduced argument allows; the other polynomials
// were fitted at Chebyshev nodes, their relative error stands beside them. Arguments whose rounding would
// be magnified by an exponential (gelu) carry their error along, or are formed in f64 (pow). sin and cos are in
// sin_cos.h.
#pragma once

#include <cmath>

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

/// c[0] + c[1] x + ... by Horner's rule.
template <int n>
RLX_INLINE F32 polynomial(F32 x, const float (&c)[n]) {
  F32 p = set1(c[n - 1]);
#pragma GCC unroll 16
  for (int i = n - 2; i >= 0; --i) p = fma(p, x, set1(c[i]));
  return p;
}
template <int n>
RLX_INLINE F64 polynomial(F64 x, const double (&c)[n]) {
  F64 p = set1(c[n - 1]);
#pragma GCC unroll 16
  for (int i = n - 2; i >= 0; --i) p = fma(p, x, set1(c[i]));
  return p;
}

RLX_INLINE bool any(I32 mask) {
#if defined(RLX_AVX512)
  return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif defined(RLX_AVX2)
  return _mm256_movemask_ps((__m256)mask) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_ps((__m128)mask) != 0;
#else
  return vmaxvq_u32((uint32x4_t)mask) != 0;
#endif
}

/// Lanes under the mask computed one at a time by a scalar function, for arguments too rare to vectorise.
template <class F>
RLX_INLINE F32 patch_lanes(I32 mask, F32 fast, F32 x, F scalar) {
  for (int i = 0; i < kLanes; ++i) {
    if (mask[i]) fast[i] = scalar(x[i]);
  }
  return fast;
}

/// To a whole number: halves to even, down, up. Numbers of 2^23 (2^52) and more have no fraction.
RLX_INLINE F32 round_even(F32 x) {
  const F32 shift = copy_sign(set1(0x1p23f), x);
  return abs(x) < 0x1p23f ? copy_sign((x + shift) - shift, x) : x;
}
RLX_INLINE F64 round_even(F64 x) {
  const F64 shift = copy_sign(set1(0x1p52), x);
  return abs(x) < 0x1p52 ? copy_sign((x + shift) - shift, x) : x;
}
template <class V>
RLX_INLINE V floor(V x) {
  const V r = round_even(x);
  return copy_sign(r > x ? r - 1 : r, x);
}
template <class V>
RLX_INLINE V ceil(V x) {
  const V r = round_even(x);
  return copy_sign(r < x ? r + 1 : r, x);
}
template <class V>
RLX_INLINE V sign(V x) {
  const V zero = {}, one = zero + 1;
  return x > zero ? one : (x < zero ? -one : (x == x ? zero : x));
}

inline constexpr float kLog2e = 1.44269504088896f;
// ln 2 = high + low; the high part has 9 trailing zero bits, so n * high is exact for |n| < 512.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440054690583e-4f;

/// p * 2^n for -300 < n < 300, n integral, with gradual underflow.
RLX_INLINE F32 scale_by_power(F32 p, F32 n) {
#if defined(RLX_AVX512)
  return (F32)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
  const I32 k = to_int(n), half = k >> 1;
  return p * power_of_two(half) * power_of_two(k - half);
#endif
}

// (e^r - 1 - r) / r^2 for |r| <= 0.347; the first term left out is r^6 / 8!, 4e-8 of the leading 1/2.
inline constexpr float kExpTail[] = {1.f / 2, 1.f / 6, 1.f / 24, 1.f / 120, 1.f / 720, 1.f / 5040};

// (2^r - 1 - r ln 2) / r^2 for |r| <= 1/2; 8e-9 of 2^r.
inline constexpr float kExp2Tail[] = {0.240226507f, 0.05550381014f, 0.009618103253f, 0.001338130254f,
                                      0.0001544488395f};

// (2^r - 1) / r for |r| <= 1/2; 2e-9 of 2^r.
inline constexpr float kExp2Slope[] = {0.6931472028f,   0.2402264792f,   0.05550332545f,
                                       0.009618436392f, 0.001339885232f, 0.0001535359803f};

/// 2^r, |r| <= 1/2.
RLX_INLINE F32 exp2_fraction(F32 r) { return fma(polynomial(r, kExp2Slope), r, set1(1.0f)); }
/// 2^u, rounded in u: for exponents whose error is made small by what follows.
RLX_INLINE F32 exp2_of(F32 u) {
  const F32 n = round_small(u);
  return scale_by_power(exp2_fraction(u - n), n);
}

/// a * b + c with the product exact, at every level.
RLX_INLINE F32 fma_exact(F32 a, F32 b, F32 c) {
  if constexpr (kHasFma) return fma(a, b, c);
  const F64Pair p = to_double(a), q = to_double(b), r = to_double(c);
  return to_float(F64Pair{p.low * q.low + r.low, p.high * q.high + r.high});
}

/// An exponential not yet put together: 2^n (1 + s), -0.3 < s < 0.42, n integral.
struct ExpParts {
  F32 s, n;
};
/// Of 2^(n + r), |r| <= 1/2.
RLX_INLINE ExpParts exp2_parts(F32 n, F32 r) {
  return {fma(r, set1(0.6931471825f), polynomial(r, kExp2Tail) * r * r), n};
}
/// Of 2^(a (c + c_error)): the whole part goes before the product is rounded.
RLX_INLINE ExpParts exp2_parts(F32 a, F32 c, F32 c_error) {
  const F32 n = round_small(a * c);
  return exp2_parts(n, fma(a, c_error, fma_exact(a, c, -n)));
}
RLX_INLINE ExpParts exp_parts(F32 x) {
  if constexpr (kHasFma) return exp2_parts(x, set1(kLog2e), set1(1.92596303e-08f));
  const F32 n = round_small(x * kLog2e);
  const F32 high = fma(n, set1(-kLn2High), x);  // exact
  const F32 r = fma(n, set1(-kLn2Low), high);
  const F32 lost = fma(n, set1(-kLn2Low), high - r);
  return {r + fma(polynomial(r, kExpTail) * r, r, lost), n};
}

/// e^x = 2^n 2^r, |r| <= 1/2: the whole part goes before the product is rounded.
RLX_INLINE F32 exp_fraction(F32 x, F32 n) {
  return fma(x, set1(1.92596303e-08f), fma_exact(x, set1(kLog2e), -n));
}
/// For -104 <= x <= 89.
RLX_INLINE F32 exp_in_range(F32 x) {
  if constexpr (kHasFma) {
    const F32 n = round_small(x * kLog2e);
    return scale_by_power(exp2_fraction(exp_fraction(x, n)), n);
  }
  const ExpParts e = exp_parts(x);
  return scale_by_power(e.s + 1.0f, e.n);
}
/// Below half of the smallest number the result is 0 without computing it: one that underflows takes an Intel
/// processor some 150 cycles, and behind a mask there are many.
RLX_INLINE F32 exp(F32 x) {
  const I32 none = x < -103.98f;
  const F32 y = exp_in_range(min(set1(89.0f), none ? F32{} : x));
  return none ? F32{} : y;
}

/// e^x - 1. With e^r = 1 + r + q, the result is (2^n - 1) + 2^n r + 2^n q: large terms first.
RLX_INLINE F32 expm1(F32 x) {
  const F32 input = x;
  x = min(set1(89.0f), max(set1(-20.0f), x));
  const F32 n = round_small(x * kLog2e);
  const F32 r = fma(n, set1(-kLn2Low), fma(n, set1(-kLn2High), x));
  const F32 q = polynomial(r, kExpTail) * r * r;
  // 2^n in two factors: n reaches 128.
  const F32 s = scale_by_power(set1(0.5f), n);
  const F32 y = 2.0f * fma(s, q, fma(s, r, s - 0.5f));
  return abs(input) < 1e-7f ? input : y;
}

/// log of a finite positive number times 2^bias; specials by the callers below, so any bits may come here and
/// they are subtracted unsigned.
RLX_INLINE F32 log_positive(F32 x) {
  const I32 tiny = x < 0x1p-126f;
  x = tiny ? x * 0x1p23f : x;
  constexpr int32_t kRootHalf = 0x3f3504f3;  // sqrt(1/2)
  const I32 shifted = (I32)((U32)x - uint32_t(kRootHalf));
  const F32 e = to_float(shifted >> 23) - (tiny ? set1(23.0f) : set1(0.0f));
  const F32 f = (F32)((shifted & 0x7fffff) + kRootHalf) - 1.0f;
  // log(1 + f) = 2 atanh(s), s = f / (2 + f), |s| <= 0.172: = f - s (f - R), R = sum 2 s^2k / (2k + 1).
  const F32 s = f / (f + 2.0f), z = s * s;
  const F32 rest = polynomial(z, {2.f / 3, 2.f / 5, 2.f / 7, 2.f / 9, 2.f / 11}) * z;
  return fma(e, set1(kLn2High), f - fma(s, f - rest, e * -kLn2Low));
}

RLX_INLINE F32 log(F32 x) {
  const F32 y = log_positive(x);
  const F32 infinity = set1(__builtin_inff());
  const F32 special = x == 0.0f ? -infinity : (x > 0.0f ? x : set1(__builtin_nanf("")));
  return ((x > 0.0f) & (x < infinity)) ? y : special;
}

/// log(1 + x): what 1 + x loses by rounding is added back to first order.
RLX_INLINE F32 log1p(F32 x) {
  const F32 u = x + 1.0f;
  const F32 lost = u - 1.0f - x;  // exact: u and 1 within a factor 2 of each other, or lost is below the ulp
  const F32 y = log(u) - lost / u;
  const F32 large = x > 0x1p24f ? log(u) : y;
  return abs(x) < 1e-7f ? x : (x == -1.0f ? set1(-__builtin_inff()) : large);
}

/// 1 / d to 2^-13 or better; the quotients made of it are repaired by their residual.
RLX_INLINE F32 reciprocal_estimate(F32 d) {
#if defined(RLX_AVX512)
  return (F32)_mm512_rcp14_ps((__m512)d);
#else
  return 1.0f / d;
#endif
}

/// base - (n + n_error) / (d + d_error), nearly rounded once for base = 0.
RLX_INLINE F32 minus_quotient(F32 base, F32 n, F32 n_error, F32 d, F32 d_error) {
  const F32 inverse = reciprocal_estimate(d), y = n * inverse;
  const F32 residual = fma_exact(-y, d, n) + fma(-y, d_error, n_error);
  return fma(-residual, inverse, base - y);
}

/// base - w E / (1 + E) for E = 2^n (1 + s) <= 1. With a = |x| and E = e^-v(a), x sigmoid(v(x)) for odd v is
/// this with base = max(x, 0) and w = a: no cancellation below 0, and above 0 the larger part is exact.
RLX_INLINE F32 minus_sigmoid_tail(F32 base, F32 w, ExpParts e) {
  const F32 power = scale_by_power(set1(1.0f), e.n), scaled = scale_by_power(w, e.n);
  const F32 d = fma(e.s, power, power + 1.0f), d_error = fma_exact(e.s, power, power - (d - 1.0f));
  const F32 n = fma(scaled, e.s, scaled), n_error = fma_exact(scaled, e.s, scaled - n);
  return minus_quotient(base, n, n_error, d, d_error);
}

RLX_INLINE F32 positive_part(F32 x) { return max(set1(-0.0f), x); }

/// With E = e^-|x|: 1 / (1 + E), or E / (1 + E) below 0.
RLX_INLINE F32 sigmoid(F32 x) {
  const F32 e = exp_in_range(-min(set1(104.0f), abs(x))), d = e + 1.0f, top = x < 0.0f ? e : set1(1.0f);
  const F32 d_error = e - (d - 1.0f), inverse = reciprocal_estimate(d), y = top * inverse;
  return fma(fnma(y, d_error, fma_exact(-y, d, top)), inverse, y);
}
RLX_INLINE F32 silu(F32 x) {
  const F32 a = min(set1(110.0f), abs(x));
  return minus_sigmoid_tail(positive_part(x), a, exp_parts(-a));
}

/// 1 / d within an ulp, for numbers from 1 to 2^100.
RLX_INLINE F32 inverse(F32 d) {
#if defined(RLX_AVX512)
  const F32 y = reciprocal_estimate(d);
  return fma(fnma(d, y, set1(1.0f)), y, y);
#else
  return 1.0f / d;
#endif
}

RLX_INLINE F32 tanh(F32 x) {
  const F32 a = min(set1(10.0f), abs(x)), z = x * x;
  // |x| < 0.6: (tanh(x) / x - 1) / x^2 in x^2, 3e-9.
  const F32 p =
      polynomial(z, {-0.3333328283f, 0.1333167963f, -0.05376798351f, 0.02075134911f, -0.00584964391f});
  // Otherwise 1 - 2 / (e^2a + 1), where the fraction is at most 0.47 and its error shrinks with it.
  const F32 large = fma(inverse(exp2_of(a * 2.885390082f) + 1.0f), set1(-2.0f), set1(1.0f));
  return copy_sign(a < 0.6f ? fma(x * z, p, x) : large, x);
}

RLX_INLINE F32 erf(F32 x) {
  const F32 a = min(set1(4.1f), abs(x)), z = a * a;
  // |x| < 1: erf(x) / x - 1 in x^2, 1e-9.
  const F32 small = fma(x,
                        polynomial(z, {0.128379166f, -0.3761262667f, 0.1128359472f, -0.02685421201f,
                                       0.005189087423f, -0.0008016864287f, 7.875875063e-5f}),
                        x);
  // Otherwise 1 - erfc(a), which is at most 0.17 and whose logarithm to base 2 is nearly a polynomial; 1e-9 of erf.
  const F32 u = polynomial(a, {-0.000422742079f, -1.626320534f, -0.9202083401f, -0.1491201107f,
                               0.03167560904f, -0.004293469531f, 0.0002728990487f});
  return a < 1.0f ? small : copy_sign(1.0f - exp2_of(u), x);
}

/// Of e^u for an f64 argument: reduced in f64, the rest in f32.
RLX_INLINE ExpParts exp_parts(F64Pair u) {
  const auto reduce = [](F64 v, F64& n) {
    v = min(set1(120.0), max(set1(-120.0), v));
    n = round_small(v * 1.4426950408889634);
    return fma(n, set1(-0.6931471805599453), v);
  };
  F64Pair n;
  const F64 low = reduce(u.low, n.low), high = reduce(u.high, n.high);
  const F32 r = to_float(F64Pair{low, high});
  const F64Pair rounded = to_double(r);
  const F32 lost = to_float(F64Pair{low - rounded.low, high - rounded.high});
  return {r + fma(polynomial(r, kExpTail) * r, r, lost), to_float(n)};
}

/// x Phi(x) with the exact normal distribution. Near 0, Phi = 1/2 + erf(x / sqrt 2) / 2; further out, with
/// a = |x|, Phi(-a) = e^(-a^2/2) G / (1 + 1.5 a), G smooth in t = (a - 4) / (a + 4), and Phi(a) = 1 -
/// Phi(-a).
RLX_INLINE F32 gelu(F32 x) {
  const F32 a = min(set1(15.0f), abs(x)), z = a * a;
  // |x| < 0.7: (Phi(x) - 1/2) / x in x^2, Taylor: the first term left out is x^12 / (13 2^6 6! sqrt(2 pi)).
  const F32 near = polynomial(z, {0.3989422804f, -0.06649038006f, 0.009973557010f, -0.001187328215f,
                                  0.0001154346876f, -9.444656258e-06f});
  // 0.68 < a < 15.1: 5e-9.
  const F32 inverse = reciprocal_estimate(a + 4.0f), t0 = (a - 4.0f) * inverse;
  const F32 t = fma(fma(-t0, a + 4.0f, a - 4.0f), inverse, t0);
  const F32 g =
      polynomial(t, {0.6608744873f, -0.0598563114f, -0.04118995553f, 0.07875251038f, -0.06373370861f,
                     0.03116876682f, -0.007722393243f, -0.0008226357672f, 0.001020080883f, -9.011595637e-6f});
  // e^(-a^2/2) = 2^(z c), with what rounding took from z and c.
  const F32 c = set1(-0.7213475108f), whole = round_small(z * c);
  const F32 r = fma(fma_exact(a, a, -z), c, fma(z, set1(-9.62981517e-09f), fma_exact(z, c, -whole)));
  const ExpParts e = exp2_parts(whole, r);
  const F32 m = a * g, scaled = scale_by_power(m, e.n), n = fma(scaled, e.s, scaled);
  const F32 n_error = scale_by_power(fma_exact(a, g, -m), e.n) + fma_exact(scaled, e.s, scaled - n);
  const F32 q = fma(a, set1(1.5f), set1(1.0f)), q_error = fma_exact(a, set1(1.5f), 1.0f - q);
  const F32 far = minus_quotient(positive_part(x), n, n_error, q, q_error);
  return a < 0.7f ? x * fma(x, near, set1(0.5f)) : far;
}

/// x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): the usual 0.5 x (1 + tanh u) without its cancellation.
/// 2u log2(e) = a p with p = A + B a^2; A is cut to 2^-20, so that A - p has no rounding and shows the error
/// of p.
RLX_INLINE F32 gelu_tanh(F32 x) {
  const F32 a = min(set1(11.0f), abs(x)), z = a * a;
  const F32 high = set1(-2.30220794677734375f), b = set1(-0.1029432416f);
  const F32 p = fma(z, b, high);
  const F32 small = fma(z, set1(2.01619854e-09f), set1(-2.5136697e-07f));
  const F32 p_error = fma(fma_exact(a, a, -z), b, fma_exact(z, b, high - p) + small);
  return minus_sigmoid_tail(positive_part(x), a, exp2_parts(a, p, p_error));
}

/// x sigmoid(1.702 x), the form some vision models use.
RLX_INLINE F32 gelu_quick(F32 x) {
  const F32 a = min(set1(65.0f), abs(x));
  return minus_sigmoid_tail(positive_part(x), a, exp2_parts(a, set1(-2.455466986f), set1(2.61094986e-08f)));
}

RLX_INLINE F32 softplus(F32 x) { return max(set1(0.0f), x) + log1p(exp(-abs(x))); }

/// x^y = 2^(y log2 x), the exponent in f64; everything but finite y and normal x > 0 goes to the C library.
RLX_INLINE F32 pow(F32 x, F32 y) {
  const I32 ordinary = (x >= 0x1p-126f) & (x < __builtin_inff()) & (abs(y) < __builtin_inff());
  const F32 safe = ordinary ? x : set1(1.0f);
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const I32 shifted = (I32)safe - kRootHalf;
  const F64Pair e = to_double(to_float(shifted >> 23));
  const F64Pair m = to_double((F32)((shifted & 0x7fffff) + kRootHalf));
  const F64Pair power = to_double(ordinary ? y : set1(0.0f));
  const auto exponent = [](F64 e, F64 m, F64 power) {
    // log2(m) = 2 / ln 2 * atanh(s); the first term left out is s^16 / 17, 2^-44.
    const F64 s = (m - 1.0) / (m + 1.0), z = s * s;
    const F64 p = polynomial(z, {1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15});
    const F64 log2 = fma(s * p, set1(2 * 1.4426950408889634), e);
    return log2 * power * 0.6931471805599453;
  };
  const ExpParts parts =
      exp_parts(F64Pair{exponent(e.low, m.low, power.low), exponent(e.high, m.high, power.high)});
  const F32 fast = scale_by_power(parts.s + 1.0f, parts.n);
  if (any(~ordinary)) {
    F32 fixed = fast;
    for (int i = 0; i < kLanes; ++i) {
      if (!ordinary[i]) fixed[i] = std::pow(x[i], y[i]);
    }
    return fixed;
  }
  return fast;
}

}  // namespace rlx::cpu::RLX_ISA
