// What every kernel text may use: number types, conversions, the operations of regions, reductions. It is
// CUDA C++, compiled together with each kernel; no header of NVIDIA is needed. Operations mean what
// rlx/region/scalar.h says.
#pragma once

namespace rlx::cuda {

inline constexpr char kPrelude[] = R"cuda(
typedef unsigned char u8;
typedef signed char i8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
struct f16 { u16 bits; };
struct bf16 { u16 bits; };

// The first words of every kernel; the compiler's caller puts them there where a text does not say them itself. The next
// kernel may come to the processors from now on, and what the kernels before wrote is there.
inline void begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The same for a kernel whose processors are its own to the end: the next one comes when it has ended.
inline void begin_alone() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Cycles, some nine seconds, after which a block that others do not join is a fault: on a GPU that programs share, or under a sanitizer, a second may pass.
constexpr i64 kPatience = i64(1) << 34;

inline f32 from_bits(u32 x) { return __int_as_float(i32(x)); }
inline f64 from_bits(u64 x) { return __longlong_as_double(i64(x)); }
inline f16 to_f16(f32 x) { f16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); return y; }
inline bf16 to_bf16(f32 x) { bf16 y; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); return y; }

// From memory to a lane.
inline f32 as_f32(f16 x) { f32 y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
inline f32 as_f32(bf16 x) { return from_bits(u32(x.bits) << 16); }
template <class T> f32 as_f32(T x) { return f32(x); }
inline f64 as_f64(f16 x) { return f64(as_f32(x)); }
inline f64 as_f64(bf16 x) { return f64(as_f32(x)); }
template <class T> f64 as_f64(T x) { return f64(x); }
template <class T> i32 as_i32(T x) { return i32(x); }
template <class T> i64 as_i64(T x) { return i64(x); }
inline bool as_mask(u8 x) { return x != 0; }

// From a lane to memory.
inline void put(f16& to, f32 x) { to = to_f16(x); }
inline void put(bf16& to, f32 x) { to = to_bf16(x); }
template <class T, class V> void put(T& to, V x) { to = T(x); }

// From lane to lane. Floats to integers truncate and saturate; NaN is 0.
template <class T> f32 to_f32(T x) { return f32(x); }
template <class T> f64 to_f64(T x) { return f64(x); }
inline i32 to_i32(f32 x) { return x != x ? 0 : __float2int_rz(x); }
inline i32 to_i32(f64 x) { return x != x ? 0 : __double2int_rz(x); }
template <class T> i32 to_i32(T x) { return i32(x); }
inline i64 to_i64(f32 x) { return x != x ? 0 : __float2ll_rz(x); }
inline i64 to_i64(f64 x) { return x != x ? 0 : __double2ll_rz(x); }
template <class T> i64 to_i64(T x) { return i64(x); }
template <class T> bool to_mask(T x) { return x != T(0); }

// Of one number.
inline f32 op_neg(f32 x) { return -x; }
inline f64 op_neg(f64 x) { return -x; }
inline i32 op_neg(i32 x) { return i32(0u - u32(x)); }
inline i64 op_neg(i64 x) { return i64(0ull - u64(x)); }
inline f32 op_abs(f32 x) { return fabsf(x); }
inline f64 op_abs(f64 x) { return fabs(x); }
inline i32 op_abs(i32 x) { return x < 0 ? op_neg(x) : x; }
inline i64 op_abs(i64 x) { return x < 0 ? op_neg(x) : x; }
inline f32 op_sign(f32 x) { return x != x ? x : f32((x > 0) - (x < 0)); }
inline f64 op_sign(f64 x) { return x != x ? x : f64((x > 0) - (x < 0)); }
template <class T> T op_sign(T x) { return T((x > 0) - (x < 0)); }
inline f32 op_square(f32 x) { return x * x; }
inline f64 op_square(f64 x) { return x * x; }
inline i32 op_square(i32 x) { return i32(u32(x) * u32(x)); }
inline i64 op_square(i64 x) { return i64(u64(x) * u64(x)); }
inline f32 op_sqrt(f32 x) { return sqrtf(x); }
inline f64 op_sqrt(f64 x) { return sqrt(x); }
inline f32 op_rsqrt(f32 x) { return rsqrtf(x); }
inline f64 op_rsqrt(f64 x) { return 1.0 / sqrt(x); }
inline f32 op_reciprocal(f32 x) { return 1.0f / x; }
inline f64 op_reciprocal(f64 x) { return 1.0 / x; }
inline f32 op_exp(f32 x) { return expf(x); }
inline f64 op_exp(f64 x) { return exp(x); }
inline f32 op_expm1(f32 x) { return expm1f(x); }
inline f64 op_expm1(f64 x) { return expm1(x); }
inline f32 op_log(f32 x) { return logf(x); }
inline f64 op_log(f64 x) { return log(x); }
inline f32 op_log1p(f32 x) { return log1pf(x); }
inline f64 op_log1p(f64 x) { return log1p(x); }
inline f32 op_sin(f32 x) { return sinf(x); }
inline f64 op_sin(f64 x) { return sin(x); }
inline f32 op_cos(f32 x) { return cosf(x); }
inline f64 op_cos(f64 x) { return cos(x); }
inline f32 op_tan(f32 x) { return tanf(x); }
inline f64 op_tan(f64 x) { return tan(x); }
inline f32 op_atan(f32 x) { return atanf(x); }
inline f64 op_atan(f64 x) { return atan(x); }
inline f32 op_tanh(f32 x) { return tanhf(x); }
inline f64 op_tanh(f64 x) { return tanh(x); }
// a / b of b in [1, 2] and a in [0, 1]: with its remainder the quotient is rounded as a division rounds it, without the branch for other operands.
inline f32 div_by_one_to_two(f32 a, f32 b) {
  f32 r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  const f32 q = a * r;
  return fmaf(fmaf(-q, b, a), r, q);
}
inline f32 op_sigmoid(f32 x) { const f32 e = expf(-fabsf(x)); return div_by_one_to_two(x >= 0 ? 1.0f : e, 1.0f + e); }
inline f64 op_sigmoid(f64 x) { const f64 e = exp(-fabs(x)); return (x >= 0 ? 1.0 : e) / (1.0 + e); }
inline f32 op_erf(f32 x) { return erff(x); }
inline f64 op_erf(f64 x) { return erf(x); }
inline f32 op_relu(f32 x) { return x < 0 ? 0.0f : x; }
inline f64 op_relu(f64 x) { return x < 0 ? 0.0 : x; }
template <class T> T op_relu(T x) { return x < 0 ? T(0) : x; }
inline f32 gated(f32 x, f32 v) { return x == -from_bits(0x7f800000u) ? -0.0f : x * op_sigmoid(v); }
inline f64 gated(f64 x, f64 v) { return x == -from_bits(0x7ff0000000000000ull) ? -0.0 : x * op_sigmoid(v); }
inline f32 op_silu(f32 x) { return gated(x, x); }
inline f64 op_silu(f64 x) { return gated(x, x); }
inline f32 op_gelu(f32 x) { return x == -from_bits(0x7f800000u) ? -0.0f : 0.5f * x * erfcf(-x * 0.70710678118654752440f); }
inline f64 op_gelu(f64 x) { return x == -from_bits(0x7ff0000000000000ull) ? -0.0 : 0.5 * x * erfc(-x * 0.70710678118654752440); }
inline f32 op_gelu_tanh(f32 x) { return gated(x, 1.5957691216057307f * (x + 0.044715f * x * x * x)); }
inline f64 op_gelu_tanh(f64 x) { return gated(x, 1.5957691216057307117597842397375 * (x + 0.044715 * x * x * x)); }
inline f32 op_gelu_quick(f32 x) { return gated(x, 1.702f * x); }
inline f64 op_gelu_quick(f64 x) { return gated(x, 1.702 * x); }
inline f32 op_softplus(f32 x) { return (x < 0 ? 0.0f : x) + log1pf(expf(-fabsf(x))); }
inline f64 op_softplus(f64 x) { return (x < 0 ? 0.0 : x) + log1p(exp(-fabs(x))); }
inline f32 op_floor(f32 x) { return floorf(x); }
inline f64 op_floor(f64 x) { return floor(x); }
inline f32 op_ceil(f32 x) { return ceilf(x); }
inline f64 op_ceil(f64 x) { return ceil(x); }
inline f32 op_round(f32 x) { return rintf(x); }
inline f64 op_round(f64 x) { return rint(x); }
inline f32 op_round_f16(f32 x) { return as_f32(to_f16(x)); }
inline f32 op_round_bf16(f32 x) { return as_f32(to_bf16(x)); }
inline bool op_bit_not(bool x) { return !x; }
template <class T> T op_bit_not(T x) { return ~x; }

// Where the result is rounded to 16 bits at once: some 20 bits are enough. The last is Abramowitz and
// Stegun 7.1.26, within 1.5e-7 of erfc.
inline f32 fast_exp(f32 x) { return __expf(x); }
inline f32 fast_sigmoid(f32 x) { const f32 e = __expf(-fabsf(x)); return __fdividef(x >= 0 ? 1.0f : e, 1.0f + e); }
inline f32 fast_tanh(f32 x) {
  const f32 e = __expf(-2.0f * fabsf(x));
  return fabsf(x) < 0.04f ? x * fmaf(x * x, -1.0f / 3.0f, 1.0f) : copysignf(__fdividef(1.0f - e, 1.0f + e), x);
}
inline f32 fast_gated(f32 x, f32 v) { return x == -from_bits(0x7f800000u) ? -0.0f : x * fast_sigmoid(v); }
inline f32 fast_silu(f32 x) { return fast_gated(x, x); }
inline f32 fast_gelu_tanh(f32 x) { return fast_gated(x, 1.5957691216057307f * fmaf(0.044715f * x * x, x, x)); }
inline f32 fast_gelu_quick(f32 x) { return fast_gated(x, 1.702f * x); }
// x (1 - h) for x >= 0 and x h below, with h = erfc(|x| / sqrt 2) / 2 = p(t) t exp(-x^2 / 2), t = 1 / (1 + 0.3275911 |x| / sqrt 2).
inline f32 fast_gelu(f32 x) {
  f32 t, e;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(fmaf(0.23164189f, fabsf(x), 1.0f)));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(x * x * -0.72134752f));
  const f32 p = fmaf(fmaf(fmaf(fmaf(0.5307027145f, t, -0.7265760135f), t, 0.7107068705f), t, -0.142248368f), t, 0.127414796f);
  return fmaf(-fminf(fabsf(x), 1e30f), p * t * e, x < 0 ? 0.0f : x);
}

