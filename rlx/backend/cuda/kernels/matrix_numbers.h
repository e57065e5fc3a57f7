// Numbers of matrix kernels: X in memory, W in which a kernel computes, Real for moduli of W. Before it stand X, W and,
// for c64, COMPLEX; X and W are then Complex.
#pragma once

namespace rlx::cuda {

inline constexpr char kMatrixNumbers[] = R"cuda(
#ifdef COMPLEX
struct alignas(8) Complex { f32 re, im; };
typedef Complex X;
typedef Complex W;
typedef f32 Real;
inline W operator+(W a, W b) { return {a.re + b.re, a.im + b.im}; }
inline W operator-(W a, W b) { return {a.re - b.re, a.im - b.im}; }
inline W operator*(W a, W b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline W operator*(Real a, W b) { return {a * b.re, a * b.im}; }
// By the larger part of b (Smith): the squares of its parts need not be numbers.
inline W operator/(W a, W b) {
  if (fabsf(b.re) >= fabsf(b.im)) {
    const f32 r = b.im / b.re, d = b.re + b.im * r;
    return {(a.re + a.im * r) / d, (a.im - a.re * r) / d};
  }
  const f32 r = b.re / b.im, d = b.re * r + b.im;
  return {(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}
inline W operator/(W a, Real b) { return {a.re / b, a.im / b}; }
inline W minus_product(W s, W a, W b) {
  return {fmaf(-a.re, b.re, fmaf(a.im, b.im, s.re)), fmaf(-a.re, b.im, fmaf(-a.im, b.re, s.im))};
}
inline W from_lane(W x, int lane) { return {__shfl_sync(~0u, x.re, lane), __shfl_sync(~0u, x.im, lane)}; }
inline W conjugated(W x) { return {x.re, -x.im}; }
inline Real modulus(W x) { return hypotf(x.re, x.im); }
inline Real real_of(W x) { return x.re; }
inline W of_real(Real x) { return {x, 0}; }
inline W widened(X x) { return x; }
inline void narrowed(X& to, W x) { to = x; }
#else
typedef W Real;
inline W minus_product(W s, W a, W b) { return op_fma(-a, b, s); }
inline W from_lane(W x, int lane) { return __shfl_sync(~0u, x, lane); }
inline W conjugated(W x) { return x; }
inline Real modulus(W x) { return op_abs(x); }
inline Real real_of(W x) { return x; }
inline W of_real(Real x) { return x; }
inline W widened(f16 x) { return W(as_f32(x)); }
inline W widened(bf16 x) { return W(as_f32(x)); }
inline W widened(f32 x) { return W(x); }
inline W widened(f64 x) { return W(x); }
inline void narrowed(f16& to, W x) { put(to, f32(x)); }
inline void narrowed(bf16& to, W x) { put(to, f32(x)); }
inline void narrowed(f32& to, W x) { to = f32(x); }
inline void narrowed(f64& to, W x) { to = f64(x); }
#endif

// Where the elements of the matrices of a batch lie.
struct Lies { i64 row, column, batch; };

// Of a matrix the first that is told stays, for what follows finds more; of several matrices the first one, whichever block comes first. A
// fault of another kind, of an earlier step, stays.
inline void tell(u64* fault, u64 number, u64 matrix, u64 per, u64 what) {
  constexpr u64 kElements = (u64(1) << 40) - 1;
  const u64 word = (number << 40) + matrix * per + what;
  u64 seen = *static_cast<volatile u64*>(fault);
  while (seen == 0 || (seen >> 40 == number && (seen & kElements) / per > matrix)) {
    const u64 found = atomicCAS(fault, seen, word);
    if (found == seen) return;
    seen = found;
  }
}
)cuda";

}  // namespace rlx::cuda
