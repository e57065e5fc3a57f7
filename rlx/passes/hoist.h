// What a loop computes anew in every step although it never changes.
#pragma once

#include "rlx/ir/rewrite.h"

namespace rlx::passes {

/// Takes out of the bodies of `scan` and `while` what depends on their constants alone; it becomes another constant of the
/// loop.
///   scan(c, w, body = (c, w) { wt = transpose(w); s = mul(wt, wt); add(c, s) })   =>
///   s = mul(transpose(w), transpose(w));   scan(c, w, s, body = (c, w, s) { add(c, s) })
/// Only operators that cannot refuse their operands move: a loop may run no step at all. Views stay, they cost nothing; so do fills and
/// whatever would grow: a value larger than all that it is made of.
ir::Rewritten hoist_invariants(const ir::Graph&);

}  // namespace rlx::passes
