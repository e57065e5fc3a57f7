#include <algorithm>

#include "rlx/ir/leaves.h"
#include "rlx/transform/forward.h"
#include "rlx/transform/reverse.h"
#include "rlx/transform/transform.h"

namespace rlx::transform {
namespace {

// A copy of g whose outputs are followed by gradients, and how many outputs of g come first.
struct Joint {
  Graph graph;
  size_t outputs;
};

// The place of the output called `loss`, which must be a real scalar.
size_t loss_output(const Graph& g, const std::string& loss) {
  const std::vector<std::string> names = g.output_names();
  const auto it = std::find(names.begin(), names.end(), loss);
  if (it == names.end())
    throw invalid("grad: graph '", g.name(), "' has no output '", loss, "'; it has ", join(names));
  const size_t i = size_t(it - names.begin());
  const Shape& shape = g.shape(g.outputs()[i]);
  if (shape.rank() != 0 || !is_float(shape.dtype()))
    throw invalid("grad: the loss '", loss, "' is ", shape, "; it must be a real scalar");
  return i;
}

Joint differentiate(const Graph& g, const std::vector<std::string>& wrt, const GradOptions& options) {
  Graph joint = prepare_graph_for_ad(g);
  if (wrt.empty()) throw invalid("grad: no names given; say with respect to which inputs or params");
  Values leaves;
  for (const std::string& name : wrt) leaves.push_back(differentiable_leaf(joint, name, "grad"));
  joint.set_name(g.name() + "_grad");
  const Values outputs = joint.outputs();
  const std::vector<std::string> names = joint.output_names();
  if (outputs.empty()) throw invalid("grad: graph '", g.name(), "' has no outputs");
  const bool named = !options.loss.empty();
  const size_t loss = named ? loss_output(g, options.loss) : 0;
  const bool scalar = named || (outputs.size() == 1 && joint.shape(outputs[0]).rank() == 0 &&
                                is_float(joint.shape(outputs[0]).dtype()));
  Exprs seeds;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape shape = joint.shape(outputs[i]);
    if (named && i != loss) {
      seeds.emplace_back();
    } else if (!is_differentiable(shape.dtype())) {
      if (outputs.size() == 1)
        throw invalid("grad: the output '", names[i], "' is ", shape, " and has no derivative");
      seeds.emplace_back();
    } else if (scalar && !options.cotangent_inputs) {
      seeds.push_back(full(joint, shape, 1));
    } else {
      seeds.push_back(
          {&joint,
           joint.input(free_leaf_name(joint, outputs.size() == 1 ? "d_output" : "d_" + names[i]), shape)});
    }
  }
  const Exprs gradients = backward(joint, outputs, seeds, leaves);
  Values all = joint.outputs();  // rules may have put other nodes in their place
  std::vector<std::string> all_names = names;
  for (size_t i = 0; i < leaves.size(); ++i) {
    all.push_back(gradients[i] ? gradients[i] : zeros_like({&joint, leaves[i]}));
    all_names.push_back(free_name(all_names, "d_" + wrt[i]));
  }
  joint.set_outputs(all, all_names);
  return {std::move(joint), outputs.size()};
}

}  // namespace

Graph prepare_graph_for_ad(const Graph& g) {
  Graph out = g;
  expand_composites(out, needs_expansion_for_vjp);
  out.erase_dead();
  return out;
}

Graph grad(const Graph& g, const std::vector<std::string>& wrt, GradOptions options) {
  Joint joint = differentiate(g, wrt, options);
  if (!options.with_value) {
    const Values& all = joint.graph.outputs();
    const auto names = joint.graph.output_names();
    joint.graph.set_outputs(Values(all.begin() + long(joint.outputs), all.end()),
                            {names.begin() + long(joint.outputs), names.end()});
  }
  joint.graph.erase_dead();
  return std::move(joint.graph);
}

Graph value_and_grad(const Graph& g, const std::vector<std::string>& wrt, GradOptions options) {
  options.with_value = true;
  return grad(g, wrt, options);
}

Partition grad_partitioned(const Graph& g, const std::vector<std::string>& wrt, SavePolicy policy,
                           std::optional<int64_t> budget) {
  const size_t leaves = g.leaves().size();
  Joint joint = differentiate(g, wrt, {.with_value = true, .cotangent_inputs = true});
  joint.graph.erase_dead();
  return partition(joint.graph, leaves, joint.outputs, policy, budget);
}

Graph jvp(const Graph& g, const std::vector<std::string>& wrt) { return jvp_graph(g, wrt, true); }

Graph jvp_graph(const Graph& g, const std::vector<std::string>& wrt, bool renew) {
  Graph out = g;
  expand_composites(out, needs_expansion_for_jvp);
  out.set_name(g.name() + "_jvp");
  Values leaves;
  Exprs tangents;
  for (const std::string& name : wrt) {
    leaves.push_back(differentiable_leaf(out, name, "jvp"));
    tangents.push_back({&out, out.input(free_leaf_name(out, "tangent_" + name), out.shape(leaves.back()))});
  }
  const std::vector<std::string> primal = out.output_names();
  const Exprs pushed = push_forward(out, leaves, tangents, renew);
  Values all = out.outputs();
  std::vector<std::string> names = primal;
  for (size_t i = 0; i < primal.size(); ++i) {
    const Expr y{&out, out.outputs()[i]};
    if (!is_differentiable(y.dtype())) continue;
    all.push_back(pushed[i] ? pushed[i] : zeros_like(y));
    names.push_back(free_name(names, "d_" + primal[i]));
  }
  out.set_outputs(all, names);
  out.erase_dead();
  return out;
}

Graph hvp(const Graph& g, const std::vector<std::string>& wrt) {
  const Graph first = value_and_grad(g, wrt);
  Graph out = jvp(first, wrt);
  // [value, gradients..., d value, H v...]: the derivative of the value along v is not part of the answer.
  Values all = out.outputs();
  std::vector<std::string> names = out.output_names();
  const size_t drop = 1 + wrt.size();
  all.erase(all.begin() + long(drop));
  names.erase(names.begin() + long(drop));
  for (size_t i = 0; i < wrt.size(); ++i) names[drop + i] = "h_" + wrt[i];
  out.set_outputs(all, names);
  out.set_name(g.name() + "_hvp");
  out.erase_dead();
  return out;
}

}  // namespace rlx::transform
