#include "rlx/backend/cpu/nodes/built_device.h"

#include "rlx/backend/cpu/isa.h"
#include "rlx/base/version.h"

namespace rlx::cpu {

BuiltDevice::BuiltDevice(std::initializer_list<void (*)(KernelTable&)> families) {
  for (const auto add : families) add(kernels_);
}

std::unique_ptr<Step> BuiltDevice::prepare_copy(const Arg& from, const Arg& to, int) const {
  return cpu::prepare_copy(from, to);
}

std::string machine_text() { return cat("rlx ", RLX_VERSION, ", cpu ", isa_name(current_isa())); }

void require_machine(std::string_view built_for) {
  if (const std::string here = machine_text(); here != built_for)
    throw invalid("create: the program was built for ", built_for, ", this is ", here,
                  "; build it again here");
}

}  // namespace rlx::cpu
