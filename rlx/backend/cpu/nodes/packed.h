// Steps whose operand is read in a packed form, made once for weights and in each run for what changes.
#pragma once

#include <cstring>
#include <span>

#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

/// Kept bytes of a packed form to where it lies, by all threads.
inline void copy_bytes(Team team, std::span<const std::byte> from, std::span<std::byte> to) {
  RLX_CHECK(from.size() == to.size(), "a packed form has ", to.size(), " bytes, these are ", from.size());
  team.parallel_for(int64_t(from.size()), 1 << 20, [&](int64_t begin, int64_t end) {
    std::memcpy(to.data() + begin, from.data() + begin, size_t(end - begin));
  });
}

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
