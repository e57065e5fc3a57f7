// One operation of a region on single numbers: what it means. Folding of constants and the judge use it.
#pragma once

#include "rlx/region/region.h"

namespace rlx::region {

/// The value of an instruction whose operands have lane `from`. Floats are computed in f64 and rounded once to
/// the lane; sums, products, quotients and roots are exact to the last bit that way.
Constant evaluate(const Instruction&, Lane from, const Constant& a, const Constant& b, const Constant& c);

/// What a reduction starts from, and how it goes on. Sums and products of f32 go on in f64; `finish` rounds.
Constant combine(Op reduction, Lane, const Constant& so_far, const Constant& next);
Constant finish(Lane, const Constant&);

/// Whether every machine computes the operation to the last bit alike, so that folding it changes nothing.
bool is_exact(Op);

}  // namespace rlx::region
