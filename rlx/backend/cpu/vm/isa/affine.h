// The end of norms, scalings and biases as one instruction; see kAffineForms.
#pragma once

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/vm/isa/step.h"

namespace rlx::cpu::RLX_ISA::machine {

/// Each operation rounds as it does alone.
template <class V, int parts>
RLX_INLINE V affine_of(V x, V s, V t, const char* w, const char* z) {
  if constexpr (parts == kDivided) return x / t;
  if constexpr ((parts & kMinus) != 0) x = x - s;
  if constexpr ((parts & kTimes) != 0) x = x * t;
  if constexpr ((parts & kWeighed) != 0) x = x * load_bytes<V>(w);
  if constexpr ((parts & kShifted) != 0) x = x + load_bytes<V>(z);
  return x;
}

/// Alone in its code it goes round until the turn ends: a loop, as one would write it by hand.
template <class V, int parts>
void affine_step(RLX_STEP) {
  const Micro& head = *m++;
  const bool alone = m->before == 1;
  const V s = (parts & kMinus) != 0 ? read_one<V>(address(at, head.b)) : V{};
  const V t = (parts & (kTimes | kDivided)) != 0 ? read_one<V>(address(at, head.c)) : V{};
  const char* x = address(at, head.a);
  const char* w = (parts & kWeighed) != 0 ? address(at, m->a) : x;
  const char* z = (parts & kShifted) != 0 ? address(at, m->b) : x;
  char* to = address(at, m->c);
  const int64_t end = alone ? reinterpret_cast<int64_t>(at[kEnd]) : i + kBlockBytes;
  if (address(at, head.before) != nullptr && reinterpret_cast<uintptr_t>(to + i) % kVectorBytes == 0) {
    for (int64_t k = i; k != end; k += kBlockBytes) {
      V y[kVectors];
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        const int64_t from = k + j * kVectorBytes;
        y[j] = affine_of<V, parts>(load_bytes<V>(x + from), s, t, w + from, z + from);
      }
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j)
        stream(reinterpret_cast<float*>(to + k + j * kVectorBytes), (F32)y[j]);
    }
  } else {
    for (int64_t k = i; k != end; k += kBlockBytes) {
#pragma GCC unroll 8
      for (int j = 0; j < int(kBlockBytes); j += kVectorBytes) {
        const V y = affine_of<V, parts>(load_bytes<V>(x + k + j), s, t, w + k + j, z + k + j);
        std::memcpy(to + k + j, &y, sizeof y);
      }
    }
  }
  if (alone) return;
  RLX_AGAIN;
}

template <class V, int... parts>
void set_affine(Function (&to)[kAffineForms], Indices<parts...>) {
  ((to[parts] = parts == 0 ? nullptr : as_function(affine_step<V, parts>)), ...);
}

}  // namespace rlx::cpu::RLX_ISA::machine
