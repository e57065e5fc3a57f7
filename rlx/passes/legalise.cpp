#include "rlx/passes/legalise.h"

#include "rlx/ir/bodies.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/passes/ask.h"

namespace rlx::passes {
namespace {

bool is_narrow(const Shape& s) { return s.dtype() == DType::f16 || s.dtype() == DType::bf16; }
Shape widened(const Shape& s) { return is_narrow(s) ? s.with_dtype(DType::f32) : s; }

// The parts of a composite on operands of these types, in a graph of their own: each of them is asked for in turn.
ir::Graph parts_of(const ir::Node& n, const Shapes& types, const Shapes& results) {
  ir::Graph parts(std::string(n.op->name));
  ir::Values leaves, outputs;
  for (const Shape& s : types) leaves.push_back(parts.input(cat("x", leaves.size()), s));
  for (const ir::Expr& e : n.op->decompose(ir::Lower{parts, leaves, results}, n.attrs.get()))
    outputs.push_back(e);
  parts.set_outputs(outputs);
  parts.erase_dead();
  return parts;
}

// Whether parts in 16 bits round more often than the operator, which rounds its results. Products do not count: their
// weights would be cast, too, and they sum in f32 as they are.
bool rounds_inside(const ir::Graph& parts) {
  int roundings = 0;
  for (const ir::Node* n : parts.nodes()) {
    if (n->op->traits.contraction) return false;
    if (n->shapes.empty() || !is_narrow(n->shapes[0]) || n->inputs.empty()) continue;
    const bool moves = n->is<ops::Cast>() || n->is<ops::Where>();
    roundings +=
        (n->op->traits.elementwise && !moves) || n->is<ops::Reduce>() || n->op->is_composite() ? 1 : 0;
  }
  return roundings > 1;
}

bool has_bodies(const ir::Node& n) {
  bool found = false;
  ir::for_each_body(n, [&](const auto&, const ir::GraphRef&) { found = true; });
  return found;
}

ir::Values expand(ir::Graph& to, const ir::Node& n, ir::Values operands, const ir::Target& target) {
  Shapes types;
  for (const ir::Value v : operands) types.push_back(to.shape(v));
  ir::Graph parts = parts_of(n, types, n.shapes);
  if (!has_bodies(n) && rounds_inside(parts)) {  // in f32 instead, as the reference rules compute
    for (size_t i = 0; i < types.size(); ++i) {
      if (is_narrow(types[i])) operands[i] = ops::cast(ir::Expr{&to, operands[i]}, DType::f32);
      types[i] = widened(types[i]);
    }
    const auto attrs = n.op->copy_attrs(n.attrs.get());
    ir::Infer infer(*n.op, types, nullptr);
    parts = parts_of(n, types, n.op->infer(infer, attrs.get()));
  }
  ir::Cloner copy(to);
  size_t leaf = 0;
  for (const ir::Node* part : parts.nodes()) {
    if (part->op->traits.leaf) {
      copy.set(part->result(), operands[leaf++]);
    } else if (part->op->is_composite() && !runs(target, parts, *part)) {
      copy.set_results(*part, expand(to, *part, copy.at(part->inputs), target));
    } else {
      copy.copy(*part);
    }
  }
  ir::Values results = copy.at(parts.outputs());
  for (size_t i = 0; i < results.size(); ++i) {
    const DType want = n.shapes[i].dtype();
    if (to.shape(results[i]).dtype() != want) results[i] = ops::cast(ir::Expr{&to, results[i]}, want);
  }
  return results;
}

bool has_refused_composites(const ir::Graph& graph, const ir::Target& target) {
  for (const ir::Node* n : graph.nodes()) {
    bool found = false;
    ir::for_each_body(*n, [&](const auto&, const ir::GraphRef& body) {
      found = found || has_refused_composites(*body, target);
    });
    if (found || (n->op->is_composite() && !n->op->traits.leaf && !runs(target, graph, *n))) return true;
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
    if (runs(target, copy.to(), here)) return std::nullopt;
    const ir::OriginScope scope(copy.to(),
                                ir::noted_origin(n, cat("decomposition of %", n.id, " ", n.op->name)));
    return expand(copy.to(), n, operands, target);
  });
}

}  // namespace rlx::passes
