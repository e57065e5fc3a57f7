// Derivatives and batching of bodies for the rules of control flow.
#include "rlx/ir/leaves.h"
#include "rlx/transform/batch.h"
#include "rlx/transform/forward.h"
#include "rlx/transform/partition.h"
#include "rlx/transform/reverse.h"

namespace rlx::transform {
namespace {

// Inputs of `g` like the leaves of `body`, named apart from anything else.
Values copy_leaves(Graph& g, const Graph& body, std::string_view prefix) {
  Values out;
  for (const NodeId id : body.leaves())
    out.push_back(g.input(cat(prefix, out.size()), body.node(id).shapes[0]));
  return out;
}

class Bodies final : public BodyTransforms {
 public:
  Split split_vjp(const Graph& body, const std::vector<bool>& wanted, const std::vector<bool>& seeded,
                  bool recompute) const override {
    // The joint graph: leaves and cotangents -> outputs, gradients.
    Graph joint(body.name());
    const Values leaves = copy_leaves(joint, body, "x");
    joint.set_outputs(inline_graph(joint, body, leaves));
    expand_composites(joint, needs_expansion_for_vjp);
    const Values outputs = joint.outputs();
    Exprs seeds;
    for (size_t i = 0; i < outputs.size(); ++i) {
      seeds.push_back(seeded[i] ? Expr{&joint, joint.input(cat("d", i), joint.shape(outputs[i]))} : Expr{});
    }
    Values wrt;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (wanted[i]) wrt.push_back(leaves[i]);
    }
    const Exprs gradients = backward(joint, outputs, seeds, wrt);
    Values all = joint.outputs();
    const size_t primal = all.size();
    for (size_t i = 0; i < wrt.size(); ++i)
      all.push_back(gradients[i] ? gradients[i] : zeros_like({&joint, wrt[i]}));
    joint.set_outputs(all);
    joint.erase_dead();
    Partition cut =
        partition(joint, leaves.size(), primal, recompute ? SavePolicy::recompute_all : SavePolicy::save_all);
    return {std::make_shared<const Graph>(std::move(cut.forward)),
            std::make_shared<const Graph>(std::move(cut.backward)), std::move(cut.saved)};
  }

  GraphRef jvp(const Graph& body, const std::vector<bool>& active) const override {
    Graph g(body.name());
    const Values leaves = copy_leaves(g, body, "x");
    g.set_outputs(inline_graph(g, body, leaves));
    expand_composites(g, needs_expansion_for_jvp);
    Values inputs;
    Exprs tangents;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!active[i]) continue;
      inputs.push_back(leaves[i]);
      tangents.push_back({&g, g.input(cat("d", i), g.shape(leaves[i]))});
    }
    const Exprs out = push_forward(g, inputs, tangents);
    Values all = g.outputs();
    for (size_t i = 0; i < out.size(); ++i) {
      if (!is_differentiable(g.shape(g.outputs()[i]).dtype())) continue;
      all.push_back(out[i] ? out[i] : zeros_like({&g, g.outputs()[i]}));
    }
    g.set_outputs(all);
    g.erase_dead();
    return std::make_shared<const Graph>(std::move(g));
  }

  GraphRef vmap(const Graph& body, const std::vector<bool>& batched, Dim size) const override {
    Graph g(body.name());
    std::vector<BatchedValue> leaves;
    for (const NodeId id : body.leaves()) {
      Shape s = body.node(id).shapes[0];
      const bool with = batched[leaves.size()];
      if (with) {
        Dims dims = s.dims();
        dims.insert(dims.begin(), size);
        s = s.with_dims(std::move(dims));
      }
      const std::string& name = ir::leaf_name(body.node(id));
      leaves.push_back({{&g, g.input(name, s)}, with});  // some bodies know their inputs by name
    }
    Values outputs;
    for (const BatchedValue& v : batch_graph(g, body, leaves, size)) outputs.push_back(v.tensor);
    g.set_outputs(outputs);
    g.erase_dead();
    return std::make_shared<const Graph>(std::move(g));
  }
};

}  // namespace

const BodyTransforms& body_transforms() {
  static const Bodies bodies;
  return bodies;
}

}  // namespace rlx::transform
