#include "rlx/passes/schedule.h"

#include <algorithm>
#include <set>

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"

namespace rlx::passes {
namespace {

constexpr size_t kMostCompared = 256;  // ready nodes that are looked at, the first ones: time stays linear

/// Values in use while nodes run one after the other.
class Liveness {
 public:
  explicit Liveness(const ir::Graph& g)
      : owner_(g.next_id()), bytes_(g.next_id(), 0), readers_(g.next_id(), 0), operands_(g.next_id()) {
    for (const ir::Node* n : g.nodes()) {
      const bool view = n->op->view != nullptr && n->shapes.size() == 1 && !n->inputs.empty();
      owner_[n->id] = view ? owner_[n->inputs[0].node] : n->id;
      const bool stored = !n->op->traits.leaf && !n->inputs.empty() && !view;
      for (const Shape& s : n->shapes) bytes_[n->id] += stored ? s.size_bytes() : 0;
      auto& operands = operands_[n->id];
      for (const ir::Value v : n->inputs) {
        const ir::NodeId from = owner_[v.node];
        if (from == owner_[n->id] || std::find(operands.begin(), operands.end(), from) != operands.end())
          continue;
        operands.push_back(from);
        ++readers_[from];
      }
    }
    for (const ir::Value v : g.outputs()) ++readers_[owner_[v.node]];  // in use to the end
  }

  /// Bytes more in use behind the node than in front of it.
  int64_t growth(const ir::Node& n) const {
    int64_t change = readers_[n.id] > 0 ? bytes_[n.id] : 0;
    for (const ir::NodeId from : operands_[n.id]) change -= readers_[from] == 1 ? bytes_[from] : 0;
    return change;
  }

  void run(const ir::Node& n) {
    peak_ = std::max(peak_, now_ += bytes_[n.id]);
    for (const ir::NodeId from : operands_[n.id]) {
      if (--readers_[from] == 0) now_ -= bytes_[from];
    }
    if (readers_[n.id] == 0) now_ -= bytes_[n.id];
  }
  int64_t peak() const { return peak_; }

 private:
  std::vector<ir::NodeId> owner_;                  // of a view: what it views
  std::vector<int64_t> bytes_;                     // of owners
  std::vector<int> readers_;                       // of owners, that have not run
  std::vector<std::vector<ir::NodeId>> operands_;  // owners of what a node reads, each once
  int64_t now_ = 0, peak_ = 0;
};

std::vector<const ir::Node*> greedy_order(const ir::Graph& g, Liveness live) {
  std::vector<int> missing(g.next_id(), 0);
  std::vector<size_t> place(g.next_id(), 0);
  std::vector<const ir::Node*> order;
  std::set<size_t> ready;  // places in the given order
  const auto nodes = g.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    place[nodes[i]->id] = i;
    missing[nodes[i]->id] = int(nodes[i]->inputs.size());
  }
  const auto run = [&](const ir::Node& n) {
    live.run(n);
    order.push_back(&n);
    for (const ir::Use& u : n.uses) {
      if (u.user != ir::kNoNode && --missing[u.user] == 0) ready.insert(place[u.user]);
    }
  };
  for (const ir::Node* n : nodes) {
    if (n->inputs.empty()) run(*n);
  }
  while (!ready.empty()) {
    auto best = ready.begin();
    int64_t least = live.growth(*nodes[*best]);
    size_t seen = 0;
    for (auto it = ready.begin(); it != ready.end() && seen < kMostCompared; ++it, ++seen) {
      const int64_t change = live.growth(*nodes[*it]);
      if (change < least) best = it, least = change;
    }
    const ir::Node& n = *nodes[*best];
    ready.erase(best);
    run(n);
  }
  return order;
}

}  // namespace

int64_t peak_bytes(const ir::Graph& g) {
  Liveness live(g);
  for (const ir::Node* n : g.nodes()) live.run(*n);
  return live.peak();
}

Scheduled schedule(const ir::Graph& g) {
  const int64_t before = peak_bytes(g);
  const auto order = greedy_order(g, Liveness(g));
  RLX_CHECK(order.size() == g.len(), "an order of ", order.size(), " for ", g.len(), " nodes");
  Liveness live(g);
  for (const ir::Node* n : order) live.run(*n);
  if (live.peak() >= before) return {g, before, before};
  ir::Graph out(g.name());
  ir::Cloner copy(out);
  for (const ir::Node* n : order) copy.copy(*n);
  copy.copy_outputs(g);
  return {std::move(out), before, live.peak()};
}

}  // namespace rlx::passes
