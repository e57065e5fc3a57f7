// CUDA C++ as C++ for the host: put before every kernel. What threads of a warp or a block do together goes to the driver
// (machine.h); PTX comes as calls of the functions in ptx.h, matrix.h and hopper.h, which ../ptx.cpp writes in the place of asm.
#pragma once

#include "machine.h"

extern "C" {
float expf(float);
float exp2f(float);
float expm1f(float);
float logf(float);
float log2f(float);
float log10f(float);
float log1pf(float);
float sinf(float);
float cosf(float);
float tanf(float);
float asinf(float);
float acosf(float);
float atanf(float);
float atan2f(float, float);
float sinhf(float);
float coshf(float);
float tanhf(float);
float asinhf(float);
float acoshf(float);
float atanhf(float);
float erff(float);
float erfcf(float);
float lgammaf(float);
float tgammaf(float);
float powf(float, float);
float fmodf(float, float);
float remainderf(float, float);
float hypotf(float, float);
float cbrtf(float);
float sqrtf(float);
float fabsf(float);
float floorf(float);
float ceilf(float);
float truncf(float);
float rintf(float);
float roundf(float);
float nearbyintf(float);
float fmaf(float, float, float);
float fmaxf(float, float);
float fminf(float, float);
float copysignf(float, float);
float ldexpf(float, int);
float frexpf(float, int*);
double exp(double);
double exp2(double);
double expm1(double);
double log(double);
double log2(double);
double log10(double);
double log1p(double);
double sin(double);
double cos(double);
double tan(double);
double asin(double);
double acos(double);
double atan(double);
double atan2(double, double);
double sinh(double);
double cosh(double);
double tanh(double);
double asinh(double);
double acosh(double);
double atanh(double);
double erf(double);
double erfc(double);
double lgamma(double);
double tgamma(double);
double pow(double, double);
double fmod(double, double);
double hypot(double, double);
double cbrt(double);
double sqrt(double);
double fabs(double);
double floor(double);
double ceil(double);
double trunc(double);
double rint(double);
double round(double);
double fma(double, double, double);
double fmax(double, double);
double fmin(double, double);
double copysign(double, double);
double ldexp(double, int);
double frexp(double, int*);
}

static emulated::Machine* emulated_machine;
extern "C" char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));

#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __global__ static
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define alignas(n) __attribute__((aligned(n)))
// One section of the module holds all of a block's shared memory; it is memory that no file holds.
#define __shared__ static __attribute__((section("emulated_shared,\"aw\",@nobits#")))

#define threadIdx (emulated_machine->thread)
#define blockIdx (emulated_machine->block)
#define blockDim (emulated_machine->block_size)
#define gridDim (emulated_machine->grid)
constexpr int warpSize = 32;

using uint3 = emulated::Index;
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
#define EMULATED_VECTORS(type, name, single, pair, quad)              \
  struct name##1 { type x; };                                         \
  struct __attribute__((aligned(pair))) name##2 { type x, y; };       \
  struct __attribute__((aligned(quad))) name##4 { type x, y, z, w; }; \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }    \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMULATED_VECTORS(float, float, 4, 8, 16)
EMULATED_VECTORS(double, double, 8, 16, 16)
EMULATED_VECTORS(int, int, 4, 8, 16)
EMULATED_VECTORS(unsigned, uint, 4, 8, 16)
EMULATED_VECTORS(short, short, 2, 4, 8)
EMULATED_VECTORS(unsigned short, ushort, 2, 4, 8)
EMULATED_VECTORS(signed char, char, 1, 2, 4)
EMULATED_VECTORS(unsigned char, uchar, 1, 2, 4)
EMULATED_VECTORS(long long, longlong, 8, 16, 16)
EMULATED_VECTORS(unsigned long long, ulonglong, 8, 16, 16)

namespace emulated {

template <class To, class From>
inline To bits(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}

template <class T, class P>
inline T saturated(P x) {
  constexpr bool wide = sizeof(T) == 8;
  const double least = wide ? -9223372036854775808.0 : -2147483648.0, most = -least;
  if (x != x) return wide ? T(1ull << 63) : T(0);
  if (double(x) >= most) return wide ? T(~0ull >> 1) : T(0x7fffffff);
  if (double(x) < least) return wide ? T(1ull << 63) : T(1u << 31);
  return T(x);
}

}  // namespace emulated

