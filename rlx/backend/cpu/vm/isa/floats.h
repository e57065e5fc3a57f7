// The operations on f32 and f64: the functions of cpu::Unary and cpu::Binary on vectors, so that a fused value
// has the bits of the kernel's.
#pragma once

#include "rlx/backend/cpu/simd/narrow.h"
#include "rlx/backend/cpu/simd/unary_math.h"
#include "rlx/backend/cpu/vm/isa/affine.h"
#include "rlx/backend/cpu/vm/isa/arithmetic.h"

namespace rlx::cpu::RLX_ISA::machine {

struct Add {
  template <class V>
  static RLX_INLINE V apply(V a, V b) {
    return a + b;
  }
};
struct Sub {
  template <class V>
  static RLX_INLINE V apply(V a, V b) {
    return a - b;
  }
};
struct Mul {
  template <class V>
  static RLX_INLINE V apply(V a, V b) {
    return a * b;
  }
};
struct Div {
  template <class V>
  static RLX_INLINE V apply(V a, V b) {
    return a / b;
  }
};
// NaN wins, and b where both are equal: the instruction gives b for equal numbers and where one is NaN.
struct Max {
  template <class V>
  static RLX_INLINE V apply(V a, V b) {
    return a != a ? a : max(a, b);
  }
};
struct Min {
  template <class V>
  static RLX_INLINE V apply(V a, V b) {
    return a != a ? a : min(a, b);
  }
};
struct Pow {
  template <class V>
  static RLX_INLINE V apply(V a, V b) {
    return pow(a, b);
  }
};
struct Rem {
  static RLX_INLINE F32 apply(F32 a, F32 b) {
    for (int j = 0; j < kLanes; ++j) a[j] = __builtin_fmodf(a[j], b[j]);
    return a;
  }
  static RLX_INLINE F64 apply(F64 a, F64 b) {
    for (int j = 0; j < kLanes64; ++j) a[j] = __builtin_fmod(a[j], b[j]);
    return a;
  }
};

template <class T>
struct SumOf : Add {
  static constexpr T start() { return 0; }
  template <class S>
  static S one(S a, S b) {
    return a + b;
  }
};
template <class T>
struct ProductOf : Mul {
  static constexpr T start() { return 1; }
  template <class S>
  static S one(S a, S b) {
    return a * b;
  }
};
template <class T>
struct MaxOf : Max {
  static constexpr T start() { return -T(__builtin_inf()); }
  template <class S>
  static S one(S a, S b) {
    return a > b || a != a ? a : b;
  }
};
template <class T>
struct MinOf : Min {
  static constexpr T start() { return T(__builtin_inf()); }
  template <class S>
  static S one(S a, S b) {
    return a < b || a != a ? a : b;
  }
};

template <Unary op, class V, bool keeps>
void unary_step(RLX_STEP) {
  [[maybe_unused]] char* to = keeps ? block(at, m->c, i) : nullptr;
  const auto f = [&](F32 v, int k) RLX_LAMBDA {
    const F32 y = (F32)apply<op>((V)v);
    if constexpr (keeps) std::memcpy(to + k * kVectorBytes, &y, sizeof y);
    return y;
  };
  RLX_EACH(f);
  RLX_NEXT;
}
template <Unary op, class V>
void unary_loop(RLX_STEP) {
  F32 v[kVectors] = {v0, v1, v2, v3, v4, v5, v6, v7};
#pragma GCC unroll 1
  for (int k = 0; k < kVectors; ++k) v[k] = (F32)apply<op>((V)v[k]);
  v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3], v4 = v[4], v5 = v[5], v6 = v[6], v7 = v[7];
  RLX_NEXT;
}

/// The function of the kernels that an operation is; identity where there is none.
constexpr Unary kernel_function(Op op) {
  switch (op) {
    case Op::neg:
      return Unary::neg;
    case Op::abs:
      return Unary::abs;
    case Op::sign:
      return Unary::sign;
    case Op::square:
      return Unary::square;
    case Op::sqrt:
      return Unary::sqrt;
    case Op::rsqrt:
      return Unary::rsqrt;
    case Op::reciprocal:
      return Unary::reciprocal;
    case Op::exp:
      return Unary::exp;
    case Op::expm1:
      return Unary::expm1;
    case Op::log:
      return Unary::log;
    case Op::log1p:
      return Unary::log1p;
    case Op::sin:
      return Unary::sin;
    case Op::cos:
      return Unary::cos;
    case Op::tan:
      return Unary::tan;
    case Op::atan:
      return Unary::atan;
    case Op::tanh:
      return Unary::tanh;
    case Op::sigmoid:
      return Unary::sigmoid;
    case Op::erf:
      return Unary::erf;
    case Op::relu:
      return Unary::relu;
    case Op::silu:
      return Unary::silu;
    case Op::gelu:
      return Unary::gelu;
    case Op::gelu_tanh:
      return Unary::gelu_tanh;
    case Op::gelu_quick:
      return Unary::gelu_quick;
    case Op::softplus:
      return Unary::softplus;
    case Op::floor:
      return Unary::floor;
    case Op::ceil:
      return Unary::ceil;
    case Op::round:
      return Unary::round;
    default:
      return Unary::identity;
  }
}

/// Functions of a few instructions are unrolled over the eight vectors.
constexpr bool is_short(Op op) {
  return op <= Op::reciprocal || op == Op::relu || op == Op::floor || op == Op::ceil || op == Op::round;
}

using UnaryTable = Function[kUnaryOps][2];

