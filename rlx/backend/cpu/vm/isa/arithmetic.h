// Binary operations and reductions of one lane type; included by the source of each type.
#pragma once

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/vm/isa/step.h"

namespace rlx::cpu::RLX_ISA::machine {

/// a op b on vectors; comparisons give all bits set or none, in the type of the operands. `Arithmetic` has the
/// operations that the lane type defines itself.
template <Op op, class V>
RLX_INLINE V compared(V a, V b) {
  if constexpr (op == Op::eq) return (V)(a == b);
  if constexpr (op == Op::ne) return (V)(a != b);
  if constexpr (op == Op::lt) return (V)(a < b);
  if constexpr (op == Op::le) return (V)(a <= b);
  if constexpr (op == Op::gt) return (V)(a > b);
  return (V)(a >= b);
}

constexpr bool is_one(Form f) {
  return f == Form::scalar || f == Form::scalar_first || f == Form::memory_scalar || f == Form::scalar_memory;
}
constexpr bool is_first(Form f) {
  return f == Form::memory_first || f == Form::scalar_first || f == Form::scalar_memory;
}

template <class V, class Apply, Form form, bool keeps>
void binary_step(RLX_STEP) {
  constexpr bool loads = form >= Form::two_memories;
  const char* p = is_one(form) ? address(at, m->a) : block(at, m->a, i);
  [[maybe_unused]] const char* from = loads ? block(at, m->b, i) : nullptr;
  [[maybe_unused]] char* to = keeps ? block(at, m->c, i) : nullptr;
  [[maybe_unused]] const V one = is_one(form) ? read_one<V>(p) : V{};
  const auto f = [&](F32 v, int k) RLX_LAMBDA {
    const V x = loads ? load_bytes<V>(from + k * kVectorBytes) : (V)v;
    const V b = is_one(form) ? one : load_bytes<V>(p + k * kVectorBytes);
    const V y = is_first(form) ? Apply::apply(b, x) : Apply::apply(x, b);
    if constexpr (keeps) std::memcpy(to + k * kVectorBytes, &y, sizeof y);
    return (F32)y;
  };
  RLX_EACH(f);
  RLX_NEXT;
}

/// As binary_step for operations with much code: one copy, in a loop over the eight.
template <class V, class Apply, Form form>
void binary_loop(RLX_STEP) {
  const char* p = is_one(form) ? address(at, m->a) : block(at, m->a, i);
  F32 v[kVectors] = {v0, v1, v2, v3, v4, v5, v6, v7};
#pragma GCC unroll 1
  for (int k = 0; k < kVectors; ++k) {
    const V b = is_one(form) ? read_one<V>(p) : load_bytes<V>(p + k * kVectorBytes);
    v[k] = is_first(form) ? (F32)Apply::apply(b, (V)v[k]) : (F32)Apply::apply((V)v[k], b);
  }
  v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3], v4 = v[4], v5 = v[5], v6 = v[6], v7 = v[7];
  RLX_NEXT;
}

using FormTable = Function[kForms][2];

/// What every operation has: forms with an accumulator that keep nothing.
template <class V, class Apply>
void set_forms(FormTable& to) {
  to[0][0] = as_function(binary_step<V, Apply, Form::memory, false>);
  to[1][0] = as_function(binary_step<V, Apply, Form::memory_first, false>);
  to[2][0] = as_function(binary_step<V, Apply, Form::scalar, false>);
  to[3][0] = as_function(binary_step<V, Apply, Form::scalar_first, false>);
}
template <class V, class Apply>
void set_loops(FormTable& to) {
  to[0][0] = as_function(binary_loop<V, Apply, Form::memory>);
  to[1][0] = as_function(binary_loop<V, Apply, Form::memory_first>);
  to[2][0] = as_function(binary_loop<V, Apply, Form::scalar>);
  to[3][0] = as_function(binary_loop<V, Apply, Form::scalar_first>);
}
template <class V, class Apply>
void set_commutative(FormTable& to) {
  to[0][0] = to[1][0] = as_function(binary_step<V, Apply, Form::memory, false>);
  to[2][0] = to[3][0] = as_function(binary_step<V, Apply, Form::scalar, false>);
}

/// What the frequent ones have beyond that.
template <class V, class Apply>
void set_loading(FormTable& to) {
  to[4][0] = as_function(binary_step<V, Apply, Form::two_memories, false>);
  to[5][0] = as_function(binary_step<V, Apply, Form::memory_scalar, false>);
  to[6][0] = as_function(binary_step<V, Apply, Form::scalar_memory, false>);
}
template <class V, class Apply>
void set_keeping(FormTable& to) {
  to[0][1] = as_function(binary_step<V, Apply, Form::memory, true>);
  to[1][1] = as_function(binary_step<V, Apply, Form::memory_first, true>);
  to[2][1] = as_function(binary_step<V, Apply, Form::scalar, true>);
  to[3][1] = as_function(binary_step<V, Apply, Form::scalar_first, true>);
  to[4][1] = as_function(binary_step<V, Apply, Form::two_memories, true>);
  to[5][1] = as_function(binary_step<V, Apply, Form::memory_scalar, true>);
  to[6][1] = as_function(binary_step<V, Apply, Form::scalar_memory, true>);
}

