#include "rlx/passes/legalise.h"

#include "rlx/ir/bodies.h"

namespace rlx::passes {
namespace {

bool accepted(const ir::Graph& g, const ir::Node& n, const ir::Target& target) {
  Shapes types;
  ir::Layouts in, out;
  for (const ir::Value v : n.inputs) {
    types.push_back(g.shape(v));
    in.push_back(ir::Layout::row_major(types.back().dims()));
  }
  for (const Shape& s : n.shapes) out.push_back(ir::Layout::row_major(s.dims()));
  return bool(target.accepts(n, types, in, out));
}

// The parts of a composite are emitted into a graph of their own first, so that each of them is asked for in turn.
ir::Values expand(ir::Graph& to, const ir::Node& n, const ir::Values& operands, const ir::Target& target) {
  ir::Graph parts(std::string(n.op->name));
  ir::Values leaves;
  for (size_t i = 0; i < operands.size(); ++i)
    leaves.push_back(parts.input(cat("x", i), to.shape(operands[i])));
  ir::Values results;
  for (const ir::Expr& e : n.op->decompose(ir::Lower{parts, leaves, n.shapes}, n.attrs.get()))
    results.push_back(e);
  parts.set_outputs(results);
  parts.erase_dead();
  ir::Cloner copy(to);
  size_t leaf = 0;
  for (const ir::Node* part : parts.nodes()) {
    if (part->op->traits.leaf) {
      copy.set(part->result(), operands[leaf++]);
    } else if (part->op->is_composite() && !accepted(parts, *part, target)) {
      copy.set_results(*part, expand(to, *part, copy.at(part->inputs), target));
    } else {
      copy.copy(*part);
    }
  }
  return copy.at(parts.outputs());
}

bool has_refused_composites(const ir::Graph& graph, const ir::Target& target) {
  for (const ir::Node* n : graph.nodes()) {
    bool found = false;
    ir::for_each_body(*n, [&](const auto&, const ir::GraphRef& body) {
      found = found || has_refused_composites(*body, target);
    });
    if (found || (n->op->is_composite() && !n->op->traits.leaf && !accepted(graph, *n, target))) return true;
  }
  return false;
}

}  // namespace

// Not `edit`: parts must stand where their node stood, in their order, since fusing joins neighbours.
ir::Rewritten legalise(ir::Graph graph, const ir::Target& target) {
  if (!has_refused_composites(graph, target)) return {std::move(graph), 0};
  return ir::rewrite(graph, [&](ir::Cloner& copy, const ir::Node& n) -> std::optional<ir::Values> {
    if (!n.op->is_composite() || n.op->traits.leaf) return std::nullopt;
    const ir::Values operands = copy.at(n.inputs);
    ir::Node here = n;  // on the operands of the new graph, whose types are asked for
    here.inputs = operands;
    if (accepted(copy.to(), here, target)) return std::nullopt;
    const ir::OriginScope scope(copy.to(),
                                ir::noted_origin(n, cat("decomposition of %", n.id, " ", n.op->name)));
    return expand(copy.to(), n, operands, target);
  });
}

}  // namespace rlx::passes
