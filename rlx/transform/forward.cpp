#include "rlx/transform/forward.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/transform/reverse.h"

namespace rlx::transform {
namespace {

class Forward {
 public:
  Forward(Graph& g, bool renew) : g_(g), renew_(renew), order_(g.topo_order()) {}

  void set(Value v, Expr t) {
    if (t) tangents_[v] = t;
  }

  void run() {
    for (const NodeId id : order_) {
      const Node& n = g_.node(id);
      Exprs in;
      bool any = false;
      for (const Value v : n.inputs) {
        const auto it = tangents_.find(v);
        in.push_back(it == tangents_.end() ? Expr{} : it->second);
        any = any || in.back();
      }
      if (!any || n.op->traits.zero_gradient) continue;
      apply_rule(id, in);
    }
  }

  Expr tangent(Value v) const {
    const auto it = tangents_.find(v);
    return it == tangents_.end() ? Expr{} : it->second;
  }

 private:
  void apply_rule(NodeId id, const Exprs& in) {
    const Node& n = g_.node(id);
    const RuleScope scope(g_, n, "jvp");
    const Values operands = n.inputs;
    const AttrsRef attrs = n.attrs;
    const OpDef& op = *n.op;
    const Shapes shapes = n.shapes;
    Values results;
    for (uint32_t i = 0; i < shapes.size(); ++i) results.push_back(g_.value(id, i));
    Exprs replacements;
    Exprs out = scope.run([&] {
      if (op.jvp != nullptr)
        return op.jvp(Jvp{g_, operands, results, in, body_transforms(), replacements}, attrs.get());
      if (op.traits.linear) return apply_linear(op, attrs, operands, in);
      if (op.vjp != nullptr) return transpose_vjp(op, attrs, operands, results, in);
      Error e = invalid("jvp: no derivative rule for op '", op.name, "'; wrap its operands in stop_gradient");
      e.set_node(cat("%", id));
      throw e;
    });
    RLX_CHECK(out.size() == shapes.size(), "jvp of ", op.name, " returned ", out.size(), " tangents");
    if (!renew_) replacements.clear();
    for (uint32_t i = 0; i < replacements.size(); ++i) {
      if (replacements[i]) replacements[i] = as_type(replacements[i], shapes[i], op.name);
    }
    for (uint32_t i = 0; i < out.size(); ++i) {
      if (!out[i] || !is_differentiable(shapes[i].dtype())) continue;
      out[i] = as_type(out[i], shapes[i], cat("jvp of ", op.name));
      // A rule that made the results anew speaks of the new ones.
      tangents_[i < replacements.size() && replacements[i] ? replacements[i].value : results[i]] = out[i];
    }
    for (uint32_t i = 0; i < replacements.size(); ++i) {
      if (replacements[i]) g_.replace(results[i], replacements[i]);
    }
  }

  Exprs apply_linear(const OpDef& op, const AttrsRef& attrs, const Values& operands, const Exprs& in) {
    Values tangents;
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool differentiable = is_differentiable(g_.shape(operands[i]).dtype());
      tangents.push_back(!differentiable ? operands[i]
                         : in[i]         ? in[i].value
                                         : zeros_like({&g_, operands[i]}).value);
    }
    const NodeId id = g_.append(op, attrs, tangents);
    Exprs out;
    for (uint32_t i = 0; i < g_.node(id).shapes.size(); ++i) out.push_back({&g_, g_.value(id, i)});
    return out;
  }

  // vjp is linear in the cotangent u: u -> J'u. Its own reverse mode with seeds dx gives J dx, whatever u is.
  Exprs transpose_vjp(const OpDef& op, const AttrsRef& attrs, const Values& operands, const Values& results,
                      const Exprs& in) {
    const NodeId first = g_.next_id();
    Exprs u;
    Values u_values;
    for (const Value v : results) {
      const bool differentiable = is_differentiable(g_.shape(v).dtype());
      u.push_back(differentiable ? zeros_like({&g_, v}) : Expr{});
      u_values.push_back(differentiable ? u.back().value : v);
    }
    std::vector<bool> wanted;
    for (const Expr& t : in) wanted.push_back(bool(t));
    Exprs replacements;
    const Exprs grads =
        op.vjp(Vjp{g_, operands, results, u, wanted, body_transforms(), replacements}, attrs.get());
    Values outputs;
    Exprs seeds;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i] || !in[i]) continue;
      outputs.push_back(grads[i]);
      seeds.push_back(in[i]);
    }
    // The rule may have used composites; the part it made is expanded like any graph before reverse mode.
    outputs = expand_range(outputs, first);
    return backward(g_, outputs, seeds, u_values, first);
  }

  Values expand_range(Values outputs, NodeId first) {
    std::vector<NodeId> work;
    for (NodeId id = first; id < g_.next_id(); ++id) work.push_back(id);
    for (size_t at = 0; at < work.size(); ++at) {
      const Node& n = g_.node(work[at]);
      if (!needs_expansion_for_vjp(n)) continue;
      const NodeId id = n.id, begin = g_.next_id();
      const Exprs results = emit_decomposition(g_, n);
      for (uint32_t i = 0; i < results.size(); ++i) {
        g_.replace(g_.value(id, i), results[i]);
        for (Value& v : outputs) {
          if (v == g_.value(id, i)) v = results[i];
        }
      }
      for (NodeId made = begin; made < g_.next_id(); ++made) work.push_back(made);
    }
    return outputs;
  }

  Graph& g_;
  bool renew_;
  std::vector<NodeId> order_;
  ValueMap<Expr> tangents_;
};

}  // namespace

bool needs_expansion_for_jvp(const Node& n) {
  return n.op->is_composite() && n.op->jvp == nullptr && !n.op->traits.linear && n.op->vjp == nullptr &&
         !n.op->traits.zero_gradient;
}

Exprs push_forward(Graph& g, const Values& inputs, const Exprs& tangents, bool renew) {
  Forward walk(g, renew);
  for (size_t i = 0; i < inputs.size(); ++i) walk.set(inputs[i], tangents[i]);
  walk.run();
  Exprs out;
  for (const Value v : g.outputs()) out.push_back(walk.tangent(v));
  return out;
}

}  // namespace rlx::transform
