// Steps whose operand is read in a packed form, made once for weights and in each run for what changes.
#pragma once

#include <cstring>
#include <functional>
#include <new>
#include <span>

#include "rlx/backend/cpu/kernels/sizes.h"
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

/// The form of an operand that changes from run to run, made in memory of the run. What is made there owns nothing and is not destroyed.
struct PackedNow {
  size_t bytes = 0;
  std::function<const void*(Team, const std::byte* data, std::byte* memory)> make;
};

/// Both ways to make a form: pack(team, data, lent) gives one in `lent` memory of `bytes`, or in its own where that is null.
template <class Form, class Pack>
PackedNow add_makers(Packing& packing, size_t bytes, Pack pack) {
  packing.make = [pack](Team team, const std::byte* data) -> std::shared_ptr<const void> {
    return std::make_shared<const Form>(pack(team, data, nullptr));
  };
  constexpr size_t kHead = round_up(sizeof(Form));
  return {kHead + bytes, [pack](Team team, const std::byte* data, std::byte* memory) -> const void* {
            return new (memory) Form(pack(team, data, memory + kHead));
          }};
}

/// run(launch, packed form) with the form of operand `packing.operand`. Passes ask kernels before they know
/// which operands are fixed, so a kernel that took fixed ones only would see its operator taken apart.
template <class Run>
std::unique_ptr<Step> with_packed(const Request& r, const Packing& packing, const PackedNow& now,
                                  size_t workspace, Run run) {
  if (r.in[size_t(packing.operand)].fixed) {
    return make_step([run](const Launch& l) { run(l, l.packed[0]); }, workspace, {packing});
  }
  const size_t before = round_up(workspace);
  return make_step([run, make = now.make, before, operand = packing.operand](
                       const Launch& l) { run(l, make(l.team, l.in[operand], l.workspace + before)); },
                   before + now.bytes);
}

}  // namespace rlx::cpu
