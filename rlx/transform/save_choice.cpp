#include "rlx/transform/save_choice.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

namespace rlx::transform {
namespace {

int64_t bytes_of(const Graph& g, Value v) {
  const Shape& s = g.shape(v);
  return s.is_static() ? std::max<int64_t>(1, s.size_bytes()) : int64_t(1) << 40;
}

// Rough cost of running a node again: elements touched, times the contracted size for products.
double cost_of(const Graph& g, const Node& n) {
  double elements = 0, widest = 1;
  for (const Shape& s : n.shapes) elements += s.is_static() ? double(s.elements()) : 1e6;
  if (!n.op->traits.contraction) return elements;
  for (const Value v : n.inputs) {
    const Shape& s = g.shape(v);
    if (s.rank() > 0 && s.dim(-1).is_static()) widest = std::max(widest, double(s.dim(-1).value()));
  }
  return elements * widest;
}

// Forward nodes on which the needed values depend, operands first; leaves and constants are left out.
std::vector<NodeId> closure(const Graph& g, const Values& needed) {
  std::set<NodeId> in;
  std::vector<NodeId> work;
  for (const Value v : needed) work.push_back(v.node);
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    const Node& n = g.node(id);
    if (n.op->traits.leaf || n.inputs.empty() || !in.insert(id).second) continue;
    for (const Value v : n.inputs) work.push_back(v.node);
  }
  std::vector<NodeId> out;
  for (const Node* n : g.nodes()) {
    if (in.contains(n->id)) out.push_back(n->id);
  }
  return out;
}

// Minimum vertex cut between what is given (leaves, and nodes too dear to run again) and the needed values.
// Each value is an arc in -> out whose capacity is its bytes; other arcs are endless. Edmonds-Karp.
class MinCut {
 public:
  static constexpr int64_t kEndless = int64_t(1) << 60;

  int vertex() { return arcs_.emplace_back(), int(arcs_.size()) - 1; }
  void arc(int from, int to, int64_t capacity) {
    arcs_[size_t(from)].push_back({to, int(arcs_[size_t(to)].size()), capacity});
    arcs_[size_t(to)].push_back({from, int(arcs_[size_t(from)].size()) - 1, 0});
  }
  /// Vertices reachable from the source once the flow is maximal.
  std::vector<bool> solve(int source, int sink) {
    for (;;) {
      std::vector<std::pair<int, int>> via(arcs_.size(), {-1, -1});
      std::queue<int> queue;
      queue.push(source);
      via[size_t(source)] = {source, -1};
      while (!queue.empty() && via[size_t(sink)].first < 0) {
        const int v = queue.front();
        queue.pop();
        for (size_t i = 0; i < arcs_[size_t(v)].size(); ++i) {
          const Arc& a = arcs_[size_t(v)][i];
          if (a.capacity > 0 && via[size_t(a.to)].first < 0)
            via[size_t(a.to)] = {v, int(i)}, queue.push(a.to);
        }
      }
      if (via[size_t(sink)].first < 0) {
        std::vector<bool> reached(arcs_.size());
        for (size_t i = 0; i < via.size(); ++i) reached[i] = via[i].first >= 0;
        return reached;
      }
      int64_t flow = kEndless;
      for (int v = sink; v != source; v = via[size_t(v)].first)
        flow = std::min(flow, arc_to(via[size_t(v)]).capacity);
      for (int v = sink; v != source; v = via[size_t(v)].first) {
        Arc& a = arc_to(via[size_t(v)]);
        a.capacity -= flow;
        arcs_[size_t(a.to)][size_t(a.reverse)].capacity += flow;
      }
    }
  }

 private:
  struct Arc {
    int to, reverse;
    int64_t capacity;
  };
  Arc& arc_to(std::pair<int, int> via) { return arcs_[size_t(via.first)][size_t(via.second)]; }
  std::vector<std::vector<Arc>> arcs_;
};

Values cut_at(const Graph& g, const std::vector<NodeId>& nodes, const Values& needed, double dearest) {
  MinCut cut;
  const int source = cut.vertex(), sink = cut.vertex();
  ValueMap<std::pair<int, int>> ends;
  std::set<NodeId> inside(nodes.begin(), nodes.end());
  for (const NodeId id : nodes) {
    const Node& n = g.node(id);
    for (uint32_t r = 0; r < n.shapes.size(); ++r) {
      const int in = cut.vertex(), out = cut.vertex();
      ends[n.result(r)] = {in, out};
      cut.arc(in, out, bytes_of(g, n.result(r)));
      if (cost_of(g, n) > dearest) cut.arc(source, in, MinCut::kEndless);
      for (const Value v : n.inputs) {
        if (inside.contains(v.node)) {
          cut.arc(ends.at(v).second, in, MinCut::kEndless);
        }
      }
    }
  }
  for (const Value v : needed) cut.arc(ends.at(v).second, sink, MinCut::kEndless);
  const auto reached = cut.solve(source, sink);
  Values saved;
  for (const NodeId id : nodes) {
    for (uint32_t r = 0; r < g.node(id).shapes.size(); ++r) {
      const auto [in, out] = ends.at(g.node(id).result(r));
      if (reached[size_t(in)] && !reached[size_t(out)]) saved.push_back(g.node(id).result(r));
    }
  }
  return saved;
}

int64_t total_bytes(const Graph& g, const Values& values) {
  int64_t sum = 0;
  for (const Value v : values) sum += bytes_of(g, v);
  return sum;
}

// The less is run again the better: lower the price up to which nodes may run again until the cut fits.
Values fit(const Graph& g, const Values& needed, int64_t budget) {
  const std::vector<NodeId> nodes = closure(g, needed);
  if (total_bytes(g, needed) <= budget) return needed;
  std::set<double> prices;
  for (const NodeId id : nodes) prices.insert(cost_of(g, g.node(id)));
  for (const double price : prices) {
    Values saved = cut_at(g, nodes, needed, price);
    if (total_bytes(g, saved) <= budget) return saved;
  }
  return {};  // everything from the leaves needs no byte at all
}

}  // namespace

Values choose_saved(const Graph& joint, const Values& needed, SavePolicy policy,
                    std::optional<int64_t> budget) {
  switch (policy) {
    case SavePolicy::save_all:
      return needed;
    case SavePolicy::recompute_all:
      return {};
    case SavePolicy::save_matmuls: {
      Values saved;
      for (const NodeId id : closure(joint, needed)) {
        if (!joint.node(id).op->traits.contraction) continue;
        for (uint32_t r = 0; r < joint.node(id).shapes.size(); ++r) saved.push_back(joint.node(id).result(r));
      }
      return saved;
    }
    case SavePolicy::fit_bytes:
      if (!budget || *budget < 0)
        throw invalid("grad: the policy fit_bytes needs a budget of 0 bytes or more");
      return fit(joint, needed, *budget);
  }
  return {};
}

}  // namespace rlx::transform
