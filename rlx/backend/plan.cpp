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

std::string_view buffer_kind_name(BufferKind k) { return kKinds[size_t(k)]; }

}  // namespace rlx::backend