template <Op op, class V>
struct Compared {
  static RLX_INLINE V apply(V a, V b) { return compared<op>(a, b); }
};
template <class V>
void set_comparisons(FormTable (&to)[kBinaryOps]) {
  set_commutative<V, Compared<Op::eq, V>>(to[binary_index(Op::eq)]);
  set_commutative<V, Compared<Op::ne, V>>(to[binary_index(Op::ne)]);
  set_forms<V, Compared<Op::lt, V>>(to[binary_index(Op::lt)]);
  set_forms<V, Compared<Op::le, V>>(to[binary_index(Op::le)]);
}

template <class V>
RLX_INLINE V lane_numbers() {
  V v;
  for (int j = 0; j < kLanesOf<V>; ++j) v[j] = Element<V>(j);
  return v;
}

/// What of vector k is reduced.
template <Reduced what, class V>
RLX_INLINE V reduced(V v, const char* b, const char* c, V one, int k) {
  if constexpr (what == Reduced::accumulator) return v;
  if constexpr (what == Reduced::square) return v * v;
  if constexpr (what >= Reduced::product) {
    const V x = load_bytes<V>(b + k * kVectorBytes);
    if constexpr (what == Reduced::product) return v * x;
    if constexpr (what == Reduced::memory) return x;
    if constexpr (what == Reduced::two_memories) return x * load_bytes<V>(c + k * kVectorBytes);
    if constexpr (what == Reduced::about) return (x - one) * (x - one);
  }
}

/// The block becomes one vector as a tree. `Join` has apply and start.
template <class V, class Join>
RLX_INLINE V joined(V (&t)[kVectors], int64_t left) {
  if (left < kVectors * kLanesOf<V>) [[unlikely]] {
    const V number = lane_numbers<V>(), start = machine::set1(Join::start());
    for (int k = 0; k < kVectors; ++k) {
      const V limit = machine::set1(Element<V>(left - k * kLanesOf<V>));
      t[k] = number < limit ? t[k] : start;
    }
  }
  const V a = Join::apply(Join::apply(t[0], t[1]), Join::apply(t[2], t[3]));
  const V b = Join::apply(Join::apply(t[4], t[5]), Join::apply(t[6], t[7]));
  return Join::apply(a, b);
}

/// That joins the vector at the place. Code of one instruction stays in it until the turn ends.
template <class V, class Join, Reduced what, bool last>
void reduce_step(RLX_STEP) {
  char* to = address(at, m->a);
  const int64_t left = reinterpret_cast<int64_t>(at[kLanesLeft]);
  [[maybe_unused]] const V one = what == Reduced::about ? read_one<V>(address(at, m->c)) : V{};
  V sum = load_bytes<V>(to);
  do {
    const char* b = what >= Reduced::product ? block(at, m->b, i) : nullptr;
    const char* c = what == Reduced::two_memories ? block(at, m->c, i) : nullptr;
    V t[kVectors] = {(V)v0, (V)v1, (V)v2, (V)v3, (V)v4, (V)v5, (V)v6, (V)v7};
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) t[k] = reduced<what>(t[k], b, c, one, k);
    sum = Join::apply(sum, joined<V, Join>(t, left));
    if (!last || what < Reduced::memory || m->before > 0) break;
    i += kBlockBytes;
  } while (i != reinterpret_cast<int64_t>(at[kEnd]));
  std::memcpy(to, &sum, sizeof sum);
  if (last && what >= Reduced::memory && m->before == 0) return;
  if constexpr (last) {
    RLX_AGAIN;
  } else {
    RLX_NEXT;
  }
}

template <class V, class Join>
void begin_reduction(void* vector) {
  const V start = machine::set1(Join::start());
  std::memcpy(vector, &start, sizeof start);
}

/// Halves are folded, so the order is fixed per level. Total is what chunks of a row are joined in.
template <class V, class Join, class Total>
void fold_reduction(void* vector, void* total) {
  Element<V> x[kLanesOf<V>];
  std::memcpy(x, vector, sizeof x);
  for (int half = kLanesOf<V> / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) x[j] = Join::one(x[j], x[j + half]);
  }
  Total* t = static_cast<Total*>(total);
  *t = Join::one(*t, Total(x[0]));
  begin_reduction<V, Join>(vector);
}

template <class V, class Join, Reduced what>
void set_reduced(Function (&to)[kReducedForms][2]) {
  to[int(what)][0] = as_function(reduce_step<V, Join, what, false>);
  to[int(what)][1] = as_function(reduce_step<V, Join, what, true>);
}

template <class V, class Join, class Total>
void set_reduction(Functions& to, Lane lane, Op op) {
  const int l = int(lane), r = reduction_index(op);
  set_reduced<V, Join, Reduced::accumulator>(to.reduce[l][r]);
  to.begin[l][r] = begin_reduction<V, Join>;
  to.fold[l][r] = fold_reduction<V, Join, Total>;
}

}  // namespace rlx::cpu::RLX_ISA::machine
