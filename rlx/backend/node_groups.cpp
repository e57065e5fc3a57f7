#include "rlx/backend/node_groups.h"

#include <algorithm>
#include <set>

#include "rlx/ir/clone.h"
#include "rlx/ir/inline.h"
#include "rlx/ops/control/fused.h"

namespace rlx::backend {

bool is_taken(const ir::Target& target, const ir::Graph& g, ir::AttrsRef attrs, const ir::Values& operands,
              const ir::Layouts& layouts) {
  ir::Graph scratch;
  ir::Values inputs;
  Shapes types;
  for (const ir::Value v : operands) {
    types.push_back(g.shape(v));
    inputs.push_back(scratch.input(cat("x", inputs.size()), types.back()));
  }
  const ir::Node& n = scratch.node(scratch.append(ir::def<ops::Fused>(), std::move(attrs), inputs));
  ir::Layouts results;
  for (const Shape& s : n.shapes) results.push_back(ir::Layout::row_major(s.dims()));
  return bool(target.accepts(n, types, layouts, results));
}

ir::Layout expected_layout(const ir::Graph& g, ir::Value v) {
  const ir::Node& n = g.node(v);
  if (n.op->view != nullptr && n.shapes.size() == 1 && !n.inputs.empty()) {
    const auto layout =
        n.op->view({g.shape(n.inputs[0]), expected_layout(g, n.inputs[0]), n.shapes[0]}, n.attrs.get());
    if (layout) return *layout;
  }
  return ir::Layout::row_major(g.shape(v).dims());
}

namespace {

class Joiner {
 public:
  Joiner(const ir::Graph& g, const ir::Target& target)
      : g_(g), target_(target), group_(g.next_id(), -1), state_(g.next_id()) {
    size_t i = 0;
    order_.resize(g.next_id());
    for (const ir::Node* n : g.nodes()) order_[n->id] = i++;
  }

  void add(const NodeGroup& group) {
    for (const ir::Node* n : group.nodes) {
      if (group_[n->id] >= 0) return;
    }
    NodeGroup sorted = group;
    std::sort(sorted.nodes.begin(), sorted.nodes.end(),
              [&](auto* a, auto* b) { return order_[a->id] < order_[b->id]; });
    if (!is_convex(sorted) || !is_taken(describe(sorted))) return;
    for (const ir::Node* n : sorted.nodes) group_[n->id] = int(groups_.size());
    groups_.push_back(std::move(sorted));
  }

  std::optional<ir::Graph> run() {
    if (groups_.empty()) return std::nullopt;
    ir::Graph out(g_.name());
    ir::Cloner copy(out);
    for (const ir::NodeId id : g_.leaves()) copy.copy(g_.node(id)), state_[id] = State::done;
    for (const ir::Node* n : g_.nodes()) {
      if (!emit(copy, *n)) return std::nullopt;
    }
    copy.copy_outputs(g_);
    return out;
  }

 private:
  enum class State : uint8_t { waiting, begun, done };

  /// A group as one node.
  struct Described {
    std::shared_ptr<const ops::Fused::Attrs> attrs;
    ir::Values operands, results;
  };

  bool has(const NodeGroup& group, ir::NodeId id) const {
    return std::any_of(group.nodes.begin(), group.nodes.end(),
                       [&](const ir::Node* n) { return n->id == id; });
  }

  // No operand from outside may be made of a result.
  bool is_convex(const NodeGroup& group) const {
    size_t first = order_[group.nodes.front()->id];
    for (const ir::Node* n : group.nodes) first = std::min(first, order_[n->id]);
    std::set<ir::NodeId> seen;
    std::vector<ir::NodeId> open;
    const auto visit = [&](const ir::Node& n, bool member) {
      for (const ir::Value v : n.inputs) {
        if (has(group, v.node) ? !member : order_[v.node] > first && seen.insert(v.node).second)
          open.push_back(v.node);
      }
    };
    for (const ir::Node* n : group.nodes) visit(*n, true);
    while (!open.empty()) {
      const ir::NodeId id = open.back();
      open.pop_back();
      if (has(group, id)) return false;
      visit(g_.node(id), false);
    }
    return true;
  }

