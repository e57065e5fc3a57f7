// Kernels for narrow types made of kernels for wider ones: operands are converted into the workspace, results
// back.
#pragma once

#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {

/// What computes for a type that has no kernel of its own: f32 for f16 and bf16, i32 for i8, i16, u8 and
/// bool, i64 for u32; itself for all others.
DType wide_dtype(DType);

using Accepts = Support (*)(const Request&);
using Prepare = std::unique_ptr<Step> (*)(const Request&);

/// `kept`: bit i is set for an operand that stays as it is.
Support accepts_wide(const Request&, Accepts, unsigned kept = 0);
std::unique_ptr<Step> prepare_wide(const Request&, Prepare, unsigned kept = 0);

/// The kernel on operands and results of the wider types. It declines when no operand is narrow.
template <Accepts A, Prepare P, unsigned Kept = 0>
Kernel wide_kernel(std::string_view name) {
  return {name, [](const Request& r) { return accepts_wide(r, A, Kept); },
          [](const Request& r) { return prepare_wide(r, P, Kept); }};
}

}  // namespace rlx::cpu
