// How each transform treats an operator; for the documents.
#pragma once

#include <string_view>

#include "rlx/ir/op_def.h"

namespace rlx::transform {

struct Coverage {
  std::string_view vjp, jvp, vmap;
  /// Whether first and second derivatives exist at all, and if not why.
  std::string_view note;
};

/// Of one operator.
Coverage coverage(const ir::OpDef& op);

}  // namespace rlx::transform