  // Operands first; false when groups wait for each other.
  bool emit(ir::Cloner& copy, const ir::Node& n) {
    const int number = group_[n.id];
    const ir::Node& first = number < 0 ? n : *groups_[size_t(number)].nodes.front();
    State& state = state_[first.id];
    if (state == State::done) return true;
    if (state == State::begun) return false;
    state = State::begun;
    if (number < 0) {
      for (const ir::Value v : n.inputs) {
        if (!emit(copy, g_.node(v))) return false;
      }
      copy.copy(n);
    } else {
      for (const ir::Node* member : groups_[size_t(number)].nodes) {
        for (const ir::Value v : member->inputs) {
          if (group_[v.node] != number && !emit(copy, g_.node(v))) return false;
        }
      }
      emit_group(copy, groups_[size_t(number)]);
    }
    state = State::done;
    return true;
  }

  Described describe(const NodeGroup& group) const {
    Described out;
    ir::Graph body{std::string(group.kind)};
    ir::Cloner inside(body);
    ir::Values outputs;
    for (const ir::Node* n : group.nodes) {
      for (const ir::Value v : n->inputs) {
        if (inside.has(v) || has(group, v.node)) continue;
        inside.set(v, body.input(cat("x", out.operands.size()), g_.shape(v)));
        out.operands.push_back(v);
      }
      copy_member(inside, group, *n);
    }
    for (const ir::Node* n : group.nodes) {
      for (uint32_t i = 0; i < n->shapes.size(); ++i) {
        if (!is_read_outside(group, *n, i)) continue;
        out.results.push_back(n->result(i));
        outputs.push_back(inside.at(n->result(i)));
      }
    }
    body.set_outputs(outputs);
    out.attrs = std::make_shared<ops::Fused::Attrs>(
        ops::Fused::Attrs{std::make_shared<const ir::Graph>(std::move(body))});
    return out;
  }

  // Regions become one region: the body of a member is laid open.
  static void copy_member(ir::Cloner& inside, const NodeGroup& group, const ir::Node& n) {
    if (group.kind != kRegionGroup || !n.is<ops::Fused>()) {
      inside.copy(n);
      return;
    }
    ir::Exprs operands;
    for (const ir::Value v : n.inputs) operands.push_back(ir::Expr{&inside.to(), inside.at(v)});
    const ir::Exprs results = ir::inline_graph(inside.to(), *n.as<ops::Fused>().body, operands);
    for (uint32_t i = 0; i < results.size(); ++i) inside.set(n.result(i), results[i]);
  }

  bool is_taken(const Described& d) const {
    ir::Layouts layouts;
    for (const ir::Value v : d.operands) {
      layouts.push_back(expected_layout(g_, v));
      layouts.back().offset = 0;
    }
    return backend::is_taken(target_, g_, d.attrs, d.operands, layouts);
  }

  void emit_group(ir::Cloner& copy, const NodeGroup& group) const {
    const Described d = describe(group);
    ir::Graph& g = copy.to();
    const ir::Node& last = *group.nodes.back();
    const ir::OriginScope scope(g,
                                ir::noted_origin(last, cat("one kernel for ", group.nodes.size(), " steps")));
    const ir::NodeId id = g.append(ir::def<ops::Fused>(), d.attrs, copy.at(d.operands), last.name);
    for (uint32_t i = 0; i < d.results.size(); ++i) copy.set(d.results[i], g.value(id, i));
  }

  bool is_read_outside(const NodeGroup& group, const ir::Node& n, uint32_t result) const {
    return std::any_of(n.uses.begin(), n.uses.end(), [&](const ir::Use& u) {
      if (u.user == ir::kNoNode) return g_.outputs()[u.operand].index == result;
      return !has(group, u.user) && g_.node(u.user).inputs[u.operand].index == result;
    });
  }

  const ir::Graph& g_;
  const ir::Target& target_;
  std::vector<size_t> order_;
  std::vector<int> group_;  // by node
  std::vector<State> state_;
  std::vector<NodeGroup> groups_;
};

}  // namespace

std::optional<ir::Graph> with_groups(const ir::Graph& g, const ir::Target& target,
                                     std::span<const NodeGroup> groups) {
  Joiner joiner(g, target);
  for (const NodeGroup& group : groups) joiner.add(group);
  return joiner.run();
}

}  // namespace rlx::backend
