#include "rlx/transform/reverse.h"

#include "rlx/ir/leaves.h"
#include "rlx/transform/accumulate.h"

namespace rlx::transform {
namespace {

class Backward {
 public:
  Backward(Graph& g, const Values& wrt, NodeId first) : g_(g) {
    for (const NodeId id : g.topo_order()) {
      if (id >= first) order_.push_back(id);
    }
    for (const Value v : wrt) active_[v] = true;
    // A value is active when a wanted one flows into it.
    for (const NodeId id : order_) {
      const Node& n = g.node(id);
      bool reached = false;
      for (const Value v : n.inputs) reached = reached || is_active(v);
      if (!reached || n.op->traits.zero_gradient) continue;
      for (uint32_t i = 0; i < n.shapes.size(); ++i) {
        if (is_differentiable(n.shapes[i].dtype())) active_[n.result(i)] = true;
      }
    }
  }

  void seed(Value v, Expr t) {
    if (t && is_active(v)) accumulate(v, t);
  }

  void run() {
    for (size_t i = order_.size(); i-- > 0;) {
      const NodeId id = order_[i];
      Exprs cotangents;
      bool any = false;
      for (uint32_t r = 0; r < g_.node(id).shapes.size(); ++r) {
        const auto it = cotangents_.find(g_.value(id, r));
        cotangents.push_back(it == cotangents_.end() ? Expr{} : it->second);
        any = any || cotangents.back();
      }
      if (any) apply_rule(id, cotangents);
    }
  }

  Expr cotangent(Value v) const {
    const auto it = cotangents_.find(v);
    return it == cotangents_.end() ? Expr{} : it->second;
  }

 private:
  bool is_active(Value v) const {
    const auto it = active_.find(v);
    return it != active_.end() && it->second;
  }

  void accumulate(Value v, Expr t) {
    t = as_type(t, Shape(g_.shape(v)), cat("gradient of ", g_.node(v).op->name));
    Expr& slot = cotangents_[v];
    slot = slot ? accumulated(slot, t) : t;
  }

  void apply_rule(NodeId id, const Exprs& cotangents) {
    const Node& n = g_.node(id);
    if (n.op->traits.leaf || n.inputs.empty()) return;
    std::vector<bool> wanted;
    bool any = false;
    for (const Value v : n.inputs) {
      wanted.push_back(is_active(v));
      any = any || wanted.back();
    }
    if (!any) return;
    if (n.op->vjp == nullptr) {
      Error e =
          invalid("grad: no derivative rule for op '", n.op->name, "'; wrap its operands in stop_gradient");
      e.set_node(n.label());
      if (n.origin) e.set_origin(n.origin->text());
      throw e;
    }
    const RuleScope scope(g_, n, "vjp");
    const Values operands = n.inputs;
    const AttrsRef attrs = n.attrs;
    const OpDef& op = *n.op;
    Values results;
    for (uint32_t i = 0; i < n.shapes.size(); ++i) results.push_back(g_.value(id, i));
    Exprs replacements;
    const Exprs grads = scope.run([&] {
      return op.vjp(Vjp{g_, operands, results, cotangents, wanted, body_transforms(), replacements},
                    attrs.get());
    });
    RLX_CHECK(grads.size() == operands.size(), "vjp of ", op.name, " returned ", grads.size(),
              " gradients for ", operands.size(), " operands");
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i] && wanted[i]) accumulate(operands[i], grads[i]);
    }
    for (uint32_t i = 0; i < replacements.size(); ++i) {
      if (!replacements[i]) continue;
      g_.replace(g_.value(id, i), as_type(replacements[i], g_.shape(g_.value(id, i)), op.name));
    }
  }

  Graph& g_;
  std::vector<NodeId> order_;
  ValueMap<bool> active_;
  ValueMap<Expr> cotangents_;
};

}  // namespace

bool needs_expansion_for_vjp(const Node& n) {
  return n.op->is_composite() && n.op->vjp == nullptr && !n.op->traits.zero_gradient;
}

Exprs backward(Graph& g, const Values& outputs, const Exprs& seeds, const Values& wrt, NodeId first) {
  Backward walk(g, wrt, first);
  for (size_t i = 0; i < outputs.size(); ++i) walk.seed(outputs[i], seeds[i]);
  walk.run();
  Exprs out;
  for (const Value v : wrt) out.push_back(walk.cotangent(v));
  return out;
}

}  // namespace rlx::transform
