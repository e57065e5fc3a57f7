// Logic on booleans, and bits of integers. Both operands have one dtype and broadcast.
#pragma once

#include "rlx/ops/elementwise/binary.h"

namespace rlx::ops {

namespace detail {

Shapes infer_logical(Infer& c);
Shapes infer_shift(Infer& c);
std::vector<OpSample<NoAttrs>> logical_samples();
std::vector<OpSample<NoAttrs>> shift_samples();

}  // namespace detail

/// Self provides name, summary, doc and eval on 0 and 1.
template <class Self>
struct Logical : Binary<Self> {
  static constexpr bool only_integers = true;
  static constexpr Traits traits{.elementwise = true, .commutative = true, .zero_gradient = true};
  static Shapes infer(Infer& c, NoAttrs&) { return detail::infer_logical(c); }
  static std::vector<OpSample<NoAttrs>> samples() { return detail::logical_samples(); }
};

struct LogicalAnd : Logical<LogicalAnd> {
  static constexpr std::string_view name = "logical_and", summary = "Both of two conditions.",
                                    doc = "y = a and b, for bool";
  static int64_t eval(int64_t a, int64_t b) { return a & b; }
};

struct LogicalOr : Logical<LogicalOr> {
  static constexpr std::string_view name = "logical_or", summary = "At least one of two conditions.",
                                    doc = "y = a or b, for bool";
  static int64_t eval(int64_t a, int64_t b) { return a | b; }
};

struct LogicalXor : Logical<LogicalXor> {
  static constexpr std::string_view name = "logical_xor", summary = "Exactly one of two conditions.",
                                    doc = "y = a or b but not both, for bool";
  static int64_t eval(int64_t a, int64_t b) { return a ^ b; }
};

struct LogicalNot {
  static constexpr std::string_view name = "logical_not", summary = "Negation of a condition.",
                                    doc = "y = not x, for bool", operands = "x";
  static constexpr Traits traits{.elementwise = true, .zero_gradient = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

template <class Self>
struct Bitwise : Binary<Self> {
  static constexpr bool only_integers = true;
  static constexpr Traits traits{.elementwise = true, .commutative = true, .zero_gradient = true};
};

struct BitwiseAnd : Bitwise<BitwiseAnd> {
  static constexpr std::string_view name = "bitwise_and", summary = "Bits set in both integers.",
                                    doc = "y = a & b, bit by bit, for integers and bool";
  static int64_t eval(int64_t a, int64_t b) { return a & b; }
};

struct BitwiseOr : Bitwise<BitwiseOr> {
  static constexpr std::string_view name = "bitwise_or", summary = "Bits set in at least one integer.",
                                    doc = "y = a | b, bit by bit, for integers and bool";
  static int64_t eval(int64_t a, int64_t b) { return a | b; }
};

struct BitwiseXor : Bitwise<BitwiseXor> {
  static constexpr std::string_view name = "bitwise_xor", summary = "Bits set in exactly one integer.",
                                    doc = "y = a ^ b, bit by bit, for integers and bool";
  static int64_t eval(int64_t a, int64_t b) { return a ^ b; }
};

struct BitwiseNot {
  static constexpr std::string_view name = "bitwise_not", summary = "All bits inverted.",
                                    doc = "y = ~x, bit by bit, for integers; not x for bool", operands = "x";
  static constexpr Traits traits{.elementwise = true, .zero_gradient = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// Shifts are wide enough in 64 bits: the result keeps the low bits of its dtype.
template <class Self>
struct Shift : Binary<Self> {
  static constexpr bool only_integers = true;
  static constexpr Traits traits{.elementwise = true, .zero_gradient = true};
  static bool in_word(int64_t bits) { return bits >= 0 && bits < 64; }
  static Shapes infer(Infer& c, NoAttrs&) { return detail::infer_shift(c); }
  static std::vector<OpSample<NoAttrs>> samples() { return detail::shift_samples(); }
};

struct ShiftLeft : Shift<ShiftLeft> {
  static constexpr std::string_view name = "shift_left", summary = "Bits moved up.",
                                    doc = "y = a * 2^b modulo 2^width; 0 when b is negative or >= width";
  static int64_t eval(int64_t a, int64_t b) { return in_word(b) ? int64_t(uint64_t(a) << b) : 0; }
};

struct ShiftRight : Shift<ShiftRight> {
  static constexpr std::string_view
      name = "shift_right",
      summary = "Bits moved down.",
      doc = "y = floor(a / 2^b), so signed integers keep their sign; when b is negative or >= width, 0 or -1";
  static int64_t eval(int64_t a, int64_t b) { return a >> (in_word(b) ? b : 63); }
};

Expr logical_and(Expr a, Expr b);
Expr logical_or(Expr a, Expr b);
Expr logical_xor(Expr a, Expr b);
Expr logical_not(Expr x);
Expr bitwise_and(Expr a, Expr b);
Expr bitwise_or(Expr a, Expr b);
Expr bitwise_xor(Expr a, Expr b);
Expr bitwise_not(Expr x);
Expr shift_left(Expr a, Expr bits);
Expr shift_right(Expr a, Expr bits);

}  // namespace rlx::ops
