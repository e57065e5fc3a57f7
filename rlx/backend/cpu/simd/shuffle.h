// Lanes of vectors in a new order.
#pragma once

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

/// Lane i: lane at[i] of a and b, counted through both.
template <class V, class Index>
RLX_INLINE V shuffle(V a, V b, Index at) {
#if defined( \
    __clang__)  // has no form for indices in a vector; makes one shuffle of the loop when they are constants
  constexpr int n = int(sizeof(V) / sizeof(a[0]));
  V out = a;
  for (int i = 0; i < n; ++i) out[i] = int(at[i]) < n ? a[int(at[i])] : b[int(at[i]) - n];
  return out;
#else
  return __builtin_shuffle(a, b, at);
#endif
}

/// Lane i: lane at[i] of a.
template <class V, class Index>
RLX_INLINE V shuffle(V a, Index at) {
  return shuffle(a, a, at);
}

}  // namespace rlx::cpu::RLX_ISA
