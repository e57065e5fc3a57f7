#include "rlx/transform/partition.h"

#include <algorithm>
#include <set>

#include "rlx/ir/leaves.h"
#include "rlx/transform/save_choice.h"

namespace rlx::transform {
namespace {

bool is_free(const Node& n) { return n.inputs.empty() && !n.op->traits.leaf; }

class Partitioner {
 public:
  Partitioner(const Graph& joint, size_t num_leaves, size_t num_outputs)
      : joint_(joint), leaves_(joint.leaves()), num_leaves_(num_leaves), num_outputs_(num_outputs) {
    std::set<NodeId> cotangents(leaves_.begin() + long(num_leaves), leaves_.end());
    for (const Node* n : joint.nodes()) {
      bool back = cotangents.contains(n->id);
      for (const Value v : n->inputs) back = back || is_backward(v.node);
      if (n->id >= backward_.size()) backward_.resize(n->id + 1, false);
      backward_[n->id] = back;
    }
    for (const Node* n : joint.nodes()) {
      if (!backward_[n->id]) continue;
      for (const Value v : n->inputs) need(v);
    }
    for (size_t i = num_outputs; i < joint.outputs().size(); ++i) need(joint.outputs()[i]);
  }

  Partition run(SavePolicy policy, std::optional<int64_t> budget) {
    const Values saved = choose_saved(joint_, needed_, policy, budget);
    Partition out;
    build_forward(saved, out.forward);
    build_backward(saved, out);
    for (const Value v : saved) {
      const Shape& s = joint_.shape(v);
      out.saved.push_back(s);
      out.saved_names.push_back(cat("%", v.node, " ", joint_.node(v).op->name));
      if (s.is_static()) out.saved_bytes += s.size_bytes();
    }
    return out;
  }

 private:
  bool is_backward(NodeId id) const { return id < backward_.size() && backward_[id]; }

  // Forward values that the backward part reads; constants are made again where they are needed.
  void need(Value v) {
    const Node& n = joint_.node(v);
    if (is_backward(v.node) || n.op->traits.leaf || is_free(n)) return;
    if (std::find(needed_.begin(), needed_.end(), v) == needed_.end()) needed_.push_back(v);
  }

  Value copy_node(Graph& to, const Node& n, ValueMap<Value>& map) const {
    Values operands;
    for (const Value v : n.inputs) operands.push_back(map.at(v));
    to.set_current_origin(n.origin);
    const NodeId id = to.append(*n.op, n.attrs, operands, n.name);
    to.set_current_origin(nullptr);
    for (uint32_t i = 0; i < n.shapes.size(); ++i) map[n.result(i)] = to.value(id, i);
    return to.value(id);
  }

  const std::string& leaf_name(NodeId id) const {
    return static_cast<const NamedLeaf*>(joint_.node(id).attrs.get())->name;
  }

  void build_forward(const Values& saved, Graph& g) const {
    g.set_name(joint_.name());
    ValueMap<Value> map;
    for (size_t i = 0; i < num_leaves_; ++i) {
      const Node& n = joint_.node(leaves_[i]);
      const Value v =
          n.is<Param>() ? g.param(leaf_name(n.id), n.shapes[0]) : g.input(leaf_name(n.id), n.shapes[0]);
      map[n.result()] = v;
    }
    for (const Node* n : joint_.nodes()) {
      if (!n->op->traits.leaf && !backward_[n->id]) copy_node(g, *n, map);
    }
    Values outputs;
    std::vector<std::string> names;
    const auto joint_names = joint_.output_names();
    for (size_t i = 0; i < num_outputs_; ++i) {
      outputs.push_back(map.at(joint_.outputs()[i]));
      names.push_back(joint_names[i]);
    }
    for (const Value v : saved) {
      outputs.push_back(map.at(v));
      names.push_back(cat("saved_", v.node, "_", v.index));
    }
    g.set_outputs(outputs, names);
    g.erase_dead();
  }

  void build_backward(const Values& saved, Partition& out) const {
    Graph& g = out.backward;
    g.set_name(joint_.name() + "_backward");
    ValueMap<Value> map;
    const auto add_leaf = [&](NodeId id) {
      const Node& n = joint_.node(id);
      map[n.result()] =
          n.is<Param>() ? g.param(leaf_name(id), n.shapes[0]) : g.input(leaf_name(id), n.shapes[0]);
    };
    for (size_t i = 0; i < num_leaves_; ++i) add_leaf(leaves_[i]);
    for (const Value v : saved) map[v] = g.input(cat("saved_", v.node, "_", v.index), joint_.shape(v));
    for (size_t i = num_leaves_; i < leaves_.size(); ++i) add_leaf(leaves_[i]);
    // Backward nodes, and the forward nodes they need that nobody saved.
    std::vector<bool> emit(backward_);
    const auto nodes = joint_.nodes();
    for (size_t i = nodes.size(); i-- > 0;) {
      const Node& n = *nodes[i];
      if (n.op->traits.leaf) continue;
      if (!emit[n.id]) emit[n.id] = is_output(n.id) && !all_mapped(n, map);
      if (!emit[n.id]) continue;
      for (const Value v : n.inputs) {
        if (!map.contains(v)) emit[v.node] = true;
      }
    }
    for (const Node* n : nodes) {
      if (n->op->traits.leaf || !emit[n->id]) continue;
      if (!backward_[n->id] && !is_free(*n)) out.recomputed.push_back(cat("%", n->id, " ", n->op->name));
      ValueMap<Value> before;
      for (uint32_t r = 0; r < n->shapes.size(); ++r) {
        if (const auto it = map.find(n->result(r)); it != map.end()) before[n->result(r)] = it->second;
      }
      copy_node(g, *n, map);
      for (const auto& [v, kept] : before) map[v] = kept;  // a saved result stays the saved one
    }
    Values outputs;
    std::vector<std::string> names;
    const auto joint_names = joint_.output_names();
    for (size_t i = num_outputs_; i < joint_.outputs().size(); ++i) {
      outputs.push_back(map.at(joint_.outputs()[i]));
      names.push_back(joint_names[i]);
    }
    g.set_outputs(outputs, names);
    g.erase_dead();
  }

  bool is_output(NodeId id) const {
    for (size_t i = num_outputs_; i < joint_.outputs().size(); ++i) {
      if (joint_.outputs()[i].node == id) return true;
    }
    return false;
  }

  static bool all_mapped(const Node& n, const ValueMap<Value>& map) {
    for (uint32_t i = 0; i < n.shapes.size(); ++i) {
      if (!map.contains(n.result(i))) return false;
    }
    return true;
  }

  const Graph& joint_;
  std::vector<NodeId> leaves_;
  size_t num_leaves_, num_outputs_;
  std::vector<bool> backward_;
  Values needed_;
};

}  // namespace

Partition partition(const Graph& joint, size_t num_leaves, size_t num_outputs, SavePolicy policy,
                    std::optional<int64_t> budget) {
  return Partitioner(joint, num_leaves, num_outputs).run(policy, budget);
}

}  // namespace rlx::transform
