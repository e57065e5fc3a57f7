#include "rlx/backend/plan.h"

#include <algorithm>

namespace rlx::backend {
namespace {

constexpr std::string_view kKinds[] = {"leaf", "output", "constant", "activation", "workspace"};

}  // namespace

std::vector<Plan> Step::bodies() const { return {}; }

bool runs_by_rule(const Plan::Step& s) {
  return s.by_rule || std::any_of(s.bodies.begin(), s.bodies.end(), [](const Plan& body) {
           return std::any_of(body.steps.begin(), body.steps.end(), runs_by_rule);
         });
}

ByteRange Plan::Place::extent() const {
  int64_t low = 0, high = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t size = shape.dim(i).value();
    if (size == 0) return {};
    const int64_t reach = (size - 1) * layout.strides[size_t(i)];
    (reach < 0 ? low : high) += reach;
  }
  const auto element = int64_t(dtype_size(shape.dtype()));
  return {offset + low * element, offset + (high + 1) * element};
}

std::string_view buffer_kind_name(BufferKind k) { return kKinds[size_t(k)]; }

}  // namespace rlx::backend
