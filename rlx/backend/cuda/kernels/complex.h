// Complex numbers of kernels: c64 in memory, c128 where sums and products are taken.
#pragma once

namespace rlx::cuda {

inline constexpr char kComplexNumbers[] = R"cuda(
template <class Real> struct alignas(2 * sizeof(Real)) ComplexOf { Real x, y; };
typedef ComplexOf<f32> c64;
typedef ComplexOf<f64> c128;

template <class R> ComplexOf<R> operator+(ComplexOf<R> a, ComplexOf<R> b) { return {a.x + b.x, a.y + b.y}; }
template <class R> ComplexOf<R> operator-(ComplexOf<R> a, ComplexOf<R> b) { return {a.x - b.x, a.y - b.y}; }
template <class R> ComplexOf<R> operator*(ComplexOf<R> a, ComplexOf<R> b) {
  return {op_fma(a.x, b.x, -(a.y * b.y)), op_fma(a.x, b.y, a.y * b.x)};
}
template <class R> bool operator==(ComplexOf<R> a, ComplexOf<R> b) { return a.x == b.x && a.y == b.y; }
inline c128 as_c128(c64 z) { return {f64(z.x), f64(z.y)}; }
inline c128 op_add(c128 a, c128 b) { return a + b; }
inline c128 op_mul(c128 a, c128 b) { return a * b; }
inline c64 as_c64(c128 z) { return {f32(z.x), f32(z.y)}; }
inline void put(c64& to, c128 z) { to = as_c64(z); }
)cuda";

// Functions of c64, through f64: squares of f32 neither overflow nor vanish there. Principal values.
inline constexpr char kComplexFunctions[] = R"cuda(
inline bool is_finite(f64 x) { return x - x == 0; }
// 1 of an infinite part, 0 of another, with its sign.
inline f64 boxed(f64 x) { return copysign(x == x && !is_finite(x) ? 1.0 : 0.0, x); }
// Where the formula has nothing to say: something by zero and an infinite number by a finite one are infinite, a finite one by an
// infinite one is zero.
inline c64 quotient(c64 a, c64 b) {
  const f64 ax = a.x, ay = a.y, bx = b.x, by = b.y, infinity = from_bits(0x7ff0000000000000ull), square = bx * bx + by * by;
  const f64 x = (ax * bx + ay * by) / square, y = (ay * bx - ax * by) / square;
  if (x == x || y == y) return {f32(x), f32(y)};
  const bool a_finite = is_finite(ax) && is_finite(ay), b_finite = is_finite(bx) && is_finite(by);
  const f64 au = boxed(ax), av = boxed(ay), bu = boxed(bx), bv = boxed(by);
  if (square == 0 && (ax == ax || ay == ay)) return {f32(copysign(infinity, bx) * ax), f32(copysign(infinity, bx) * ay)};
  if (b_finite && (au != 0 || av != 0)) return {f32(infinity * (au * bx + av * by)), f32(infinity * (av * bx - au * by))};
  if (a_finite && (bu != 0 || bv != 0)) return {f32(0.0 * (ax * bu + ay * bv)), f32(0.0 * (ay * bu - ax * bv))};
  return {f32(x), f32(y)};
}
inline c64 exponential(c64 z) {
  const f64 r = exp(f64(z.x));
  if (z.y == 0) return {f32(r), z.y};
  if (z.x > 0 && !is_finite(z.x) && !is_finite(z.y)) return {f32(r), z.y - z.y};
  if (r == 0) return {f32(copysign(0.0, cos(f64(z.y)))), f32(copysign(0.0, sin(f64(z.y))))};
  return {f32(r * cos(f64(z.y))), f32(r * sin(f64(z.y)))};
}
inline c64 logarithm(c64 z) { return {f32(log(hypot(f64(z.x), f64(z.y)))), f32(atan2(f64(z.y), f64(z.x)))}; }
// |z| + |x| has no cancellation; the other part is the quotient.
inline c64 square_root(c64 z) {
  const f64 x = z.x, y = z.y, infinity = from_bits(0x7ff0000000000000ull);
  if (fabs(y) == infinity) return {f32(infinity), z.y};
  if (x == 0 && y == 0) return {0.0f, z.y};
  const f64 large = sqrt(0.5 * (hypot(x, y) + fabs(x)));
  if (large == infinity) return x > 0 ? c64{f32(large), y == y ? f32(copysign(0.0, y)) : z.y} : c64{y == y ? 0.0f : z.y, f32(copysign(large, y))};
  return x >= 0 ? c64{f32(large), f32(y / (2 * large))} : c64{f32(fabs(y) / (2 * large)), f32(copysign(large, y))};
}
)cuda";

}  // namespace rlx::cuda
