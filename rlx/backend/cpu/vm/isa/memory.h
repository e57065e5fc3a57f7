// Lanes from elements in memory and back, a vector at a time, and between each other.
#pragma once

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/simd/narrow.h"
#include "rlx/backend/cpu/vm/isa/step.h"

namespace rlx::cpu::RLX_ISA::machine {

/// A bool in memory: one byte, 0 or 1.
struct Flag {
  uint8_t value;
};

/// As many elements of T as a vector of `Lanes` has.
template <class T, class Lanes>
struct Few {
  typedef T Type __attribute__((vector_size(sizeof(T) * kLanesOf<Lanes>)));
};

template <class Lanes, class T>
RLX_INLINE Lanes widened(const T* p) {
  return __builtin_convertvector(load_bytes<typename Few<T, Lanes>::Type>(p), Lanes);
}
template <class Lanes>
RLX_INLINE Lanes widened(const Flag* p) {
  return __builtin_convertvector(load_bytes<typename Few<uint8_t, Lanes>::Type>(p), Lanes) != 0;
}
template <class Lanes>
RLX_INLINE Lanes widened(const Bf16* p) {
  if constexpr (sizeof(Element<Lanes>) == 4) return load(p);
  if constexpr (sizeof(Element<Lanes>) == 8) {
    Lanes v;
    for (int j = 0; j < kLanes64; ++j) {
      const uint32_t bits = uint32_t(p[j].bits) << 16;
      float x;
      std::memcpy(&x, &bits, sizeof x);
      v[j] = x;
    }
    return v;
  }
}
template <class Lanes>
RLX_INLINE Lanes widened(const F16* p) {
  if constexpr (sizeof(Element<Lanes>) == 4) return load(p);
  if constexpr (sizeof(Element<Lanes>) == 8) {
    Lanes v;
    for (int j = 0; j < kLanes64; ++j) v[j] = f16_to_f32_call(p[j].bits);
    return v;
  }
}

template <class T, class Lanes>
RLX_INLINE void narrowed(T* p, Lanes v) {
  const auto few = __builtin_convertvector(v, typename Few<T, Lanes>::Type);
  std::memcpy(p, &few, sizeof few);
}
template <class Lanes>
RLX_INLINE void narrowed(Flag* p, Lanes v) {
  narrowed(&p->value, v & 1);
}
RLX_INLINE void narrowed(F16* p, F32 v) { store(p, v); }
RLX_INLINE void narrowed(Bf16* p, F32 v) { store(p, v); }

template <class To>
RLX_INLINE To converted(I32 x) {
  return to_float(x);
}
template <class To>
RLX_INLINE To converted(I64 x) {
  return __builtin_convertvector(x, F64);
}
// Truncates and saturates, NaN is 0: what the machine gives for numbers out of range is not used.
template <class To>
RLX_INLINE To converted(F32 x) {
  const I32 inside = (x > -2147483648.0f) & (x < 2147483648.0f);
  const I32 y = to_int((F32)((I32)x & inside));
  const I32 beyond =
      (x >= 2147483648.0f ? I32{} + 0x7fffffff : (x <= -2147483648.0f ? I32{} - 0x7fffffff - 1 : I32{}));
  return (y & inside) | (beyond & ~inside);
}
template <class To>
RLX_INLINE To converted(F64 x) {
  const I64 inside = (x > -9223372036854775808.0) & (x < 9223372036854775808.0);
  const F64 safe = (F64)((I64)x & inside);
  const I64 y = __builtin_convertvector(safe, I64);
  const I64 least = I64{} + INT64_MIN;
  const I64 beyond = x >= 9223372036854775808.0 ? ~least : (x <= -9223372036854775808.0 ? least : I64{});
  return (y & inside) | (beyond & ~inside);
}

}  // namespace rlx::cpu::RLX_ISA::machine
