// PTX instructions as functions: operands in the order of the instruction, results by reference. ../ptx.cpp names them.
#pragma once

namespace emulated::ptx {

using Word = unsigned long long;

// Registers are bits: equal sizes are copied, others converted.
template <class D, class V>
inline void put(D& d, V v) {
  if constexpr (sizeof(D) == sizeof(V)) {
    __builtin_memcpy(&d, &v, sizeof d);
  } else {
    d = D(v);
  }
}
template <class T, class V>
inline T get(V v) {
  if constexpr (sizeof(T) == sizeof(V)) {
    T t;
    __builtin_memcpy(&t, &v, sizeof t);
    return t;
  } else {
    return T(v);
  }
}
template <class T>
inline char* at(T* p) {
  return const_cast<char*>(reinterpret_cast<const volatile char*>(p));
}
inline char* at(Word p) { return reinterpret_cast<char*>(p); }
inline char* at(long long p) { return reinterpret_cast<char*>(p); }
inline char* at(unsigned long p) { return reinterpret_cast<char*>(p); }
inline char* at(long p) { return reinterpret_cast<char*>(p); }

template <class... X>
inline void nothing(const X&...) {}

// ---- numbers of 16 bits ----
inline float half_to_float(unsigned short h) {
  const unsigned sign = unsigned(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 31) return bits<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    const float tiny = float(fraction) * 5.9604644775390625e-08f;
    return sign ? -tiny : tiny;
  }
  return bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
inline unsigned short float_to_half(float x) {
  const unsigned u = bits<unsigned>(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00);  // 65520 and above
  if (magnitude < 0x38800000u) {                                         // below 2^-14: counted in 2^-24
    const float scaled = bits<float>(magnitude) * 16777216.0f;
    return (unsigned short)(sign | unsigned(rintf(scaled)));
  }
  const unsigned odd = magnitude >> 13 & 1;
  return (unsigned short)(sign | ((magnitude - 0x38000000u + 0xfff + odd) >> 13));
}
inline float bfloat_to_float(unsigned short h) { return bits<float>(unsigned(h) << 16); }
inline unsigned short float_to_bfloat(float x) {
  const unsigned u = bits<unsigned>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
inline float float_to_tf32(float x) {  // ties away from zero
  const unsigned u = bits<unsigned>(x);
  return (u & 0x7f800000u) == 0x7f800000u ? x : bits<float>((u + 0x1000u) & ~0x1fffu);
}
template <class D>
inline void cvt_f16_f32(D& d, float x) {
  put(d, float_to_half(x));
}
template <class D>
inline void cvt_bf16_f32(D& d, float x) {
  put(d, float_to_bfloat(x));
}
template <class D, class S>
inline void cvt_f32_f16(D& d, S x) {
  d = half_to_float(get<unsigned short>(x));
}
template <class D, class S>
inline void cvt_f32_bf16(D& d, S x) {
  d = bfloat_to_float(get<unsigned short>(x));
}
template <class D>
inline void cvt_f16x2_f32(D& d, float high, float low) {
  put(d, unsigned(float_to_half(high)) << 16 | float_to_half(low));
}
template <class D>
inline void cvt_bf16x2_f32(D& d, float high, float low) {
  put(d, unsigned(float_to_bfloat(high)) << 16 | float_to_bfloat(low));
}
template <class D>
inline void cvt_tf32_f32(D& d, float x) {
  put(d, float_to_tf32(x));
}

// ---- numbers ----
template <class D>
inline void fma_f16x2(D& d, unsigned a, unsigned b, unsigned c) {
  const auto half = [&](int shift) {
    const auto of = [&](unsigned x) { return half_to_float((unsigned short)(x >> shift)); };
    return unsigned(float_to_half(float(double(of(a)) * of(b) + of(c)))) << shift;
  };
  put(d, half(0) | half(16));
}
template <class D>
inline void fma_bf16x2(D& d, unsigned a, unsigned b, unsigned c) {
  const auto half = [&](int shift) {
    const auto of = [&](unsigned x) { return bfloat_to_float((unsigned short)(x >> shift)); };
    return unsigned(float_to_bfloat(float(double(of(a)) * of(b) + of(c)))) << shift;
  };
  put(d, half(0) | half(16));
}
// NaN is left out, as by fmaxf.
template <class D>
inline void max_f16x2(D& d, unsigned a, unsigned b) {
  const auto half = [&](int shift) {
    const auto of = [&](unsigned x) { return half_to_float((unsigned short)(x >> shift)); };
    return unsigned(float_to_half(fmaxf(of(a), of(b)))) << shift;
  };
  put(d, half(0) | half(16));
}
template <class D>
inline void max_bf16x2(D& d, unsigned a, unsigned b) {
  const auto half = [&](int shift) {
    const auto of = [&](unsigned x) { return bfloat_to_float((unsigned short)(x >> shift)); };
    return unsigned(float_to_bfloat(fmaxf(of(a), of(b)))) << shift;
  };
  put(d, half(0) | half(16));
}
inline void ex2(float& d, float x) { d = exp2f(x); }
inline void lg2(float& d, float x) { d = log2f(x); }
inline void rcp(float& d, float x) { d = 1.0f / x; }
inline void rsqrt_approx(float& d, float x) { d = rsqrtf(x); }
inline void sqrt_approx(float& d, float x) { d = sqrtf(x); }
inline void tanh_approx(float& d, float x) { d = tanhf(x); }
inline void sin_approx(float& d, float x) { d = sinf(x); }
inline void cos_approx(float& d, float x) { d = cosf(x); }
template <class T, class D, class S>
inline void mov(D& d, S x) {
  put(d, get<T>(x));
}
template <class D, class A, class B>
inline void pack2(D& d, A low, B high) {  // mov.b32 d, {low, high}; mov.b64 too
  if constexpr (sizeof(D) == 4) {
    put(d, unsigned(get<unsigned short>(low)) | unsigned(get<unsigned short>(high)) << 16);
  } else {
    put(d, Word(get<unsigned>(low)) | Word(get<unsigned>(high)) << 32);
  }
}
template <class D, class E, class S>
inline void unpack2(D& low, E& high, S x) {
  if constexpr (sizeof(S) == 4) {
    const unsigned u = get<unsigned>(x);
    put(low, (unsigned short)(u)), put(high, (unsigned short)(u >> 16));
  } else {
    const Word u = get<Word>(x);
    put(low, unsigned(u)), put(high, unsigned(u >> 32));
  }
}
template <class D, class A, class B, class C>
inline void lop3(D& d, A a, B b, C c, unsigned table) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i) {
    const unsigned which = (unsigned(a) >> i & 1) << 2 | (unsigned(b) >> i & 1) << 1 | (unsigned(c) >> i & 1);
    out |= (table >> which & 1) << i;
  }
  put(d, out);
}
template <class D, class A, class B, class C>
inline void prmt(D& d, A a, B b, C which) {
  put(d, __byte_perm(unsigned(a), unsigned(b), unsigned(which)));
}
template <class D, class A, class B, class C>
inline void dp4a_s32(D& d, A a, B b, C c) {
  put(d, __dp4a(int(a), int(b), int(c)));
}
template <class D, class A, class B, class C>
inline void dp4a_u32_s32(D& d, A a, B b, C c) {
  int sum = int(c);
  for (int i = 0; i < 4; ++i)
    sum += int(unsigned(a) >> (8 * i) & 255) * int((signed char)(unsigned(b) >> (8 * i)));
  put(d, sum);
}
template <class D, class A, class B, class C>
inline void dp2a_low_s32(D& d, A a, B b, C c) {
  int sum = int(c);
  for (int i = 0; i < 2; ++i)
    sum += int(short(unsigned(a) >> (16 * i))) * int((signed char)(unsigned(b) >> (8 * i)));
  put(d, sum);
}
template <class D, class A, class B, class C>
inline void fma_f32(D& d, A a, B b, C c) {
  put(d, fmaf(get<float>(a), get<float>(b), get<float>(c)));
}

