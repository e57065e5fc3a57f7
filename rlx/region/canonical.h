// One spelling of every region, before anyone reads it.
//
// Nothing here changes the bits of an element: no sums are reordered, no product and sum are contracted, only
// exact operations on constants are done beforehand.
#pragma once

#include "rlx/region/region.h"

namespace rlx::region {

/// Values without an order of phases -> the same in one spelling: constants folded, equal values once, unused
/// ones gone. Comparisons are eq, ne, lt and le; x * x is square, 1 / x reciprocal, a quotient by a power of two
/// a product; of a commutative operation the second operand is the constant or row value. The program has no
/// barriers, and a reduction may be used anywhere behind it.
void simplify(Region&);

/// The same in phases. A value goes where its operands first are known; an element value that a later phase
/// needs is computed again from its arguments when that is cheap, else kept in a scratch row. Inside a phase the
/// deeper operand comes first, so that one accumulator follows a chain of operations without detours, and a result
/// is stored as soon as it is known, unless it could then no longer take the memory of an input.
void place_phases(Region&);

inline Region canonical(Region r) {
  simplify(r);
  place_phases(r);
  return r;
}

}  // namespace rlx::region
