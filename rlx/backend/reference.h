// The operators' reference rules as a kernel: exact, slow, complete.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx::backend {

/// Runs any node on row-major operands by its reference rule, or by its decomposition where it has none. It allocates, and says so in
/// its note.
Kernel reference_kernel();

/// The backend with no other kernel: the judge.
const Backend& ref();

/// Copies any layout element by element; for backends on the host without a better one.
std::unique_ptr<Step> prepare_plain_copy(const Arg& from, const Arg& to);

}  // namespace rlx::backend
