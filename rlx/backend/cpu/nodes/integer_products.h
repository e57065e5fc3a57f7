// Products of integers of any strides.
#pragma once

#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {

/// Operands a [.., m, k] and b [.., k, n] and the result in i32 or i64.
Support accepts_integers(const Request&);
std::unique_ptr<Step> prepare_integers(const Request&);

}  // namespace rlx::cpu
