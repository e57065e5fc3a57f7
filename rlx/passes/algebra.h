// Algebraic rules as data: what a small expression may be replaced by.
#pragma once

#include "rlx/ir/rewrite.h"

namespace rlx::passes {

/// `from` and `to` are written as calls of operators without attributes: a name alone stands for any value, the same name for the
/// same value, a number for a constant that holds nothing else. Operands of commutative operators match in both orders.
/// Every rule holds bit for bit in every dtype of its operators that is one of `numbers`, with NaN, infinities, signed zeros and
/// integers that wrap.
struct Rule {
  enum class Numbers { all, real, with_sign, floats };
  std::string_view name, from, to;
  Numbers numbers = Numbers::all;
};
std::span<const Rule> algebraic_rules();

/// Applies the rules wherever the type of the value stays the same.
///   y = mul(neg(neg(x)), 1)   =>   y = x
ir::Rewritten simplify(ir::Graph);

/// One side of a rule as a graph of its own, with the names as inputs of this type in order of appearance in `from`; for proofs.
ir::Graph side_of(const Rule&, bool from, const Shape& type);

}  // namespace rlx::passes
