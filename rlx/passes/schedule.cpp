#include "rlx/passes/schedule.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"

namespace rlx::passes {
namespace {

/// A list for each node, one behind the other.
class NodeLists {
 public:
  explicit NodeLists(size_t nodes) : first_(nodes + 1, 0) {}

  /// All lists of a pair's first, in the order of the pairs.
  NodeLists(size_t nodes, std::span<const std::pair<ir::NodeId, ir::NodeId>> pairs)
      : first_(nodes + 1, 0), all_(pairs.size()) {
    for (const auto& [of, id] : pairs) ++first_[of + 1];
    for (size_t i = 0; i < nodes; ++i) first_[i + 1] += first_[i];
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (const auto& [of, id] : pairs) all_[next[of]++] = id;
  }
  std::span<const ir::NodeId> operator[](ir::NodeId id) const {
    return std::span(all_).subspan(first_[id], first_[id + 1] - first_[id]);
  }

 private:
  std::vector<uint32_t> first_;
  std::vector<ir::NodeId> all_;
};

/// Whose bytes each node reads, in whatever order the nodes run. A view is part of what it views, its owner.
struct Reads {
  explicit Reads(const ir::Graph& g)
      : bytes(g.next_id(), 0), readers(g.next_id(), 0), operands(0), reading(0) {
    std::vector<ir::NodeId> owner(g.next_id());
    std::vector<std::pair<ir::NodeId, ir::NodeId>> reads, read_by;
    for (const ir::Node* n : g.nodes()) {
      const bool view = n->op->view != nullptr && n->shapes.size() == 1 && !n->inputs.empty();
      owner[n->id] = view ? owner[n->inputs[0].node] : n->id;
      const bool stored = !n->op->traits.leaf && !n->inputs.empty() && !view;
      for (const Shape& s : n->shapes) bytes[n->id] += stored ? s.size_bytes() : 0;
      const size_t first = reads.size();
      for (const ir::Value v : n->inputs) {
        const std::pair read{n->id, owner[v.node]};
        if (read.second == owner[n->id] ||
            std::find(reads.begin() + long(first), reads.end(), read) != reads.end())
          continue;
        reads.push_back(read);
        read_by.push_back({read.second, read.first});
        ++readers[read.second];
      }
    }
    for (const ir::Value v : g.outputs()) ++readers[owner[v.node]];  // in use to the end
    operands = NodeLists(g.next_id(), reads);
    reading = NodeLists(g.next_id(), read_by);
  }

  std::vector<int64_t> bytes;   // of owners
  std::vector<int> readers;     // of owners
  NodeLists operands, reading;  // owners a node reads, each once; and the reverse
};

/// Values in use while nodes run one after the other.
class Liveness {
 public:
  explicit Liveness(const Reads& reads) : reads_(reads), readers_(reads.readers) {}

  /// Bytes more in use behind the node than in front of it.
  int64_t growth(const ir::Node& n) const {
    int64_t change = readers_[n.id] > 0 ? reads_.bytes[n.id] : 0;
    for (const ir::NodeId from : reads_.operands[n.id])
      change -= readers_[from] == 1 ? reads_.bytes[from] : 0;
    return change;
  }

  /// Calls changed(id) for nodes whose growth may be another one now: the last readers of an operand.
  template <class Changed>
  void run(const ir::Node& n, Changed changed) {
    peak_ = std::max(peak_, now_ += reads_.bytes[n.id]);
    for (const ir::NodeId from : reads_.operands[n.id]) {
      --readers_[from];
      if (readers_[from] == 0) now_ -= reads_.bytes[from];
      if (readers_[from] != 1) continue;
      for (const ir::NodeId reader : reads_.reading[from]) changed(reader);
    }
    if (readers_[n.id] == 0) now_ -= reads_.bytes[n.id];
  }
  int64_t peak() const { return peak_; }

 private:
  const Reads& reads_;
  std::vector<int> readers_;  // of owners, that have not run
  int64_t now_ = 0, peak_ = 0;
};

int64_t peak_in(const Reads& reads, std::span<const ir::Node* const> order) {
  Liveness live(reads);
  for (const ir::Node* n : order) live.run(*n, [](ir::NodeId) {});
  return live.peak();
}

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

std::vector<const ir::Node*> greedy_order(const ir::Graph& g, const Reads& reads,
                                          std::span<const StateUpdate> states) {
  Liveness live(reads);
  Updates updates(g, states);
  Ready ready(g, live, updates);
  std::vector<int> missing(g.next_id(), 0);
  for (const ir::Node* n : g.nodes()) missing[n->id] = int(n->inputs.size());
  std::vector<const ir::Node*> order;
  order.reserve(g.len());
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

int64_t peak_bytes(const ir::Graph& g) { return peak_in(Reads(g), g.nodes()); }

Scheduled schedule(ir::Graph g, std::span<const StateUpdate> states) {
  const Reads reads(g);
  const int64_t before = peak_in(reads, g.nodes());
  const int early_before = early_updates(g, states);
  const auto order = greedy_order(g, reads, states);
  RLX_CHECK(order.size() == g.len(), "an order of ", order.size(), " for ", g.len(), " nodes");
  const int64_t after = peak_in(reads, order);
  const int early = early_in(g, order, states);
  if (early > early_before || (early == early_before && after >= before))
    return {std::move(g), before, before};
  ir::Graph out(g.name());
  ir::Cloner copy(out);
  for (const ir::Node* n : order) copy.copy(*n);
  copy.copy_outputs(g);
  return {std::move(out), before, after};
}

}  // namespace rlx::passes
