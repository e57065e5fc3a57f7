#include "rlx/passes/known_number.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::passes {

std::optional<double> known_number(const ir::Graph& g, ir::Value v) {
  constexpr int64_t kMost = 65536;
  const ir::Node& n = g.node(v);
  if (n.is<ir::Full>()) return n.as<ir::Full>().value;
  if (n.is<ops::Reshape>() || n.is<ops::Expand>()) return known_number(g, n.inputs[0]);
  if (!n.is<ir::Constant>()) return std::nullopt;
  const Literal& l = n.as<ir::Constant>().value;
  if (is_complex(l.dtype()) || l.elements() == 0 || l.elements() > kMost) return std::nullopt;
  for (int64_t i = 1; i < l.elements(); ++i) {
    if (l.real_at(i) != l.real_at(0)) return std::nullopt;
  }
  return l.real_at(0);
}

}  // namespace rlx::passes
