#include "rlx/passes/hoist.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/passes/exact_values.h"

namespace rlx::passes {
namespace {

bool never_refuses(const ir::Graph& g, const ir::Node& n) {
  const ir::Traits& t = n.op->traits;
  if (!t.pure || t.leaf) return false;
  if (t.contraction) {  // some pick their matrices
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (picks_places(g, n, i)) return false;
    }
    return true;
  }
  return t.elementwise || t.linear || n.op->view != nullptr || n.is<ops::Cast>() || n.is<ops::Reduce>() ||
         n.is<ops::Softmax>();
}

int64_t bytes_of(const Shapes& shapes) {
  int64_t total = 0;
  for (const Shape& s : shapes) total += s.is_static() ? s.size_bytes() : 0;
  return total;
}

/// What of a body is the same in every step: from leaf `first` to `last` they are constants of the loop.
struct Invariants {
  std::vector<bool> is;        // by node
  std::vector<ir::Value> out;  // values that leave the invariant part, to be computed outside
};

Invariants find_invariants(const ir::Graph& body, size_t first, size_t last) {
  Invariants found{std::vector<bool>(body.next_id(), false), {}};
  std::vector<bool> moves(body.next_id(), false);  // a node worth moving is at or above it
  size_t leaf = 0;
  for (const ir::Node* n : body.nodes()) {
    if (n->op->traits.leaf) {
      found.is[n->id] = leaf >= first && leaf < last;
      ++leaf;
      continue;
    }
    bool all = n->inputs.empty() ? n->is<ir::Constant>() || n->is<ir::Full>() : never_refuses(body, *n);
    int64_t operands = 0;
    bool above = false;
    for (const ir::Value v : n->inputs) {
      all = all && found.is[v.node];
      operands += bytes_of({body.shape(v)});
      above = above || moves[v.node];
    }
    found.is[n->id] = all && (n->op->view != nullptr || bytes_of(n->shapes) <= operands || n->inputs.empty());
    moves[n->id] = found.is[n->id] && (above || (!n->inputs.empty() && n->op->view == nullptr));
  }
  for (const ir::Node* n : body.nodes()) {
    if (!found.is[n->id] || !moves[n->id]) continue;
    bool leaves = false;
    for (const ir::Use& u : n->uses) leaves = leaves || u.user == ir::kNoNode || !found.is[u.user];
    for (uint32_t i = 0; leaves && i < n->shapes.size(); ++i) found.out.push_back(body.value(n->id, i));
  }
  return found;
}

// The body with the moved values as leaves behind leaf `last - 1`.
ir::Graph without(const ir::Graph& body, const Invariants& found, size_t last) {
  ir::Graph out(body.name());
  out.assume_sizes_of(body);
  ir::Cloner copy(out);
  const auto leaves = body.leaves();
  for (size_t i = 0; i <= leaves.size(); ++i) {
    for (size_t k = 0; i == last && k < found.out.size(); ++k) {
      std::string name = cat("invariant", k);
      while (body.find_leaf(name)) name += "_";
      copy.set(found.out[k], out.input(name, body.shape(found.out[k])));
    }
    if (i < leaves.size()) copy.copy(body.node(leaves[i]));
  }
  for (const ir::Node* n : body.nodes()) {
    if (n->op->traits.leaf || copy.has(n->result())) continue;
    copy.copy(*n);
  }
  copy.copy_outputs(body);
  out.erase_dead();
  return out;
}

// The invariant part, in the graph around the loop, on the loop's constants.
ir::Values outside(ir::Graph& to, const ir::Graph& body, const Invariants& found, const ir::Values& constants,
                   size_t first) {
  ir::Cloner copy(to);
  const auto leaves = body.leaves();
  for (size_t i = 0; i < constants.size(); ++i) copy.set({leaves[first + i]}, constants[i]);
  for (const ir::Node* n : body.nodes()) {
    if (found.is[n->id] && !n->op->traits.leaf) copy.copy(*n);
  }
  return copy.at(found.out);
}

std::optional<ir::Values> hoist_scan(ir::Cloner& copy, const ir::Node& n) {
  ops::Scan::Attrs attrs = n.as<ops::Scan>();
  const auto first = size_t(attrs.carries), last = first + size_t(attrs.consts);
  const Invariants found = find_invariants(*attrs.body, first, last);
  if (found.out.empty()) return std::nullopt;
  ir::Values operands = copy.at(n.inputs);
  const ir::Values constants(operands.begin() + int64_t(first), operands.begin() + int64_t(last));
  const ir::Values moved = outside(copy.to(), *attrs.body, found, constants, first);
  operands.insert(operands.begin() + int64_t(last), moved.begin(), moved.end());
  attrs.body = std::make_shared<const ir::Graph>(without(*attrs.body, found, last));
  attrs.consts += int(moved.size());
  const ir::NodeId id =
      copy.to().append(*n.op, std::make_shared<ops::Scan::Attrs>(std::move(attrs)), operands, n.name);
  ir::Values results;
  for (uint32_t i = 0; i < n.shapes.size(); ++i) results.push_back(copy.to().value(id, i));
  return results;
}

// The condition takes the new constants too, and does not look at them.
std::optional<ir::Values> hoist_while(ir::Cloner& copy, const ir::Node& n) {
  ops::While::Attrs attrs = n.as<ops::While>();
  const auto first = size_t(attrs.carries), last = n.inputs.size();
  const Invariants found = find_invariants(*attrs.body, first, last);
  if (found.out.empty()) return std::nullopt;
  ir::Values operands = copy.at(n.inputs);
  const ir::Values constants(operands.begin() + int64_t(first), operands.end());
  const ir::Values moved = outside(copy.to(), *attrs.body, found, constants, first);
  operands.insert(operands.end(), moved.begin(), moved.end());
  ir::Graph cond = *attrs.cond;
  for (size_t k = 0; k < moved.size(); ++k) {
    std::string name = cat("invariant", k);
    while (cond.find_leaf(name)) name += "_";
    cond.input(name, copy.to().shape(moved[k]));
  }
  attrs.cond = std::make_shared<const ir::Graph>(std::move(cond));
  attrs.body = std::make_shared<const ir::Graph>(without(*attrs.body, found, last));
  const ir::NodeId id =
      copy.to().append(*n.op, std::make_shared<ops::While::Attrs>(std::move(attrs)), operands, n.name);
  ir::Values results;
  for (uint32_t i = 0; i < n.shapes.size(); ++i) results.push_back(copy.to().value(id, i));
  return results;
}

}  // namespace

ir::Rewritten hoist_invariants(const ir::Graph& graph) {
  return ir::rewrite(graph, [](ir::Cloner& copy, const ir::Node& n) -> std::optional<ir::Values> {
    if (n.is<ops::Scan>()) return hoist_scan(copy, n);
    if (n.is<ops::While>()) return hoist_while(copy, n);
    return std::nullopt;
  });
}

}  // namespace rlx::passes
