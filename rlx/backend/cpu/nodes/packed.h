// Steps whose operand is read in a packed form, made once for weights and in each run for what changes.
#pragma once

#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {

/// run(launch, packed form) with the form of operand `packing.operand`. Passes ask kernels before they know
/// which operands are fixed, so a kernel that took fixed ones only would see its operator taken apart.
template <class Run>
std::unique_ptr<Step> with_packed(const Request& r, const Packing& packing, size_t workspace, Run run) {
  if (r.in[size_t(packing.operand)].fixed) {
    return make_step([run](const Launch& l) { run(l, l.packed[0]); }, workspace, {packing});
  }
  return make_step(
      [run, make = packing.make, operand = packing.operand](const Launch& l) {
        const std::shared_ptr<const void> now = make(l.team, l.in[operand]);
        run(l, now.get());
      },
      workspace);
}

}  // namespace rlx::cpu
