// The processor as programs written by `rlx build` know it: with the families of kernels that their steps need, and no last resort.
#pragma once

#include <initializer_list>

#include "rlx/backend/control.h"
#include "rlx/backend/cpu/nodes/conv_codes.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/backend/cpu/nodes/fused_conv.h"
#include "rlx/backend/cpu/nodes/product_groups.h"
#include "rlx/backend/cpu/nodes/scalar_loop.h"

namespace rlx::cpu {

class BuiltDevice final : public backend::Backend {
 public:
  explicit BuiltDevice(std::initializer_list<void (*)(KernelTable&)> families);

  std::string_view name() const override { return "cpu"; }
  std::unique_ptr<Step> prepare_copy(const Arg& from, const Arg& to, int threads) const override;
};

/// "rlx 0.1.0, cpu avx512": what decides the bits of a run beside the graph. For a program that was built for another it is a user error.
std::string machine_text();
void require_machine(std::string_view built_for);

}  // namespace rlx::cpu