// ---- numbers ----
inline float __int_as_float(int x) { return emulated::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emulated::bits<float>(x); }
inline int __float_as_int(float x) { return emulated::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return emulated::bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return emulated::bits<double>(x); }
inline long long __double_as_longlong(double x) { return emulated::bits<long long>(x); }
inline int __float2int_rz(float x) { return emulated::saturated<int>(x); }
inline int __double2int_rz(double x) { return emulated::saturated<int>(x); }
inline long long __float2ll_rz(float x) { return emulated::saturated<long long>(x); }
inline long long __double2ll_rz(double x) { return emulated::saturated<long long>(x); }
inline int __float2int_rn(float x) { return emulated::saturated<int>(rintf(x)); }
inline int __float2int_rd(float x) { return emulated::saturated<int>(floorf(x)); }
inline int __float2int_ru(float x) { return emulated::saturated<int>(ceilf(x)); }
inline float __int2float_rn(int x) { return float(x); }
inline float __expf(float x) { return expf(x); }
inline float __exp2f(float x) { return exp2f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return float(1.0 / sqrt(double(x))); }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float rsqrtf(float x) { return float(1.0 / sqrt(double(x))); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline void sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline bool isnan(float x) { return x != x; }
inline bool isnan(double x) { return x != x; }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a > b ? a : b; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)(x)); }
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; ++i) y |= (x >> i & 1) << (31 - i);
  return y;
}
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned((unsigned long long)(x)*y >> 32); }
inline int __mulhi(int x, int y) { return int((long long)(x)*y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)(x)*y >> 64);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned which) {
  const unsigned long long both = (unsigned long long)(y) << 32 | x;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned at = which >> (4 * i) & 15;
    unsigned byte = unsigned(both >> (8 * (at & 7))) & 255;
    if (at & 8) byte = byte & 128 ? 255 : 0;  // the sign of it
    out |= byte << (8 * i);
  }
  return out;
}
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 4; ++i) sum += int((signed char)(a >> (8 * i))) * int((signed char)(b >> (8 * i)));
  return sum;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (int i = 0; i < 4; ++i) sum += (a >> (8 * i) & 255) * (b >> (8 * i) & 255);
  return sum;
}
inline int __vsubss4(int a, int b) {
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) {
    int d = int((signed char)(a >> (8 * i))) - int((signed char)(b >> (8 * i)));
    d = d < -128 ? -128 : d > 127 ? 127 : d;
    out |= unsigned(d & 255) << (8 * i);
  }
  return int(out);
}
inline unsigned __vsub4(unsigned a, unsigned b) {
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) out |= (((a >> (8 * i)) - (b >> (8 * i))) & 255) << (8 * i);
  return out;
}

// ---- memory ----
template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T, class V>
inline void __stcs(T* p, V x) {
  *p = x;
}
template <class T, class V>
inline void __stcg(T* p, V x) {
  *p = x;
}
inline void __threadfence() { __asm__ volatile("" ::: "memory"); }
inline void __threadfence_block() { __asm__ volatile("" ::: "memory"); }
inline void __threadfence_system() { __asm__ volatile("" ::: "memory"); }
inline void __nanosleep(unsigned) {
  emulated_machine->moved();
  emulated_machine->pause("__nanosleep");
}
inline unsigned long long __cvta_generic_to_shared(const volatile void* p) {
  return emulated_machine->shared_address(const_cast<const void*>(p));
}
inline void* __cvta_shared_to_generic(unsigned long long at) {
  return emulated_machine->shared(unsigned(at), 1);
}
inline long long clock64() { return 0; }

template <class T, class V, class F>
inline T emulated_atomic(T* p, V x, F f) {
  const T old = *p;
  *p = f(old, T(x));
  emulated_machine->moved();
  return old;
}
#define EMULATED_ATOMIC(name, expression)                                 \
  template <class T, class V>                                             \
  inline T name(T* p, V x) {                                              \
    return emulated_atomic(p, x, [](T a, T b) { return T(expression); }); \
  }                                                                       \
  template <class T, class V>                                             \
  inline T name##_block(T* p, V x) {                                      \
    return name(p, x);                                                    \
  }
EMULATED_ATOMIC(atomicAdd, a + b)
EMULATED_ATOMIC(atomicSub, a - b)
EMULATED_ATOMIC(atomicExch, b)
EMULATED_ATOMIC(atomicMin, b < a ? b : a)
EMULATED_ATOMIC(atomicMax, b > a ? b : a)
EMULATED_ATOMIC(atomicAnd, a& b)
EMULATED_ATOMIC(atomicOr, a | b)
EMULATED_ATOMIC(atomicXor, a ^ b)
EMULATED_ATOMIC(atomicInc, a >= b ? T(0) : T(a + 1))
template <class T, class A, class V>
inline T atomicCAS(T* p, A expected, V x) {
  return emulated_atomic(p, x, [=](T a, T b) { return a == T(expected) ? b : a; });
}

// The word is where the driver put it.
inline void cudaGraphSetConditional(unsigned long long word, unsigned value) {
  *reinterpret_cast<unsigned*>(word) = value;
}

