#include "rlx/backend/work.h"

#include <algorithm>

#include "rlx/ir/bodies.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"

namespace rlx::backend {

double operations_of(const ir::Node& n, std::span<const Shape> in) {
  double sum = 0, dearest = 0;
  bool bodies = false;
  ir::for_each_body(n, [&](const ir::FieldInfo&, const ir::GraphRef& body) {
    const double inside = operations_of(*body);
    sum += inside;
    dearest = std::max(dearest, inside);
    bodies = true;
  });
  if (n.is<ops::CustomFn>()) return operations_of(*n.as<ops::CustomFn>().fwd_body);
  if (n.is<ops::Scan>()) return sum * double(n.as<ops::Scan>().length.value());
  if (bodies) return n.is<ops::If>() ? dearest : sum;
  return ir::cost_of(*n.op, in, n.shapes, n.attrs.get()).operations;
}

double operations_of(const ir::Graph& g) {
  double out = 0;
  for (const ir::Node* n : g.nodes()) {
    if (n->op->traits.leaf) continue;
    Shapes in;
    for (const ir::Value v : n->inputs) in.push_back(g.shape(v));
    out += operations_of(*n, in);
  }
  return out;
}

ir::Cost work_of(const ir::Node& n, std::span<const Shape> in) {
  ir::Cost out = ir::cost_of(*n.op, in, n.shapes, n.attrs.get());
  out.operations = operations_of(n, in);
  return out;
}

}  // namespace rlx::backend
