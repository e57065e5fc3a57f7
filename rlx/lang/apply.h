// Any operator on tensors, by its record:
//
//   const Tensor y = apply<ops::Einsum>({.equation = "ij,jk->ik"}, {a, b});
//   const auto [u, s, vt] = apply<ops::Svd>({}, {a});
//
// An operator with one result gives a Tensor, one with n results an array of n, one whose number of results
// varies a list. rlx/lang/operators.h names each of them.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "rlx/ir/op_record.h"
#include "rlx/lang/builders/builder.h"
#include "rlx/lang/tensor.h"

namespace rlx {

using Operands = std::vector<Operand>;

namespace detail {

/// How many results the record names; -1 where the number varies.
template <ir::OpRecord Op>
consteval int result_count() {
  if constexpr (requires { Op::results; }) {
    constexpr std::string_view kNames = Op::results;
    return kNames.ends_with("...") || kNames.ends_with("?")
               ? -1
               : int(std::count(kNames.begin(), kNames.end(), ',')) + 1;
  }
  return 1;
}

template <int kCount>
struct ResultType {
  using Type = std::array<Tensor, size_t(kCount)>;
};
template <>
struct ResultType<1> {
  using Type = Tensor;
};
template <>
struct ResultType<-1> {
  using Type = Tensors;
};

/// Tensors brought together in the graph where an operator on them belongs.
struct Gathered {
  ir::Graph& graph;
  ir::Exprs operands;
};
/// An empty tensor, for an operand left out, becomes an empty expression; the first must not be empty.
Gathered gather_operands(std::string_view what, const Tensors& operands, const Loc& loc);

/// Operands by name, then those of a list.
Operands with_list(Operands fixed, const Tensors& list);

/// Appends the operator to the graph of its operands. An empty operand at the end is left out where the record
/// allows; numbers become scalars of the dtype of the last tensor.
Tensors emit(const ir::OpDef& op, ir::AttrsRef attrs, Operands operands, const Loc& loc);

/// What `build` makes of the operands, as one step: build(exprs) -> Expr.
template <class Build>
Tensor compose(std::string_view what, const Tensors& operands, const Loc& loc, Build build) {
  const Gathered in = gather_operands(what, operands, loc);
  return build_at(in.graph, loc, [&]() -> Tensor { return build(in.operands); });
}

}  // namespace detail

/// What an operator gives: a Tensor, an array of them, or a list.
template <ir::OpRecord Op>
using ResultsOf = typename detail::ResultType<detail::result_count<Op>()>::Type;

/// Appends an operator to the graph of its operands and returns its results.
template <ir::OpRecord Op>
ResultsOf<Op> apply(typename Op::Attrs attrs, Operands operands, const Loc& loc = Loc::current()) {
  constexpr int kCount = detail::result_count<Op>();
  Tensors results = detail::emit(ir::def<Op>(), std::make_shared<typename Op::Attrs>(std::move(attrs)),
                                 std::move(operands), loc);
  if constexpr (kCount == -1) {
    return results;
  } else if constexpr (kCount == 1) {
    return results[0];
  } else {
    std::array<Tensor, size_t(kCount)> out;
    std::copy(results.begin(), results.end(), out.begin());
    return out;
  }
}

}  // namespace rlx
