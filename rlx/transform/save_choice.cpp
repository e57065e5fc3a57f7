#include "rlx/transform/save_choice.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "rlx/ir/bodies.h"

namespace rlx::transform {
namespace {

int64_t bytes_of(const Graph& g, Value v) {
  const Shape& s = g.shape(v);
  return s.is_static() ? std::max<int64_t>(1, s.size_bytes()) : int64_t(1) << 40;
}

// Elements made; for a contraction the products summed, which are sqrt(|a| |b| |y|) where each index stands in two of the three.
double own_cost(const Graph& g, const Node& n) {
  const auto size_of = [](const Shape& s) { return s.is_static() ? double(s.elements()) : 1e6; };
  double made = 0, largest = 1, second = 1;
  for (const Shape& s : n.shapes) made += size_of(s);
  if (!n.op->traits.contraction) return made;
  for (const Value v : n.inputs) {
    const double size = size_of(g.shape(v));
    second = std::max(second, std::min(size, largest));
    largest = std::max(largest, size);
  }
  return std::max(made, std::sqrt(made * largest * second));
}

// Rough cost of running a node again. One with bodies costs what the dearest of them does, once.
double cost_of(const Graph& g, const Node& n) {
  double inside = 0;
  ir::for_each_body(n, [&](const ir::FieldInfo&, const ir::GraphRef& body) {
    double sum = 0;
    for (const Node* m : body->nodes()) sum += m->op->traits.leaf ? 0 : cost_of(*body, *m);
    inside = std::max(inside, sum);
  });
  return std::max(inside, own_cost(g, n));
}

// Forward nodes on which the needed values depend, operands first; leaves and constants are left out.
std::vector<NodeId> closure(const Graph& g, const Values& needed) {
  std::unordered_set<NodeId> in;
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

int64_t total_bytes(const Graph& g, const Values& values) {
  int64_t sum = 0;
  for (const Value v : values) sum += bytes_of(g, v);
  return sum;
}

// The forward nodes that the backward part could run again, numbered operands first, and their values.
struct Plan {
  struct Item {
    NodeId node = kNoNode;
    double cost = 0;
    std::vector<uint32_t> inputs;                 // items, each once
    std::vector<std::pair<Value, int64_t>> read;  // values that somebody reads, with their bytes
    uint32_t readers = 0;                         // items that take it as an input
    bool needed = false;                          // the backward part itself reads it
  };
  std::vector<Item> items;

  Plan(const Graph& g, const Values& needed) {
    const std::vector<NodeId> nodes = closure(g, needed);
    std::unordered_map<NodeId, uint32_t> number;
    std::unordered_set<Value, ir::ValueHash> read(needed.begin(), needed.end());
    for (const NodeId id : nodes) {
      number[id] = uint32_t(number.size());
      for (const Value v : g.node(id).inputs) read.insert(v);
    }
    items.resize(nodes.size());
    for (const NodeId id : nodes) {
      const Node& n = g.node(id);
      Item& item = items[number[id]];
      item.node = id;
      item.cost = cost_of(g, n);
      for (uint32_t r = 0; r < n.shapes.size(); ++r) {
        if (read.contains(n.result(r))) item.read.emplace_back(g.value(id, r), bytes_of(g, n.result(r)));
      }
      for (const Value v : n.inputs) {
        const auto it = number.find(v.node);
        if (it == number.end() ||
            std::find(item.inputs.begin(), item.inputs.end(), it->second) != item.inputs.end())
          continue;
        item.inputs.push_back(it->second);
        ++items[it->second].readers;
      }
    }
    for (const Value v : needed) items[number.at(v.node)].needed = true;
  }
};

// What becomes of each item: nobody asks for it, it is saved, or it runs again.
enum class Fate : uint8_t { unasked, saved, rerun };

class Choice {
 public:
  explicit Choice(const Plan& plan) : plan_(plan), fate_(plan.items.size()), askers_(plan.items.size()) {}

  // Decides for a price of `price` cost units a byte: an item is saved where that is cheaper than what
  // running it again would cost, with the saved or rerun items before it. An input that several items read is
  // paid by all of them in equal parts. Which items are asked for follows from the needed ones backwards.
  void decide(double price) {
    const size_t n = plan_.items.size();
    std::vector<double> rerun(n), least(n);
    for (size_t i = 0; i < n; ++i) {
      const Plan::Item& item = plan_.items[i];
      rerun[i] = item.cost;
      for (const uint32_t u : item.inputs) rerun[i] += least[u] / std::max(1u, plan_.items[u].readers);
      least[i] = std::min(rerun[i], price * double(bytes(i)));
    }
    cost_ = 0, bytes_ = 0;
    std::fill(askers_.begin(), askers_.end(), 0u);
    for (size_t i = n; i-- > 0;) {
      fate_[i] = Fate::unasked;
      if (askers_[i] == 0 && !plan_.items[i].needed) continue;
      const bool save = price * double(bytes(i)) < rerun[i];
      fate_[i] = save ? Fate::saved : Fate::rerun;
      if (save) {
        bytes_ += bytes(i);
      } else {
        cost_ += plan_.items[i].cost;
        for (const uint32_t u : plan_.items[i].inputs) ++askers_[u];
      }
    }
  }

  // Saves what still fits, the most cost a byte first. Saving an item frees the inputs that only it asked
  // for.
  void fill(int64_t budget) {
    const size_t n = plan_.items.size();
    std::vector<double> freed(n);
    std::vector<size_t> order;
    for (size_t i = 0; i < n; ++i) {
      if (fate_[i] != Fate::rerun) continue;
      freed[i] = plan_.items[i].cost;
      for (const uint32_t u : plan_.items[i].inputs) {
        if (is_only_for_one(u)) freed[i] += freed[u];
      }
      order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
      return freed[i] * double(bytes(j)) > freed[j] * double(bytes(i));
    });
    for (const size_t i : order) {
      if (fate_[i] != Fate::rerun || bytes_ + bytes(i) > budget) continue;
      fate_[i] = Fate::saved;
      bytes_ += bytes(i);
      cost_ -= plan_.items[i].cost;
      release_inputs(i);
    }
  }

  double cost() const { return cost_; }
  int64_t bytes() const { return bytes_; }
  // Of the results of saved items those that the backward part or an item that runs again reads.
  Values saved(const Graph& g, const Values& needed) const {
    std::unordered_set<Value, ir::ValueHash> read(needed.begin(), needed.end());
    for (size_t i = 0; i < fate_.size(); ++i) {
      if (fate_[i] == Fate::rerun)
        read.insert(g.node(plan_.items[i].node).inputs.begin(), g.node(plan_.items[i].node).inputs.end());
    }
    Values out;
    for (size_t i = 0; i < fate_.size(); ++i) {
      if (fate_[i] != Fate::saved) continue;
      for (const auto& [v, size] : plan_.items[i].read) {
        if (read.contains(v)) out.push_back(v);
      }
    }
    return out;
  }

 private:
  int64_t bytes(size_t i) const {
    int64_t sum = 0;
    for (const auto& [v, size] : plan_.items[i].read) sum += size;
    return sum;
  }
  bool is_only_for_one(size_t i) const {
    return fate_[i] == Fate::rerun && askers_[i] == 1 && !plan_.items[i].needed;
  }
  void release_inputs(size_t i) {
    std::vector<size_t> work{i};
    while (!work.empty()) {
      const size_t at = work.back();
      work.pop_back();
      for (const uint32_t u : plan_.items[at].inputs) {
        if (--askers_[u] > 0 || plan_.items[u].needed) continue;
        if (fate_[u] == Fate::rerun) cost_ -= plan_.items[u].cost, work.push_back(u);
        if (fate_[u] == Fate::saved) bytes_ -= bytes(u);
        fate_[u] = Fate::unasked;
      }
    }
  }

  const Plan& plan_;
  std::vector<Fate> fate_;
  std::vector<uint32_t> askers_;
  double cost_ = 0;
  int64_t bytes_ = 0;
};

// The cheapest of a ladder of prices a byte, each filled up to the budget. Exact where every value is read by
// the backward part and all have one size, near the best elsewhere, in linear time for each price.
Values fit(const Graph& g, const Values& needed, int64_t budget) {
  if (total_bytes(g, needed) <= budget) return needed;
  const Plan plan(g, needed);
  double low = INFINITY, high = 0, all = 0;
  for (const Plan::Item& item : plan.items) {
    all += item.cost;
    for (const auto& [v, size] : item.read) {
      low = std::min(low, item.cost / double(size));
      high = std::max(high, all / double(size));
    }
  }
  constexpr int kPrices = 24;
  const double step = high > low && low > 0 ? std::pow(high / low, 1.0 / (kPrices - 2)) : 2;
  std::optional<Choice> best;
  double price = std::max(low, 1e-12) / step;
  for (int i = 0; i < kPrices + 1; ++i, price *= step) {
    Choice choice(plan);
    choice.decide(i < kPrices ? price : INFINITY);  // at last: nothing is saved but by filling
    if (choice.bytes() > budget) continue;
    choice.fill(budget);
    if (!best || choice.cost() < best->cost()) best.emplace(choice);
  }
  return best->saved(g, needed);
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
      if (const auto open = joint.dynamic_symbols(); !open.empty())
        throw invalid("grad: a budget in bytes, and sizes of ", join(open),
                      " are open; bind them first (Graph::bind)");
      return fit(joint, needed, *budget);
  }
  return {};
}

}  // namespace rlx::transform
