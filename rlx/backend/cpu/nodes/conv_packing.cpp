#include "rlx/backend/cpu/nodes/conv_packing.h"

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/nodes/packed.h"

namespace rlx::cpu {

Packing conv_packing(const std::shared_ptr<const ConvPlan>& plan, int operand, bool swapped) {
  Packing packing{.operand = operand};
  packing.form = cat("conv ", PackedConvWeights::kLayoutVersion, " ", isa_name(current_isa()),
                     swapped ? " swapped " : " ", PackedConvWeights::form(*plan));
  packing.bytes = int64_t(PackedConvWeights::bytes(*plan));
  packing.make = [plan, swapped](Team team, const std::byte* data) -> std::shared_ptr<const void> {
    auto made = std::make_shared<FixedConvWeights>(FixedConvWeights{plan, PackedConvWeights(*plan)});
    made->packed.pack(team, reinterpret_cast<const float*>(data), swapped);
    return made;
  };
  packing.bytes_of = [](const void* form) -> std::span<const std::byte> {
    return static_cast<const FixedConvWeights*>(form)->packed.contents();
  };
  packing.restore = [plan](Team team, std::span<const std::byte> from) -> std::shared_ptr<const void> {
    auto made = std::make_shared<FixedConvWeights>(FixedConvWeights{plan, PackedConvWeights(*plan)});
    copy_bytes(team, from, made->packed.contents());
    return made;
  };
  return packing;
}

}  // namespace rlx::cpu
