#include "rlx/transform/walk.h"

#include <algorithm>

#include "rlx/ir/leaves.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::transform {

RuleScope::RuleScope(Graph& g, const Node& n, std::string_view rule)
    : graph_(g), scope_(g, ir::noted_origin(n, cat(rule, " of %", n.id, " ", n.op->name))) {}

void RuleScope::name_place(Error& e) const {
  if (e.origin().empty() && graph_.current_origin()) e.set_origin(graph_.current_origin()->text());
}

Expr as_type(Expr t, const Shape& given, std::string_view what) {
  const Shape want = t.graph->resolve(given);  // sizes may have become one since it was read
  if (t.shape() == want) return t;
  const Shape& got = t.shape();
  bool may_be = got.rank() == want.rank() && got.dtype() == want.dtype();
  for (int i = 0; may_be && i < got.rank(); ++i) may_be = decide_equal(got.dim(i), want.dim(i)) != false;
  RLX_CHECK(may_be, what, ": ", got, " for ", want);
  return ops::reshape(t, want.dims());
}

Exprs emit_decomposition(Graph& g, const Node& n) {
  const Values operands = n.inputs;  // copies: the node may move while nodes are appended
  const Shapes shapes = n.shapes;
  const AttrsRef attrs = n.attrs;
  Exprs out = n.op->decompose(Lower{g, operands, shapes}, attrs.get());
  RLX_CHECK(out.size() == shapes.size(), n.op->name, " decomposes into ", out.size(), " results of ",
            shapes.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = as_type(out[i], shapes[i], cat("decomposition of ", n.op->name));
  }
  return out;
}

void expand_composites(Graph& g, const std::function<bool(const Node&)>& wants) {
  const std::vector<std::string> names = g.output_names();
  std::vector<NodeId> work = g.reverse_topo();
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    const Node& n = g.node(id);
    if (!n.op->is_composite() || !wants(n)) continue;
    const RuleScope scope(g, n, "decomposition");
    const NodeId first = g.next_id();
    const Exprs results = scope.run([&] { return emit_decomposition(g, n); });
    for (uint32_t i = 0; i < results.size(); ++i) g.replace(g.value(id, i), results[i]);
    g.erase(id);  // a walk over all nodes must not meet it again
    for (NodeId made = g.next_id(); made-- > first;) work.push_back(made);
  }
  // An output that took its name from an expanded node keeps it.
  if (g.output_names() != names) g.set_outputs(g.outputs(), names);
  g.erase_dead();
}

namespace {

template <class Taken>
std::string first_free(const std::string& name, Taken taken) {
  std::string out = name;
  for (int i = 2; taken(out); ++i) out = cat(name, "_", i);
  return out;
}

}  // namespace

std::string free_leaf_name(const Graph& g, const std::string& name) {
  return first_free(name, [&](const std::string& n) { return g.find_leaf(n).has_value(); });
}

std::string free_name(const std::vector<std::string>& taken, const std::string& name) {
  return first_free(
      name, [&](const std::string& n) { return std::find(taken.begin(), taken.end(), n) != taken.end(); });
}

NodeId leaf_named(const Graph& g, const std::string& name, std::string_view who) {
  if (const auto id = g.find_leaf(name)) return *id;
  std::vector<std::string> known;
  for (const NodeId leaf : g.leaves()) known.push_back(ir::leaf_name(g.node(leaf)));
  const std::string near = nearest_name(name, known);
  throw invalid(
      who, ": graph '", g.name(), "' has no input or param '", name, "'; ",
      near.empty() ? cat("it has ", known.empty() ? "none" : join(known)) : cat("did you mean '", near, "'"));
}

Value differentiable_leaf(const Graph& g, const std::string& name, std::string_view who) {
  const NodeId id = leaf_named(g, name, who);
  const Shape& s = g.node(id).shapes[0];
  if (!is_differentiable(s.dtype())) {
    throw invalid(who, ": '", name, "' is ", s, "; only f16, bf16, f32, f64 and c64 inputs have derivatives");
  }
  return g.value(id);
}

}  // namespace rlx::transform