template <class V, Op op>
void set_unary(UnaryTable& to) {
  constexpr Unary f = kernel_function(op);
  if constexpr (f != Unary::identity && is_short(op)) {
    to[unary_index(op)][0] = as_function(unary_step<f, V, false>);
    to[unary_index(op)][1] = as_function(unary_step<f, V, true>);
  }
  if constexpr (f != Unary::identity && !is_short(op)) to[unary_index(op)][0] = as_function(unary_loop<f, V>);
}
template <class V, int... k>
void set_unaries(UnaryTable& to, Indices<k...>) {
  (set_unary<V, Op(int(Op::neg) + k)>(to), ...);
}

/// acc + x y, acc - x y or x y - acc, each rounded as the two operations are.
template <class V, ProductForm form, bool one, bool keeps>
void product_step(RLX_STEP) {
  const char *p = one ? address(at, m->a) : block(at, m->a, i), *from = block(at, m->b, i);
  [[maybe_unused]] char* to = keeps ? block(at, m->c, i) : nullptr;
  [[maybe_unused]] const V factor = one ? read_one<V>(p) : V{};
  const auto f = [&](F32 v, int k) RLX_LAMBDA {
    const V x = load_bytes<V>(from + k * kVectorBytes);
    const V product = x * (one ? factor : load_bytes<V>(p + k * kVectorBytes));
    const V y = form == ProductForm::add   ? (V)v + product
                : form == ProductForm::sub ? (V)v - product
                                           : product - (V)v;
    if constexpr (keeps) std::memcpy(to + k * kVectorBytes, &y, sizeof y);
    return (F32)y;
  };
  RLX_EACH(f);
  RLX_NEXT;
}
template <class V, ProductForm form>
void set_product(Functions& to, Lane lane) {
  auto& forms = to.product[int(lane)][int(form)];
  forms[0][0] = as_function(product_step<V, form, false, false>);
  forms[0][1] = as_function(product_step<V, form, false, true>);
  forms[1][0] = as_function(product_step<V, form, true, false>);
  forms[1][1] = as_function(product_step<V, form, true, true>);
}

/// Memory narrower than the lanes as an operand.
template <class Apply, class Memory, bool keeps>
void narrow_step(RLX_STEP) {
  const auto* p = reinterpret_cast<const Memory*>(block<F32, sizeof(Memory)>(at, m->b, i));
  [[maybe_unused]] char* to = keeps ? block(at, m->c, i) : nullptr;
  const auto f = [&](F32 v, int k) RLX_LAMBDA {
    const F32 y = Apply::apply(v, load(p + k * kLanes));
    if constexpr (keeps) std::memcpy(to + k * kVectorBytes, &y, sizeof y);
    return y;
  };
  RLX_EACH(f);
  RLX_NEXT;
}
template <class Apply, class Memory>
void set_narrow(Function (&to)[2]) {
  to[0] = as_function(narrow_step<Apply, Memory, false>);
  to[1] = as_function(narrow_step<Apply, Memory, true>);
}

template <class V, class Apply>
void set_all(FormTable& to) {
  set_forms<V, Apply>(to);
  set_loading<V, Apply>(to);
  set_keeping<V, Apply>(to);
}

template <class V>
void set_floats(Functions& to, Lane lane) {
  using T = Element<V>;
  set_unaries<V>(to.unary[int(lane)], MakeIndices<kUnaryOps>());
  auto& binary = to.binary[int(lane)];
  set_all<V, Add>(binary[binary_index(Op::add)]);
  set_all<V, Sub>(binary[binary_index(Op::sub)]);
  set_all<V, Mul>(binary[binary_index(Op::mul)]);
  set_all<V, Div>(binary[binary_index(Op::div)]);
  set_all<V, Max>(binary[binary_index(Op::max)]);
  set_all<V, Min>(binary[binary_index(Op::min)]);
  set_loops<V, Rem>(binary[binary_index(Op::rem)]);
  set_loops<V, Pow>(binary[binary_index(Op::pow)]);
  set_comparisons<V>(binary);
  set_loading<V, Compared<Op::lt, V>>(binary[binary_index(Op::lt)]);
  set_loading<V, Compared<Op::le, V>>(binary[binary_index(Op::le)]);
  set_affine<V>(to.affine[int(lane)], MakeIndices<kAffineForms>());
  set_product<V, ProductForm::add>(to, lane);
  set_product<V, ProductForm::sub>(to, lane);
  set_product<V, ProductForm::sub_first>(to, lane);
  set_reduction<V, SumOf<T>, double>(to, lane, Op::reduce_sum);
  set_reduction<V, ProductOf<T>, double>(to, lane, Op::reduce_prod);
  set_reduction<V, MaxOf<T>, double>(to, lane, Op::reduce_max);
  set_reduction<V, MinOf<T>, double>(to, lane, Op::reduce_min);
  auto& sums = to.reduce[int(lane)][reduction_index(Op::reduce_sum)];
  set_reduced<V, SumOf<T>, Reduced::square>(sums);
  set_reduced<V, SumOf<T>, Reduced::product>(sums);
  set_reduced<V, SumOf<T>, Reduced::memory>(sums);
  set_reduced<V, SumOf<T>, Reduced::two_memories>(sums);
  set_reduced<V, SumOf<T>, Reduced::about>(sums);
  set_reduced<V, MaxOf<T>, Reduced::memory>(to.reduce[int(lane)][reduction_index(Op::reduce_max)]);
  set_reduced<V, MinOf<T>, Reduced::memory>(to.reduce[int(lane)][reduction_index(Op::reduce_min)]);
}

}  // namespace rlx::cpu::RLX_ISA::machine
