// How a backend runs an operator; for the documents.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx::backend {

/// What became of the operator's samples, operands as weights, built for a backend. Empty ones are left out.
struct Coverage {
  size_t samples = 0;
  std::vector<std::string> kernels;  // that run it or parts of its decomposition, sorted
  bool own = false;                  // a kernel runs some sample as it stands
  bool decomposed = false;           // some sample
  bool view = false;                 // some sample moves nothing
  /// What the reference rule runs: "f16: NAME: reason of each kernel".
  std::vector<std::string> reference;

  /// "kernel", "decomposition", "view", "reference", or several of them.
  std::string kind() const;
};

Coverage coverage(const ir::OpDef&, const Backend&);

}  // namespace rlx::backend
