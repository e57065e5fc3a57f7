// One forward run, many tangents: the jvp graph cut at what does not depend on the tangents.
#include "rlx/ir/leaves.h"
#include "rlx/transform/forward.h"
#include "rlx/transform/transform.h"
#include "rlx/transform/walk.h"

namespace rlx::transform {

Linearized linearize(const Graph& g, const std::vector<std::string>& wrt) {
  if (wrt.empty()) throw invalid("linearize: no names given; say with respect to which inputs or params");
  const size_t leaves = g.leaves().size(), outputs = g.outputs().size();
  // The tangent part of the cut is linear in the tangents; everything else it reads was computed before.
  Partition cut = partition(jvp_graph(g, wrt, false), leaves, outputs, SavePolicy::save_all);

  Linearized out;
  out.forward = std::move(cut.forward);
  out.forward.set_name(g.name() + "_forward");
  out.linear.set_name(g.name() + "_linear");
  Values all = out.forward.outputs();
  std::vector<std::string> names = out.forward.output_names();
  const Values saved(all.begin() + long(outputs), all.end());
  all.resize(outputs);
  names.resize(outputs);

  // The cut takes every leaf of g as it is. Here a leaf that the linear part reads is one more residual.
  const auto residual = [&](Value of) {
    const std::string name = cat("residual_", out.residuals.size());
    out.residuals.push_back(out.forward.shape(of));
    all.push_back(of);
    names.push_back(free_name(names, name));
    return out.linear.input(name, out.residuals.back());
  };
  const std::vector<NodeId> before = cut.backward.leaves(), forward = out.forward.leaves();
  std::vector<Value> bound(before.size());
  for (size_t i = 0; i < leaves + saved.size(); ++i) {
    const bool is_leaf = i < leaves;
    if (is_leaf && cut.backward.use_count(before[i]) == 0) continue;
    bound[i] = residual(is_leaf ? out.forward.value(forward[i]) : saved[i - leaves]);
  }
  for (size_t i = leaves + saved.size(); i < before.size(); ++i) {
    const Node& n = cut.backward.node(before[i]);
    bound[i] = out.linear.input(ir::leaf_name(n), n.shapes[0]);
  }
  for (size_t i = 0; i < leaves; ++i) {  // nobody reads these: any value stands in
    if (bound[i].node == kNoNode) bound[i] = bound.back();
  }
  out.linear.set_outputs(inline_graph(out.linear, cut.backward, bound), cut.backward.output_names());
  out.forward.set_outputs(all, names);
  return out;
}

}  // namespace rlx::transform