// Of two numbers.
inline f32 op_add(f32 a, f32 b) { return a + b; }
inline f64 op_add(f64 a, f64 b) { return a + b; }
inline i32 op_add(i32 a, i32 b) { return i32(u32(a) + u32(b)); }
inline i64 op_add(i64 a, i64 b) { return i64(u64(a) + u64(b)); }
inline f32 op_sub(f32 a, f32 b) { return a - b; }
inline f64 op_sub(f64 a, f64 b) { return a - b; }
inline i32 op_sub(i32 a, i32 b) { return i32(u32(a) - u32(b)); }
inline i64 op_sub(i64 a, i64 b) { return i64(u64(a) - u64(b)); }
inline f32 op_mul(f32 a, f32 b) { return a * b; }
inline f64 op_mul(f64 a, f64 b) { return a * b; }
inline i32 op_mul(i32 a, i32 b) { return i32(u32(a) * u32(b)); }
inline i64 op_mul(i64 a, i64 b) { return i64(u64(a) * u64(b)); }
inline f32 op_div(f32 a, f32 b) { return a / b; }
inline f64 op_div(f64 a, f64 b) { return a / b; }
template <class T> T op_div(T a, T b) { return b == 0 ? T(0) : b == -1 ? op_neg(a) : T(a / b); }
template <class T> T op_max(T a, T b) { return a > b || a != a ? a : b; }
template <class T> T op_min(T a, T b) { return a < b || a != a ? a : b; }
inline f32 op_rem(f32 a, f32 b) { return fmodf(a, b); }
inline f64 op_rem(f64 a, f64 b) { return fmod(a, b); }
template <class T> T op_rem(T a, T b) { return b == 0 || b == -1 ? T(0) : T(a % b); }
inline f32 op_pow(f32 a, f32 b) { return powf(a, b); }
inline f64 op_pow(f64 a, f64 b) { return pow(a, b); }
template <class T> T op_bit_and(T a, T b) { return T(a & b); }
template <class T> T op_bit_or(T a, T b) { return T(a | b); }
template <class T> T op_bit_xor(T a, T b) { return T(a ^ b); }
inline i32 op_shift_left(i32 a, i32 b) { return b >= 0 && b < 32 ? i32(u32(a) << b) : 0; }
inline i64 op_shift_left(i64 a, i64 b) { return b >= 0 && b < 64 ? i64(u64(a) << b) : 0; }
inline i32 op_shift_right(i32 a, i32 b) { return a >> (b >= 0 && b < 32 ? b : 31); }
inline i64 op_shift_right(i64 a, i64 b) { return a >> (b >= 0 && b < 64 ? b : 63); }

