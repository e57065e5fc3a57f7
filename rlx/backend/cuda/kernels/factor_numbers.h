// Numbers N in which factors are found: f64, or two of them for c64. Before it stand the numbers of kernels/matrix_numbers.h, W being f64 for real ones, and
// kernels/scaled_columns.h; P is the type of real results in memory.
#pragma once

namespace rlx::cuda {

inline constexpr char kFactorNumbers[] = R"cuda(
#ifdef COMPLEX
struct alignas(16) N { f64 re, im; };
typedef f32 P;
inline void narrowed(P& to, f64 x) { to = f32(x); }
inline void narrowed(X& to, N x) { to = {f32(x.re), f32(x.im)}; }
inline N number_of(X x) { return {f64(x.re), f64(x.im)}; }
inline N number(f64 x) { return {x, 0}; }
inline f64 real_part(N x) { return x.re; }
inline N conjugate(N x) { return {x.re, -x.im}; }
inline N operator+(N a, N b) { return {a.re + b.re, a.im + b.im}; }
inline N operator-(N a, N b) { return {a.re - b.re, a.im - b.im}; }
inline N operator-(N a) { return {-a.re, -a.im}; }
inline N operator*(f64 a, N b) { return {a * b.re, a * b.im}; }
inline N operator*(N a, N b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline N operator/(N a, f64 b) { return {a.re / b, a.im / b}; }
inline N plus_product(N s, N a, N b) { return {fma(-a.im, b.im, fma(a.re, b.re, s.re)), fma(a.im, b.re, fma(a.re, b.im, s.im))}; }
inline N plus_inner(N s, N a, N b) { return plus_product(s, conjugate(a), b); }
inline f64 plus_square(f64 s, N x) { return fma(x.im, x.im, fma(x.re, x.re, s)); }
inline f64 size_of(N x) { return hypot(x.re, x.im); }
inline f64 largest_part(X x) { const f64 re = fabs(f64(x.re)), im = fabs(f64(x.im)); return re - re == 0 && im - im == 0 ? fmax(re, im) : infinity(); }
inline N phase_of(N x) { const f64 size = size_of(x); return size > 0 ? x / size : number(1); }
inline N with_power(N x, int e) { return {ldexp(x.re, e), ldexp(x.im, e)}; }
inline N over_lanes(N x) { return {over_warp<Sum>(x.re), over_warp<Sum>(x.im)}; }
inline N no_number() { return {not_a_number(), not_a_number()}; }
// An element off the diagonal as a real one behind a turn, which is `turn_of`.
inline f64 real_off(N off) { return size_of(off); }
inline N turn_of(N off) { return conjugate(phase_of(off)); }
inline N in_phase(N x, N turn) { return x * turn; }
#else
typedef f64 N;
typedef X P;
inline N number_of(X x) { return f64(widened(x)); }
inline N number(f64 x) { return x; }
inline f64 real_part(N x) { return x; }
inline N conjugate(N x) { return x; }
inline N plus_product(N s, N a, N b) { return fma(a, b, s); }
inline N plus_inner(N s, N a, N b) { return fma(a, b, s); }
inline f64 plus_square(f64 s, N x) { return fma(x, x, s); }
inline f64 size_of(N x) { return fabs(x); }
inline f64 largest_part(X x) { const f64 size = fabs(f64(widened(x))); return size - size == 0 ? size : infinity(); }
inline N phase_of(N x) { return x < 0 ? -1.0 : 1.0; }
inline N with_power(N x, int e) { return ldexp(x, e); }
inline N over_lanes(N x) { return over_warp<Sum>(x); }
inline N no_number() { return not_a_number(); }
inline f64 real_off(N off) { return off; }
inline N turn_of(N) { return 1.0; }
inline N in_phase(N x, N) { return x; }
#endif
)cuda";

}  // namespace rlx::cuda
