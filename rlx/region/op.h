// The operations of a region, and the number types its values have while they are computed.
//
// Plain enumerations without code behind them: the sources of the CPU backend that are compiled once per
// instruction set include this header.
#pragma once

#include <cstdint>

namespace rlx::region {

/// What a lane holds. A region computes in lanes of one width: f32 and i32, or f64 and i64. A mask is a
/// condition, as wide as the other lanes. Narrower types exist in memory only.
enum class Lane : uint8_t { mask, i32, i64, f32, f64 };
inline constexpr int kLaneCount = 5;

enum class Op : uint8_t {
  // Memory, constants, structure.
  load,
  store,
  constant,
  barrier,
  // Of one number. The functions are those of the elementwise operators of the same names.
  neg,
  abs,
  sign,
  square,
  sqrt,
  rsqrt,
  reciprocal,
  exp,
  expm1,
  log,
  log1p,
  sin,
  cos,
  tan,
  atan,
  tanh,
  sigmoid,
  erf,
  relu,
  silu,
  gelu,
  gelu_tanh,
  gelu_quick,
  softplus,
  floor,
  ceil,
  round,
  round_f16,   // the nearest f16, kept as f32
  round_bf16,  // the nearest bf16, kept as f32
  convert,  // to the lane of the result: float to integer truncates and saturates, NaN is 0; a mask is 0 or 1
  bit_not,
  // Of two numbers. Integers wrap; x / 0 and x rem 0 are 0 for them. NaN wins in max and min, and b does where
  // a and b are equal. Shifts by less than 0 or more than the width give 0, or the sign where they go right.
  add,
  sub,
  mul,
  div,
  max,
  min,
  rem,
  pow,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  // mask ? b : c
  select,
  // Over the columns of a row: an element value becomes a row value.
  reduce_sum,
  reduce_prod,
  reduce_max,
  reduce_min,
};
inline constexpr int kOpCount = int(Op::reduce_min) + 1;

constexpr bool is_unary(Op op) { return op >= Op::neg && op <= Op::bit_not; }
constexpr bool is_binary(Op op) { return op >= Op::add && op <= Op::ge; }
constexpr bool is_comparison(Op op) { return op >= Op::eq && op <= Op::ge; }
constexpr bool is_reduction(Op op) { return op >= Op::reduce_sum; }
constexpr bool is_commutative(Op op) {
  return op == Op::add || op == Op::mul || (op >= Op::bit_and && op <= Op::bit_xor) || op == Op::eq ||
         op == Op::ne;
}
constexpr int arity(Op op) {
  if (op == Op::select) return 3;
  if (is_binary(op)) return 2;
  return op == Op::store || is_unary(op) || is_reduction(op) ? 1 : 0;
}

constexpr bool is_float(Lane lane) { return lane == Lane::f32 || lane == Lane::f64; }
constexpr bool is_integer(Lane lane) { return lane == Lane::i32 || lane == Lane::i64; }

}  // namespace rlx::region
