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

template <class V, class Apply, Form form>
void binary_step(RLX_STEP) {
  constexpr bool one = form == Form::scalar || form == Form::scalar_first;
  constexpr bool first = form == Form::memory_first || form == Form::scalar_first;
  if constexpr (one) {
    const V b = read_one<V>(at[m->a].p);
    const auto f = [&](F32 v, int)
                       RLX_LAMBDA { return first ? (F32)Apply::apply(b, (V)v) : (F32)Apply::apply((V)v, b); };
    RLX_EACH(f);
  } else {
    const char* p = address(at[m->a], i);
    const auto f = [&](F32 v, int k) RLX_LAMBDA {
      const V b = load_bytes<V>(p + k * kVectorBytes);
      return first ? (F32)Apply::apply(b, (V)v) : (F32)Apply::apply((V)v, b);
    };
    RLX_EACH(f);
  }
  RLX_NEXT;
}

/// As binary_step for operations with much code: one copy, in a loop over the eight.
template <class V, class Apply, Form form>
void binary_loop(RLX_STEP) {
  constexpr bool one = form == Form::scalar || form == Form::scalar_first;
  constexpr bool first = form == Form::memory_first || form == Form::scalar_first;
  const char* p = one ? at[m->a].p : address(at[m->a], i);
  F32 v[kVectors] = {v0, v1, v2, v3, v4, v5, v6, v7};
#pragma GCC unroll 1
  for (int k = 0; k < kVectors; ++k) {
    const V b = one ? read_one<V>(p) : load_bytes<V>(p + k * kVectorBytes);
    v[k] = first ? (F32)Apply::apply(b, (V)v[k]) : (F32)Apply::apply((V)v[k], b);
  }
  v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3], v4 = v[4], v5 = v[5], v6 = v[6], v7 = v[7];
  RLX_NEXT;
}

template <class V, class Apply, Form form, bool much_code>
Function form_of() {
  if constexpr (much_code) return as_function(binary_loop<V, Apply, form>);
  if constexpr (!much_code) return as_function(binary_step<V, Apply, form>);
}
template <class V, class Apply, bool much_code = false>
void set_forms(Function (&to)[kForms]) {
  to[0] = form_of<V, Apply, Form::memory, much_code>();
  to[1] = form_of<V, Apply, Form::memory_first, much_code>();
  to[2] = form_of<V, Apply, Form::scalar, much_code>();
  to[3] = form_of<V, Apply, Form::scalar_first, much_code>();
}
template <class V, class Apply>
void set_commutative(Function (&to)[kForms]) {
  to[0] = to[1] = as_function(binary_step<V, Apply, Form::memory>);
  to[2] = to[3] = as_function(binary_step<V, Apply, Form::scalar>);
}

template <Op op, class V>
struct Compared {
  static RLX_INLINE V apply(V a, V b) { return compared<op>(a, b); }
};
template <class V>
void set_comparisons(Function (&to)[kBinaryOps][kForms]) {
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

/// The block becomes one vector as a tree, which joins the vector at the place. `Join` has apply and start.
template <class V, class Join>
void reduce_step(RLX_STEP) {
  char* to = at[m->a].p;
  const int64_t left = at[kLanesLeft].step;
  V t[kVectors] = {(V)v0, (V)v1, (V)v2, (V)v3, (V)v4, (V)v5, (V)v6, (V)v7};
  if (left < kVectors * kLanesOf<V>) [[unlikely]] {
    const V number = lane_numbers<V>(), start = machine::set1(Join::start());
    for (int k = 0; k < kVectors; ++k) {
      const V limit = machine::set1(Element<V>(left - k * kLanesOf<V>));
      t[k] = number < limit ? t[k] : start;
    }
  }
  const V a = Join::apply(Join::apply(t[0], t[1]), Join::apply(t[2], t[3]));
  const V b = Join::apply(Join::apply(t[4], t[5]), Join::apply(t[6], t[7]));
  const V sum = Join::apply(load_bytes<V>(to), Join::apply(a, b));
  std::memcpy(to, &sum, sizeof sum);
  RLX_NEXT;
}

template <class V, class Join>
void begin_reduction(void* vector) {
  const V start = machine::set1(Join::start());
  std::memcpy(vector, &start, sizeof start);
}

/// Halves are folded, so the order is fixed per level. Total is what chunks of a row are joined in.
template <class V, class Join, class Total>
void fold_reduction(const void* vector, void* total) {
  Element<V> x[kLanesOf<V>];
  std::memcpy(x, vector, sizeof x);
  for (int half = kLanesOf<V> / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) x[j] = Join::one(x[j], x[j + half]);
  }
  Total* t = static_cast<Total*>(total);
  *t = Join::one(*t, Total(x[0]));
}

template <class V, class Join, class Total>
void set_reduction(Functions& to, Lane lane, Op op) {
  const int l = int(lane), r = reduction_index(op);
  to.reduce[l][r] = as_function(reduce_step<V, Join>);
  to.begin[l][r] = begin_reduction<V, Join>;
  to.fold[l][r] = fold_reduction<V, Join, Total>;
}

}  // namespace rlx::cpu::RLX_ISA::machine