// ---- threads together ----
namespace emulated {

/// Every lane of `mask` brings an X; the last of them runs `complete(all, mask)`, X** with those of the lanes.
template <class X, class F>
inline void together(unsigned mask, X& own, const char* what, F) {
  emulated_machine->meet(
      mask, &own, [](void* const* all, unsigned lanes) { F::run(reinterpret_cast<X* const*>(all), lanes); },
      what);
}

template <class T>
struct Moved {
  T x;
  int from;
  T result;
};
struct Move {
  template <class T>
  static void run(Moved<T>* const* all, unsigned mask) {
    for (int i = 0; i < 32; ++i) {
      if (!(mask >> i & 1)) continue;
      Moved<T>* const source = all[all[i]->from];
      if (source) {
        all[i]->result = source->x;
      } else {
        __builtin_memset(&all[i]->result, 0xff, sizeof(T));  // a lane that is not there
      }
    }
  }
};
template <class T>
inline T moved(unsigned mask, T x, int from, const char* what) {
  Moved<T> m{x, from, x};
  together(mask, m, what, Move{});
  return m.result;
}

struct Vote {
  bool value;
  unsigned result;
};
struct Count {
  static void run(Vote* const* all, unsigned mask) {
    unsigned yes = 0;
    for (int i = 0; i < 32; ++i)
      if (all[i] && all[i]->value) yes |= 1u << i;
    for (int i = 0; i < 32; ++i)
      if (all[i]) all[i]->result = yes;
  }
};
inline unsigned votes(unsigned mask, bool value, const char* what) {
  Vote v{value, 0};
  together(mask, v, what, Count{});
  return v.result;
}

}  // namespace emulated

inline void __syncthreads() { emulated_machine->barrier(0, 0, false, true); }
inline int __syncthreads_or(int x) { return emulated_machine->barrier(0, 0, x != 0, true) != 0; }
inline int __syncthreads_count(int x) { return int(emulated_machine->barrier(0, 0, x != 0, true)); }
inline int __syncthreads_and(int x) { return emulated_machine->barrier(0, 0, x == 0, true) == 0; }
inline void __syncwarp(unsigned mask = ~0u) { emulated::votes(mask, false, "__syncwarp"); }
inline unsigned __ballot_sync(unsigned mask, int x) { return emulated::votes(mask, x != 0, "__ballot_sync"); }
inline int __any_sync(unsigned mask, int x) { return emulated::votes(mask, x != 0, "__any_sync") != 0; }
inline int __all_sync(unsigned mask, int x) { return emulated::votes(mask, x == 0, "__all_sync") == 0; }

template <class T>
inline T __shfl_sync(unsigned mask, T x, int lane, int width = 32) {
  const int own = int(emulated_machine->lane), base = own / width * width;
  return emulated::moved(mask, x, base + (lane & (width - 1)), "__shfl_sync");
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T x, int bits, int width = 32) {
  const int own = int(emulated_machine->lane), other = own ^ bits;
  return emulated::moved(mask, x, other / width > own / width ? own : other, "__shfl_xor_sync");
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32) {
  const int own = int(emulated_machine->lane), other = own - int(by);
  return emulated::moved(mask, x, other < own / width * width ? own : other, "__shfl_up_sync");
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32) {
  const int own = int(emulated_machine->lane), other = own + int(by);
  return emulated::moved(mask, x, other >= (own / width + 1) * width ? own : other, "__shfl_down_sync");
}
template <class T, class F>
inline T emulated_reduced(unsigned mask, T x, F f) {
  T all = x;
  bool first = true;
  for (int i = 0; i < 32; ++i) {
    if (!(mask >> i & 1)) continue;
    const T y = emulated::moved(mask, x, i, "__reduce_sync");
    all = first ? y : f(all, y);
    first = false;
  }
  return all;
}
template <class T>
inline T __reduce_min_sync(unsigned mask, T x) {
  return emulated_reduced(mask, x, [](T a, T b) { return b < a ? b : a; });
}
template <class T>
inline T __reduce_max_sync(unsigned mask, T x) {
  return emulated_reduced(mask, x, [](T a, T b) { return b > a ? b : a; });
}
template <class T>
inline T __reduce_add_sync(unsigned mask, T x) {
  return emulated_reduced(mask, x, [](T a, T b) { return T(a + b); });
}
template <class T>
inline T __reduce_or_sync(unsigned mask, T x) {
  return emulated_reduced(mask, x, [](T a, T b) { return T(a | b); });
}
template <class T>
inline T __reduce_and_sync(unsigned mask, T x) {
  return emulated_reduced(mask, x, [](T a, T b) { return T(a & b); });
}

// ---- entries ----
namespace emulated {

template <int... I>
struct Numbers {};
template <int N, int... I>
struct Up : Up<N - 1, N - 1, I...> {};
template <int... I>
struct Up<0, I...> {
  using type = Numbers<I...>;
};
template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<const T> {
  using type = T;
};

template <auto F>
struct Entry;
template <class... P, void (*F)(P...)>
struct Entry<F> {
  static constexpr unsigned kSizes[sizeof...(P) + 1] = {sizeof(P)..., 0};
  template <int... I>
  static void call(void** p, Numbers<I...>) {
    F(*static_cast<typename Plain<P>::type*>(p[I])...);
  }
  static void run(void** p) { call(p, typename Up<sizeof...(P)>::type{}); }
  static Kernel with(unsigned most_threads, Index cluster, unsigned alignment) {
    return {run,
            sizeof...(P),
            kSizes,
            most_threads,
            cluster,
            &emulated_machine,
            __start_emulated_shared,
            __stop_emulated_shared,
            alignment};
  }
};

}  // namespace emulated

#include "ptx.h"
