// How the functions of the register machine are written: the accumulator, its operands, the jump to the next.
#pragma once

#include "rlx/backend/cpu/simd/vec.h"
#include "rlx/backend/cpu/vm/micro.h"

namespace rlx::cpu::RLX_ISA::machine {

using namespace rlx::cpu::vm;

// The parameters of every function, and the jump to the next one.
#define RLX_STEP                                                                                         \
  const Micro *m, char **at, [[maybe_unused]] int64_t i, F32 v0, F32 v1, F32 v2, F32 v3, F32 v4, F32 v5, \
      F32 v6, F32 v7
#define RLX_NEXT return reinterpret_cast<Step>(m[1].run)(m + 1, at, i, v0, v1, v2, v3, v4, v5, v6, v7)
// The end of the last instruction: back to the first while blocks of the turn are left.
#define RLX_AGAIN                                       \
  i += kBlockBytes;                                     \
  if (i == reinterpret_cast<int64_t>(at[kEnd])) return; \
  m -= m->before;                                       \
  return reinterpret_cast<Step>(m->run)(m, at, i, v0, v1, v2, v3, v4, v5, v6, v7)
// v = f(v, number of the vector) for the eight.
#define RLX_EACH(f)                                                                                        \
  v0 = f(v0, 0), v1 = f(v1, 1), v2 = f(v2, 2), v3 = f(v3, 3), v4 = f(v4, 4), v5 = f(v5, 5), v6 = f(v6, 6), \
  v7 = f(v7, 7)
#define RLX_LAMBDA __attribute__((always_inline))

using Step = void (*)(RLX_STEP);
inline constexpr int64_t kBlockBytes = kVectors * kVectorBytes;

template <class V>
struct ElementOf;
template <>
struct ElementOf<F32> {
  using Type = float;
  using Mask = I32;
};
template <>
struct ElementOf<F64> {
  using Type = double;
  using Mask = I64;
};
template <>
struct ElementOf<I32> {
  using Type = int32_t;
  using Mask = I32;
};
template <>
struct ElementOf<I64> {
  using Type = int64_t;
  using Mask = I64;
};
template <class V>
using Element = typename ElementOf<V>::Type;
template <class V>
inline constexpr int kLanesOf = kVectorBytes / int(sizeof(Element<V>));

using RLX_ISA::set1;
RLX_INLINE I64 set1(int64_t x) { return I64{} + x; }

template <class V>
RLX_INLINE V read_one(const char* p) {
  Element<V> x;
  std::memcpy(&x, p, sizeof x);
  return machine::set1(x);
}

RLX_INLINE char* address(char** at, uint32_t place) {
  return *reinterpret_cast<char**>(reinterpret_cast<char*>(at) + place);
}
/// The block at hand; of elements that are narrower or wider than lanes, `size` times as far.
template <class Lanes = F32, int size = sizeof(Element<Lanes>)>
RLX_INLINE char* block(char** at, uint32_t place, int64_t i) {
  return address(at, place) + i * size / int(sizeof(Element<Lanes>));
}

template <class T>
RLX_INLINE Function as_function(T* f) {
  return reinterpret_cast<Function>(f);
}

}  // namespace rlx::cpu::RLX_ISA::machine
