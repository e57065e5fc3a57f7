// Small discrete Fourier transforms of vectors: lane l of re[j], im[j] is point j of transform l.
//
// y[k] = sum over j of x[j] e^(-2 pi i j k / R), in place and in natural order. Powers of two are built from
// the transform of four points, whose factors are 1, -i, -1, i. An odd radix pairs j with R - j: with
// t = x[j] + x[R-j], u = x[j] - x[R-j],
//   y[k], y[R-k] = (x[0] + sum of cos(2 pi j k / R) t) -+ i (sum of sin(2 pi j k / R) u),  j, k <= (R-1)/2,
// half the multiplications of the plain sum, all of them fused.
#pragma once

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

inline constexpr int kMaxRadix = 31;

template <class V>
RLX_INLINE void butterfly4(V& r0, V& i0, V& r1, V& i1, V& r2, V& i2, V& r3, V& i3) {
  const V ar = r0 + r2, ai = i0 + i2, br = r0 - r2, bi = i0 - i2;
  const V cr = r1 + r3, ci = i1 + i3, dr = r1 - r3, di = i1 - i3;
  r0 = ar + cr, i0 = ai + ci;
  r1 = br + di, i1 = bi - dr;
  r2 = ar - cr, i2 = ai - ci;
  r3 = br - di, i3 = bi + dr;
}

template <class V>
RLX_INLINE void butterfly8(V (&re)[8], V (&im)[8]) {
  butterfly4(re[0], im[0], re[2], im[2], re[4], im[4], re[6], im[6]);
  butterfly4(re[1], im[1], re[3], im[3], re[5], im[5], re[7], im[7]);
  // The even transform is now in 0, 2, 4, 6, the odd one in 1, 3, 5, 7; the odd one is turned by e^(-pi i
  // k/4).
  const decltype(re[0][0] + 0) h = 0.70710678118654752440;
  const V r1 = (re[3] + im[3]) * h, i1 = (im[3] - re[3]) * h;
  const V r2 = im[5], i2 = -re[5];
  const V r3 = (im[7] - re[7]) * h, i3 = (re[7] + im[7]) * -h;
  const V e1r = re[2], e1i = im[2], e2r = re[4], e2i = im[4], e3r = re[6], e3i = im[6], o0r = re[1],
          o0i = im[1], e0r = re[0], e0i = im[0];
  re[0] = e0r + o0r, im[0] = e0i + o0i, re[4] = e0r - o0r, im[4] = e0i - o0i;
  re[1] = e1r + r1, im[1] = e1i + i1, re[5] = e1r - r1, im[5] = e1i - i1;
  re[2] = e2r + r2, im[2] = e2i + i2, re[6] = e2r - r2, im[6] = e2i - i2;
  re[3] = e3r + r3, im[3] = e3i + i3, re[7] = e3r - r3, im[7] = e3i - i3;
}

/// (re, im) *= (c, s).
template <class V, class T>
RLX_INLINE void turn(V& re, V& im, T c, T s) {
  const V vc = set1(c), vs = set1(s), r = re;
  re = fma(r, vc, -(im * vs));
  im = fma(r, vs, im * vc);
}

/// j = 4 a + b: four transforms over a, turned by e^(-2 pi i b k / 16), then four over b.
template <class V>
RLX_INLINE void butterfly16(V (&re)[16], V (&im)[16]) {
  using T = decltype(re[0][0] + 0);
  constexpr T c1 = T(0.92387953251128675613), s1 = T(0.38268343236508977173), h = T(0.70710678118654752440);
#pragma GCC unroll 4
  for (int b = 0; b < 4; ++b) {
    butterfly4(re[b], im[b], re[b + 4], im[b + 4], re[b + 8], im[b + 8], re[b + 12], im[b + 12]);
  }
  turn(re[5], im[5], c1, -s1), turn(re[9], im[9], h, -h), turn(re[13], im[13], s1, -c1);
  turn(re[6], im[6], h, -h), turn(re[14], im[14], -h, -h);
  turn(re[7], im[7], s1, -c1), turn(re[11], im[11], -h, -h), turn(re[15], im[15], -c1, s1);
  const V r = re[10];
  re[10] = im[10], im[10] = -r;
#pragma GCC unroll 4
  for (int k = 0; k < 16; k += 4) {
    butterfly4(re[k], im[k], re[k + 1], im[k + 1], re[k + 2], im[k + 2], re[k + 3], im[k + 3]);
  }
  // Result k1 + 4 k2 is now at 4 k1 + k2.
#pragma GCC unroll 4
  for (int a = 0; a < 4; ++a) {
#pragma GCC unroll 4
    for (int b = 0; b < a; ++b) {
      const V x = re[4 * a + b], y = im[4 * a + b];
      re[4 * a + b] = re[4 * b + a], im[4 * a + b] = im[4 * b + a];
      re[4 * b + a] = x, im[4 * b + a] = y;
    }
  }
}

/// Odd R up to kMaxRadix, known to the compiler for the common ones. roots: cos and sin of 2 pi j k / R for
/// j, k = 1 .. (R-1)/2, [j][k][2].
template <class V, class T>
RLX_INLINE void butterfly_odd(int R, V* re, V* im, const T* roots) {
  const int h = (R - 1) / 2;
  const V x0r = re[0], x0i = im[0];
  V tr[kMaxRadix / 2], ti[kMaxRadix / 2], ur[kMaxRadix / 2], ui[kMaxRadix / 2];
  V sr = x0r, si = x0i;
#pragma GCC unroll 6
  for (int j = 0; j < h; ++j) {
    tr[j] = re[j + 1] + re[R - 1 - j], ti[j] = im[j + 1] + im[R - 1 - j];
    ur[j] = re[j + 1] - re[R - 1 - j], ui[j] = im[j + 1] - im[R - 1 - j];
    sr = sr + tr[j], si = si + ti[j];
  }
  re[0] = sr, im[0] = si;
#pragma GCC unroll 6
  for (int k = 0; k < h; ++k) {
    V ar = x0r, ai = x0i, br = V{}, bi = V{};
#pragma GCC unroll 6
    for (int j = 0; j < h; ++j) {
      const V c = set1(roots[(j * h + k) * 2]), s = set1(roots[(j * h + k) * 2 + 1]);
      ar = fma(c, tr[j], ar), ai = fma(c, ti[j], ai);
      br = j == 0 ? s * ur[j] : fma(s, ur[j], br);
      bi = j == 0 ? s * ui[j] : fma(s, ui[j], bi);
    }
    re[k + 1] = ar + bi, im[k + 1] = ai - br;
    re[R - 1 - k] = ar - bi, im[R - 1 - k] = ai + br;
  }
}

template <int R, class V, class T>
RLX_INLINE void butterfly(V (&re)[R], V (&im)[R], const T* roots) {
  if constexpr (R == 2) {
    const V r = re[0], i = im[0];
    re[0] = r + re[1], im[0] = i + im[1];
    re[1] = r - re[1], im[1] = i - im[1];
  } else if constexpr (R == 4) {
    butterfly4(re[0], im[0], re[1], im[1], re[2], im[2], re[3], im[3]);
  } else if constexpr (R == 8) {
    butterfly8(re, im);
  } else if constexpr (R == 16) {
    butterfly16(re, im);
  } else {
    butterfly_odd(R, re, im, roots);
  }
}

}  // namespace rlx::cpu::RLX_ISA
