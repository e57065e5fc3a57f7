// The operations on i32 and i64. They wrap; division and remainder go lane by lane.
#pragma once

#include "rlx/backend/cpu/vm/isa/arithmetic.h"

namespace rlx::cpu::RLX_ISA::machine {

template <class V>
struct UnsignedOf;
template <>
struct UnsignedOf<I32> {
  using Type = U32;
};
template <>
struct UnsignedOf<I64> {
  using Type = U64;
};
template <class V>
using Unsigned = typename UnsignedOf<V>::Type;

template <Op op, class V>
struct IntegerOp {
  static RLX_INLINE V apply(V a, V b) {
    using U = Unsigned<V>;
    constexpr int width = 8 * int(sizeof(Element<V>));
    if constexpr (op == Op::add) return (V)((U)a + (U)b);
    if constexpr (op == Op::sub) return (V)((U)a - (U)b);
    if constexpr (op == Op::mul) return (V)((U)a * (U)b);
    if constexpr (op == Op::max) return a > b ? a : b;
    if constexpr (op == Op::min) return a < b ? a : b;
    if constexpr (op == Op::bit_and) return a & b;
    if constexpr (op == Op::bit_or) return a | b;
    if constexpr (op == Op::bit_xor) return a ^ b;
    const V inside = (b >= 0) & (b < width);
    if constexpr (op == Op::shift_left) return (V)((U)a << (U)(b & (width - 1))) & inside;
    if constexpr (op == Op::shift_right) return a >> ((b & inside) | (~inside & (width - 1)));
    for (int j = 0; j < kLanesOf<V>; ++j) a[j] = one_of(a[j], b[j]);
    return a;
  }

 private:
  template <class T>
  static RLX_INLINE T one_of(T a, T b) {
    if (b == 0) return 0;
    if (b == -1) return op == Op::div ? T(0 - Unsigned64(a)) : T(0);
    return op == Op::div ? T(a / b) : T(a % b);
  }
  using Unsigned64 = uint64_t;
};

template <Op op, class V>
void integer_unary_step(RLX_STEP) {
  const auto f = [](F32 v, int) RLX_LAMBDA {
    using U = Unsigned<V>;
    const V x = (V)v, zero = {};
    if constexpr (op == Op::neg) return (F32)(V)((U)zero - (U)x);
    if constexpr (op == Op::abs) return (F32)(x < 0 ? (V)((U)zero - (U)x) : x);
    if constexpr (op == Op::sign) return (F32)((x < 0) - (x > 0));
    if constexpr (op == Op::square) return (F32)(V)((U)x * (U)x);
    if constexpr (op == Op::bit_not) return (F32)~x;
  };
  RLX_EACH(f);
  RLX_NEXT;
}

template <Op step, class V>
struct IntegerJoin : IntegerOp<step, V> {
  using T = Element<V>;
  static constexpr T start() {
    constexpr T least = T(T(1) << (8 * sizeof(T) - 2)) * -2;
    if (step == Op::max) return least;
    if (step == Op::min) return T(-(least + 1));
    return step == Op::mul;
  }
  template <class S>
  static S one(S a, S b) {
    if (step == Op::max) return a > b ? a : b;
    if (step == Op::min) return a < b ? a : b;
    return step == Op::add ? S(uint64_t(a) + uint64_t(b)) : S(uint64_t(a) * uint64_t(b));
  }
};

template <class V>
void set_integers(Functions& to, Lane lane) {
  auto& unary = to.unary[int(lane)];
  unary[unary_index(Op::neg)][0] = as_function(integer_unary_step<Op::neg, V>);
  unary[unary_index(Op::abs)][0] = as_function(integer_unary_step<Op::abs, V>);
  unary[unary_index(Op::sign)][0] = as_function(integer_unary_step<Op::sign, V>);
  unary[unary_index(Op::square)][0] = as_function(integer_unary_step<Op::square, V>);
  unary[unary_index(Op::bit_not)][0] = as_function(integer_unary_step<Op::bit_not, V>);
  auto& binary = to.binary[int(lane)];
  set_commutative<V, IntegerOp<Op::add, V>>(binary[binary_index(Op::add)]);
  set_commutative<V, IntegerOp<Op::mul, V>>(binary[binary_index(Op::mul)]);
  set_commutative<V, IntegerOp<Op::max, V>>(binary[binary_index(Op::max)]);
  set_commutative<V, IntegerOp<Op::min, V>>(binary[binary_index(Op::min)]);
  set_commutative<V, IntegerOp<Op::bit_and, V>>(binary[binary_index(Op::bit_and)]);
  set_commutative<V, IntegerOp<Op::bit_or, V>>(binary[binary_index(Op::bit_or)]);
  set_commutative<V, IntegerOp<Op::bit_xor, V>>(binary[binary_index(Op::bit_xor)]);
  set_forms<V, IntegerOp<Op::sub, V>>(binary[binary_index(Op::sub)]);
  set_loops<V, IntegerOp<Op::shift_left, V>>(binary[binary_index(Op::shift_left)]);
  set_loops<V, IntegerOp<Op::shift_right, V>>(binary[binary_index(Op::shift_right)]);
  set_loops<V, IntegerOp<Op::div, V>>(binary[binary_index(Op::div)]);
  set_loops<V, IntegerOp<Op::rem, V>>(binary[binary_index(Op::rem)]);
  set_comparisons<V>(binary);
  set_reduction<V, IntegerJoin<Op::add, V>, int64_t>(to, lane, Op::reduce_sum);
  set_reduction<V, IntegerJoin<Op::mul, V>, int64_t>(to, lane, Op::reduce_prod);
  set_reduction<V, IntegerJoin<Op::max, V>, int64_t>(to, lane, Op::reduce_max);
  set_reduction<V, IntegerJoin<Op::min, V>, int64_t>(to, lane, Op::reduce_min);
}

}  // namespace rlx::cpu::RLX_ISA::machine
