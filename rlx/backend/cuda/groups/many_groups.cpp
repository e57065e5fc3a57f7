#include <algorithm>
#include <unordered_map>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/flat_region.h"
#include "rlx/base/options.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/elementwise/cast.h"

namespace rlx::cuda {
namespace {

// A member runs when all members can: what it reads and writes lives longer than it would, which is nothing where that is a leaf or an
// output of the graph, or as small as this.
constexpr int64_t kSmallBytes = 64 << 10;

class Finder {
 public:
  explicit Finder(const ir::Graph& g) : g_(g) {}

  std::vector<Group> run() {
    std::unordered_map<std::string, size_t> known;
    std::vector<std::vector<const ir::Node*>> alike;
    for (const ir::Node* n : g_.nodes()) {
      if (!is_candidate(*n)) continue;
      const std::string text = text_of(*n);
      if (text.empty()) continue;
      const auto [it, is_new] = known.try_emplace(text, alike.size());
      if (is_new) alike.emplace_back();
      alike[it->second].push_back(n);
    }
    std::vector<Group> out;
    for (const auto& nodes : alike) {
      if (nodes.size() > 1) add_independent(out, nodes);
    }
    return out;
  }

 private:
  bool is_candidate(const ir::Node& n) const {
    const bool region = n.is<ops::Fused>() ? !reduces(n) : n.op->traits.elementwise || n.is<ops::Cast>();
    return region && !n.inputs.empty() && is_read(n) && (are_small(n) || reads_leaves(n) || makes_outputs(n));
  }

  bool is_read(const ir::Node& n) const {
    std::vector<bool> read(n.shapes.size(), false);
    for (const ir::Use& u : n.uses) {
      const ir::Value v = u.user == ir::kNoNode ? g_.outputs()[u.operand] : g_.node(u.user).inputs[u.operand];
      read[v.index] = true;
    }
    return std::all_of(read.begin(), read.end(), [](bool r) { return r; });
  }

  bool are_small(const ir::Node& n) const {
    int64_t bytes = 0;
    for (const Shape& s : n.shapes) bytes += s.size_bytes();
    for (const ir::Value v : n.inputs) bytes += g_.shape(v).size_bytes();
    return bytes <= kSmallBytes;
  }

  bool reads_leaves(const ir::Node& n) const {
    return std::all_of(n.inputs.begin(), n.inputs.end(), [&](ir::Value v) {
      const ir::Node* from = &g_.node(v);
      while (from->op->view != nullptr && from->shapes.size() == 1 && !from->inputs.empty())
        from = &g_.node(from->inputs[0]);
      return from->op->traits.leaf || g_.shape(v).size_bytes() <= kSmallBytes;
    });
  }

  static bool makes_outputs(const ir::Node& n) {
    return std::all_of(n.uses.begin(), n.uses.end(), [](const ir::Use& u) { return u.user == ir::kNoNode; });
  }

  // What it does to an element; empty where that depends on more than the element.
  std::string text_of(const ir::Node& n) const {
    std::vector<Shape> types;
    std::vector<region::Layout> layouts;
    for (const ir::Value v : n.inputs) {
      types.push_back(g_.shape(v));
      layouts.push_back({backend::expected_layout(g_, v).strides});
    }
    auto flat = flat_region(n, types, layouts);
    return flat ? std::move(flat->text) : std::string();
  }

  // Members that depend on no other one: a node that does begins the next group.
  void add_independent(std::vector<Group>& out, const std::vector<const ir::Node*>& nodes) const {
    Group group{kManyRegions, {}};
    std::vector<bool> waits(g_.next_id(), false);  // for a member
    size_t next = 0;
    const auto end = [&] {
      if (group.nodes.size() > 1) out.push_back(group);
      group.nodes.clear();
      waits.assign(waits.size(), false);
    };
    for (const ir::Node* n : g_.nodes()) {
      if (next == nodes.size()) break;
      const auto depends = [&] {
        return std::any_of(n->inputs.begin(), n->inputs.end(), [&](ir::Value v) { return waits[v.node]; });
      };
      if (n != nodes[next]) {
        waits[n->id] = depends();
        continue;
      }
      if (depends()) end();
      group.nodes.push_back(n);
      waits[n->id] = true;
      ++next;
    }
    end();
  }

  const ir::Graph& g_;
};

}  // namespace

std::vector<Group> many_groups(const ir::Graph& g) {
  if (option("RLX_CUDA_JOIN").value_or("1") == "0") return {};
  return Finder(g).run();
}

}  // namespace rlx::cuda
