// How far results of a kernel may be from those of the interpreter.
#pragma once

#include <algorithm>

#include "rlx/ir/literal.h"

namespace rlx::test {

/// Of results that carry a few roundings of sums over at most some dozens of terms, in the narrowest type of
/// operands and results; `factor` of them for chains.
inline double tolerance_of(const Literals& operands, const Literals& results, double factor = 1) {
  double out = 1e-9;
  for (const Literals* list : {&operands, &results}) {
    for (const Literal& l : *list) {
      if (l.dtype() == DType::f32 || l.dtype() == DType::c64) out = std::max(out, 2e-5);
      if (l.dtype() == DType::f16) out = std::max(out, 2e-3);
      if (l.dtype() == DType::bf16) out = std::max(out, 2e-2);
    }
  }
  return factor * out;
}

}  // namespace rlx::test