// ---- memory ----
template <class T, class A, class... D>
inline void load_global(A address, D&... d) {
  const char* from = at(address);
  T each;
  ((__builtin_memcpy(&each, from, sizeof each), from += sizeof each, put(d, each)), ...);
}
template <class T, class A, class... V>
inline void store_global(A address, V... v) {
  char* to = at(address);
  T each;
  ((each = get<T>(v), __builtin_memcpy(to, &each, sizeof each), to += sizeof each), ...);
}
template <class T, class... D>
inline void load_shared(unsigned address, D&... d) {
  load_global<T>(static_cast<char*>(emulated_machine->shared(address, sizeof(T) * sizeof...(D))), d...);
}
template <class T, class... V>
inline void store_shared(unsigned address, V... v) {
  store_global<T>(static_cast<char*>(emulated_machine->shared(address, sizeof(T) * sizeof...(V))), v...);
}
template <class T, class A, class V>
inline void add_global(A address, V v) {
  T each;
  __builtin_memcpy(&each, at(address), sizeof each);
  each += get<T>(v);
  __builtin_memcpy(at(address), &each, sizeof each);
  emulated_machine->moved();
}
template <class D>
inline void to_shared(D& d, const void* p) {
  d = D(emulated_machine->shared_address(p));
}

// ---- copies that are on their way ----
template <class A>
inline void copy_async(unsigned to, A from, unsigned bytes) {
  emulated_machine->copy(emulated_machine->shared(to, bytes), at(from), bytes, bytes);
}
template <class A>
inline void copy_async(unsigned to, A from, unsigned bytes, unsigned there) {
  emulated_machine->copy(emulated_machine->shared(to, bytes), at(from), bytes, there);
}
inline void copy_commit() { emulated_machine->commit(); }
inline void copy_wait(unsigned left) { emulated_machine->wait(left); }
inline void copy_wait_all() {
  emulated_machine->commit();
  emulated_machine->wait(0);
}

// ---- threads together ----
inline unsigned special_cluster_ctarank() { return emulated_machine->rank; }
inline unsigned special_cluster_nctarank() { return emulated_machine->ranks; }
inline unsigned special_laneid() { return emulated_machine->lane; }
inline void bar(unsigned id) { emulated_machine->barrier(id, 0, false, true); }
inline void bar(unsigned id, unsigned count) { emulated_machine->barrier(id, count, false, true); }
inline void bar_arrive(unsigned id, unsigned count) { emulated_machine->barrier(id, count, false, false); }
inline void bar_warp(unsigned mask) { __syncwarp(mask); }
inline void cluster_arrive() { emulated_machine->cluster_arrive(); }
inline void cluster_wait() { emulated_machine->cluster_wait(); }
template <class D>
inline void mapa(D& d, unsigned address, unsigned rank) {
  put(d, emulated_machine->map_rank(address, rank));
}

}  // namespace emulated::ptx

#include "matrix.h"

#include "hopper.h"
