#include "rlx/passes/schedule.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"

namespace rlx::passes {
namespace {

/// Values in use while nodes run one after the other.
class Liveness {
 public:
  explicit Liveness(const ir::Graph& g)
      : owner_(g.next_id()),
        bytes_(g.next_id(), 0),
        readers_(g.next_id(), 0),
        operands_(g.next_id()),
        reading_(g.next_id()) {
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
        reading_[from].push_back(n->id);
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

  /// Calls changed(id) for nodes whose growth may be another one now: the last readers of an operand.
  template <class Changed>
  void run(const ir::Node& n, Changed changed) {
    peak_ = std::max(peak_, now_ += bytes_[n.id]);
    for (const ir::NodeId from : operands_[n.id]) {
      --readers_[from];
      if (readers_[from] == 0) now_ -= bytes_[from];
      for (size_t i = 0; readers_[from] == 1 && i < reading_[from].size(); ++i) changed(reading_[from][i]);
    }
    if (readers_[n.id] == 0) now_ -= bytes_[n.id];
  }
  void run(const ir::Node& n) {
    run(n, [](ir::NodeId) {});
  }
  int64_t peak() const { return peak_; }

 private:
  std::vector<ir::NodeId> owner_;  // of a view: what it views
  std::vector<int64_t> bytes_;     // of owners
  std::vector<int> readers_;       // of owners, that have not run
  std::vector<std::vector<ir::NodeId>> operands_,
      reading_;  // owners a node reads, each once; and the reverse
  int64_t now_ = 0, peak_ = 0;
};

/// Which updates of states have to wait for readers of the old value.
class Updates {
 public:
  Updates(const ir::Graph& g, std::span<const StateUpdate> updates)
      : waiting_(g.next_id(), 0), updates_of_(g.next_id()) {
    for (const StateUpdate& u : updates) {
      ir::NodeId maker = u.next.node;
      while (is_view(g.node(maker))) maker = g.node(maker).inputs[0].node;
      if (!g.node(maker).inputs.empty()) add_readers(g, u.state.node, maker);
    }
  }

  /// Readers of old values that have to run before the node.
  int waiting(ir::NodeId id) const { return waiting_[id]; }
  /// Calls changed(id) for nodes that wait for one reader less.
  template <class Changed>
  void run(const ir::Node& n, Changed changed) {
    for (const ir::NodeId update : updates_of_[n.id]) {
      --waiting_[update];
      changed(update);
    }
  }

 private:
  static bool is_view(const ir::Node& n) {
    return n.op->view != nullptr && n.shapes.size() == 1 && !n.inputs.empty();
  }
  // A view reads nothing; whoever reads the view does.
  void add_readers(const ir::Graph& g, ir::NodeId of, ir::NodeId update) {
    for (const ir::Use& use : g.node(of).uses) {
      if (use.user == ir::kNoNode || use.user == update) continue;
      if (is_view(g.node(use.user))) {
        add_readers(g, use.user, update);
        continue;
      }
      updates_of_[use.user].push_back(update);
      ++waiting_[update];
    }
  }

  std::vector<int> waiting_;
  std::vector<std::vector<ir::NodeId>> updates_of_;  // by reader; as often as it reads
};

/// Nodes whose operands are there: updates that would come early last, then the one that leaves the least in use first.
class Ready {
 public:
  Ready(const ir::Graph& g, const Liveness& live, const Updates& updates)
      : live_(live), updates_(updates), nodes_(g.nodes()), place_(g.next_id(), 0), key_(g.next_id()) {
    for (size_t i = 0; i < nodes_.size(); ++i) place_[nodes_[i]->id] = i;
  }

  void insert(ir::NodeId id) {
    key_[id] = {updates_.waiting(id) > 0, live_.growth(*nodes_[place_[id]]), place_[id]};
    ready_.insert(*key_[id]);
  }
  void update(ir::NodeId id) {
    if (!key_[id] || ready_.erase(*key_[id]) == 0) return;
    insert(id);
  }
  const ir::Node* take() {
    if (ready_.empty()) return nullptr;
    const ir::Node* n = nodes_[std::get<2>(*ready_.begin())];
    ready_.erase(ready_.begin());
    return n;
  }

 private:
  using Key = std::tuple<bool, int64_t, size_t>;  // early, growth, the place in the given order
  const Liveness& live_;
  const Updates& updates_;
  std::span<const ir::Node* const> nodes_;
  std::vector<size_t> place_;
  std::vector<std::optional<Key>> key_;
  std::set<Key> ready_;
};

std::vector<const ir::Node*> greedy_order(const ir::Graph& g, std::span<const StateUpdate> states) {
  Liveness live(g);
  Updates updates(g, states);
  Ready ready(g, live, updates);
  std::vector<int> missing(g.next_id(), 0);
  for (const ir::Node* n : g.nodes()) missing[n->id] = int(n->inputs.size());
  std::vector<const ir::Node*> order;
  const auto run = [&](const ir::Node& n) {
    const auto update = [&](ir::NodeId id) { ready.update(id); };
    live.run(n, update);
    updates.run(n, update);
    order.push_back(&n);
    for (const ir::Use& u : n.uses) {
      if (u.user != ir::kNoNode && --missing[u.user] == 0) ready.insert(u.user);
    }
  };
  for (const ir::Node* n : g.nodes()) {
    if (n->inputs.empty()) run(*n);
  }
  while (const ir::Node* n = ready.take()) run(*n);
  return order;
}

int early_in(const ir::Graph& g, std::span<const ir::Node* const> order,
             std::span<const StateUpdate> states) {
  Updates updates(g, states);
  int early = 0;
  for (const ir::Node* n : order) {
    early += updates.waiting(n->id) > 0;
    updates.run(*n, [](ir::NodeId) {});
  }
  return early;
}

}  // namespace

int early_updates(const ir::Graph& g, std::span<const StateUpdate> states) {
  return early_in(g, g.nodes(), states);
}

int64_t peak_bytes(const ir::Graph& g) {
  Liveness live(g);
  for (const ir::Node* n : g.nodes()) live.run(*n);
  return live.peak();
}

Scheduled schedule(const ir::Graph& g, std::span<const StateUpdate> states) {
  const int64_t before = peak_bytes(g);
  const int early_before = early_updates(g, states);
  const auto order = greedy_order(g, states);
  RLX_CHECK(order.size() == g.len(), "an order of ", order.size(), " for ", g.len(), " nodes");
  Liveness live(g);
  for (const ir::Node* n : order) live.run(*n);
  const int early = early_in(g, order, states);
  if (early > early_before || (early == early_before && live.peak() >= before)) return {g, before, before};
  ir::Graph out(g.name());
  ir::Cloner copy(out);
  for (const ir::Node* n : order) copy.copy(*n);
  copy.copy_outputs(g);
  return {std::move(out), before, live.peak()};
}

}  // namespace rlx::passes
