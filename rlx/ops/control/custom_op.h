// Operators by name, those of the library and those that a program adds. An operator of one's own is a struct
// like those of the library (rlx/ir/op_record.h), put into a table that readers take:
//
//   struct Cube {
//     static constexpr std::string_view name = "cube", summary = "...", doc = "...", operands = "x";
//     using Attrs = ir::NoAttrs;
//     static Shapes infer(ir::Infer& c, Attrs&) { return {c.in(0)}; }
//     static Literals reference(const ir::Eval&, const Attrs&);
//     static ir::Exprs vjp(const ir::Vjp&, const Attrs&);
//   };
//   ir::OpTable mine = ops::table();
//   mine.add<Cube>();
//   ir::make<Cube>(g, {}, {x});           // where the struct is in sight
//   custom_op(g, "cube", "", {x}, mine);  // by name
#pragma once

#include "rlx/ir/build_def.h"
#include "rlx/ops/table.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// The operator of this name in the table; `attrs` are its attributes as in a graph text: "k=2, axis=1". Returns
/// all results.
Exprs custom_op(Graph& g, std::string_view name, std::string_view attrs, const Exprs& inputs,
                const OpTable& ops = table());

/// As custom_op, for an operator with one result, which must have the type `out_shape`. An operator that cannot
/// know the type of its result from its operands has an attribute `out_shape` and is given it there.
Expr custom_op_packed(Graph& g, std::string_view name, std::string_view attrs, const Exprs& inputs,
                      const Shape& out_shape, const OpTable& ops = table());

}  // namespace rlx::ops