// x y + s, rounded once.
inline f32 op_fma(f32 x, f32 y, f32 s) { return fmaf(x, y, s); }
inline f64 op_fma(f64 x, f64 y, f64 s) { return fma(x, y, s); }

// Neighbours in memory that are read and written together.
template <class T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };
template <int N, class T> Pack<T, N> load(const T* p) { return *reinterpret_cast<const Pack<T, N>*>(p); }
// The same where nobody writes while the kernel runs: such loads may go in front of stores.
template <int N, class T> Pack<T, N> load_fixed(const T* p) {
  constexpr int kWords = int(sizeof(Pack<T, N>)) / 4;
  if constexpr (kWords == 4) {
    Pack<u32, 4> w;
    asm("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(w.v[0]), "=r"(w.v[1]), "=r"(w.v[2]), "=r"(w.v[3]) : "l"(p));
    return reinterpret_cast<const Pack<T, N>&>(w);
  } else if constexpr (kWords == 2) {
    Pack<u32, 2> w;
    asm("ld.global.nc.v2.u32 {%0,%1}, [%2];" : "=r"(w.v[0]), "=r"(w.v[1]) : "l"(p));
    return reinterpret_cast<const Pack<T, N>&>(w);
  } else {
    return load<N>(p);
  }
}
// The same, asked for where it stands: compilers move other loads to where a value is needed and never in front of a store.
template <int N, class T> Pack<T, N> load_ahead(const T* p) {
  if constexpr (sizeof(Pack<T, N>) == 16) {
    Pack<u32, 4> w;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(w.v[0]), "=r"(w.v[1]), "=r"(w.v[2]), "=r"(w.v[3]) : "l"(p));
    return reinterpret_cast<const Pack<T, N>&>(w);
  } else {
    return load<N>(p);
  }
}
template <class T, int N> void store(T* p, const Pack<T, N>& x) { *reinterpret_cast<Pack<T, N>*>(p) = x; }

