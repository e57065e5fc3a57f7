// One spelling for each computation.
#pragma once

#include "rlx/ir/rewrite.h"

namespace rlx::passes {

/// Leaves out what changes nothing and spells the rest in one way, so that what is equal is found equal.
///   cast(x, to its own type), reshape(x, to its own sizes), narrow of all, ..   =>  x
///   cast(cast(x, to a type that holds every x), back)                           =>  x
///   transpose(transpose(x))                                                     =>  transpose(x), or x
///   add(2, x)                                                                   =>  add(x, 2)
///   if(true, ..)                                                                =>  the body that is taken
/// No bit of a result changes but those of a NaN.
ir::Rewritten canonicalise(ir::Graph);

/// Whether the operands of a node may change places. Those of max and min of floats may not: their order tells 0 from -0.
bool may_exchange(const ir::Node&);

/// Axes of x in this order; what x is a transpose of is looked through.
ir::Expr turned(ir::Expr x, std::vector<int> perm);

}  // namespace rlx::passes
