// HIR to MIR: every block gives way to its decomposition.
#include <unordered_map>

#include "rlx/ir/inline.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/module.h"

namespace rlx {
namespace {

std::string block_label(const ir::Node& n) { return n.name.empty() ? cat(n.op->name, " %", n.id) : n.name; }

ir::OriginRef block_origin(const ir::Node& n) {
  auto origin = n.origin ? std::make_shared<ir::Origin>(*n.origin) : std::make_shared<ir::Origin>();
  origin->block = block_label(n);
  return origin;
}

std::shared_ptr<void> with_policy(const ir::Node& n, FusionPolicy policy) {
  std::shared_ptr<void> attrs = n.op->copy_attrs(n.attrs.get());
  const ir::FieldInfo* f = n.op->find_field("policy");
  RLX_CHECK(f != nullptr, "block ", n.op->name, " has no policy");
  f->set(attrs.get(), ir::AttrTraits<FusionPolicy>::to(policy));
  return attrs;
}

// Results of the block, emitted into `to`. What a block emits may contain blocks again.
Values expand(ir::Graph& to, const ir::Node& n, const Values& operands, FusionPolicy policy) {
  to.set_current_origin(block_origin(n));
  Values results;
  try {
    const auto attrs = with_policy(n, policy);
    for (const ir::Expr& t : n.op->decompose(ir::Lower{to, operands, n.shapes}, attrs.get()))
      results.push_back(t);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::user) throw;
    LowerError error(cat("lower: ", e.message()));
    error.set_node(block_label(n));
    if (n.origin) error.set_origin(n.origin->text());
    throw error;
  }
  to.set_current_origin(nullptr);
  if (results.size() == 1 && !n.name.empty() && to.node(results[0]).name.empty())
    to.set_name(results[0].node, n.name);
  return results;
}

}  // namespace

Mir lower(const Hir& hir) {
  const Graph& from = hir.graph;
  Graph to(from.name());
  ir::ValueMap<Value> moved;
  const auto map = [&moved](const Values& values) {
    Values out;
    for (const Value v : values) out.push_back(moved.at(v));
    return out;
  };
  for (const ir::Node* n : from.nodes()) {
    Values results;
    if (ops::is_block(*n->op)) {
      results = expand(to, *n, map(n->inputs), hir.policy);
    } else {
      to.set_current_origin(n->origin);
      const NodeId id = to.append(*n->op, n->attrs, map(n->inputs), n->op->traits.leaf ? "" : n->name);
      to.set_current_origin(nullptr);
      for (uint32_t i = 0; i < n->shapes.size(); ++i) results.push_back(to.value(id, i));
    }
    for (uint32_t i = 0; i < results.size(); ++i) moved.emplace(n->result(i), results[i]);
  }
  to.set_outputs(map(from.outputs()), from.output_names());
  return {std::move(to)};
}

Lir plan(const Mir& mir) {
  for (const ir::Node* n : mir.graph.nodes()) {
    if (ops::is_block(*n->op))
      throw invalid("plan: %", n->id, " is the block ", n->op->name, "; lower the module first");
  }
  return {mir.graph, make_plan(mir.graph)};
}

}  // namespace rlx