// Reductions over threads, always in the same order.
struct Sum { template <class T> static T of(T a, T b) { return op_add(a, b); } };
struct Prod { template <class T> static T of(T a, T b) { return op_mul(a, b); } };
struct Max { template <class T> static T of(T a, T b) { return op_max(a, b); } };
struct Min { template <class T> static T of(T a, T b) { return op_min(a, b); } };
// Over the neighbouring lanes of a warp that share a row.
template <class Op, int Lanes = 32, class T> T over_warp(T x) {
  #pragma unroll
  for (int o = Lanes / 2; o > 0; o >>= 1) x = Op::of(x, __shfl_xor_sync(~0u, x, o));
  return x;
}
// `shared` holds one T for each warp.
template <class Op, int Warps, class T> T over_block(T x, void* shared) {
  T* const parts = static_cast<T*>(shared);
  x = over_warp<Op>(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  T all = parts[0];
  #pragma unroll
  for (int i = 1; i < Warps; ++i) all = Op::of(all, parts[i]);
  return all;
}
// Over threadIdx.y; `shared` holds one T for each thread.
template <class Op, int Height, class T> T over_y(T x, void* shared) {
  T* const parts = static_cast<T*>(shared);
  __syncthreads();
  parts[threadIdx.y * 32 + threadIdx.x] = x;
  __syncthreads();
  T all = parts[threadIdx.x];
  #pragma unroll
  for (int i = 1; i < Height; ++i) all = Op::of(all, parts[i * 32 + threadIdx.x]);
  return all;
}
)cuda";

}  // namespace rlx::cuda
