#include "rlx/backend/control/body.h"

#include <algorithm>
#include <cstring>

namespace rlx::backend {

Body::Body(const Request& r, const ir::Graph& body, const std::vector<int>& operand_of_leaf, Step& step)
    : leaves_(operand_of_leaf.size()), first_packing_(step.packings.size()) {
  Interface interface;
  for (const int operand : operand_of_leaf)
    interface.fixed.push_back(operand >= 0 && r.in[size_t(operand)].fixed);
  program_ = r.builder->build(body, interface);
  for (const ir::Value v : body.outputs()) outputs_.push_back(body.shape(v));
  for (const auto& form : program_->packings()) {
    Packing p = form.packing;
    p.operand = operand_of_leaf[size_t(form.leaf)];
    step.packings.push_back(std::move(p));
  }
}

size_t Body::workspace() const {
  return aligned_size(program_->arena_bytes()) +
         aligned_size((leaves_ + outputs_.size()) * sizeof(std::byte*));
}

std::byte** Body::leaf_addresses(std::byte* workspace) const {
  return reinterpret_cast<std::byte**>(workspace + aligned_size(program_->arena_bytes()));
}

void Body::run(const Launch& l, std::byte* workspace, const BodyRun& which) const {
  const Look look(l.observer, which);
  program_->run({.team = l.team,
                 .leaves = leaf_addresses(workspace),
                 .outputs = output_addresses(workspace),
                 .arena = workspace,
                 .packed = l.packed + first_packing_,
                 .stream = l.stream,
                 .observer = look.observer(),
                 .stop = l.stop});
}

bool all_nonzero(DType dtype, const std::byte* data, int64_t n) {
  const size_t size = dtype_size(dtype);
  for (int64_t i = 0; i < n; ++i) {
    const std::byte* p = data + size_t(i) * size;
    bool some = false;
    if (dtype == DType::f32) {
      float v;
      std::memcpy(&v, p, sizeof v);
      some = v != 0;
    } else if (dtype == DType::f64) {
      double v;
      std::memcpy(&v, p, sizeof v);
      some = v != 0;
    } else {
      // Integers and booleans; of the narrow floats all bits but the sign, which is the highest of the last byte.
      for (size_t k = 0; k < size; ++k) {
        const bool sign_byte = is_float(dtype) && k + 1 == size;
        some = some || (p[k] & std::byte(sign_byte ? 0x7f : 0xff)) != std::byte(0);
      }
    }
    if (!some) return false;
  }
  return true;
}

}  // namespace rlx::backend
