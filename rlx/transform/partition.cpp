#include "rlx/transform/partition.h"

#include <set>
#include <unordered_set>

#include "rlx/ir/clone.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/slice.h"
#include "rlx/transform/save_choice.h"

namespace rlx::transform {
namespace {

bool is_free(const Node& n) { return n.inputs.empty() && !n.op->traits.leaf; }

// A view of no fewer elements than what it shows: to keep the operand instead costs no byte more, and nothing where it is a leaf.
bool shows_all(const Node& n) { return n.op->view != nullptr && !n.is<ops::Narrow>() && !n.is<ops::Slice>(); }

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

  // Forward values that the backward part reads; constants are made again where they are needed, and so are views: a step of a
  // loop would stack a matrix that never changes, turned, once for every step.
  void need(Value v) {
    while (shows_all(joint_.node(v))) v = joint_.node(v).inputs[0];
    const Node& n = joint_.node(v);
    if (is_backward(v.node) || n.op->traits.leaf || is_free(n)) return;
    if (seen_.insert(v).second) needed_.push_back(v);
  }

  void build_forward(const Values& saved, Graph& g) const {
    g.set_name(joint_.name());
    g.assume_sizes_of(joint_);
    ir::Cloner copy(g);
    for (size_t i = 0; i < num_leaves_; ++i) copy.copy(joint_.node(leaves_[i]));
    for (const Node* n : joint_.nodes()) {
      if (!n->op->traits.leaf && !backward_[n->id]) copy.copy(*n);
    }
    Values outputs;
    std::vector<std::string> names;
    const auto joint_names = joint_.output_names();
    for (size_t i = 0; i < num_outputs_; ++i) {
      outputs.push_back(copy.at(joint_.outputs()[i]));
      names.push_back(joint_names[i]);
    }
    for (const Value v : saved) {
      outputs.push_back(copy.at(v));
      names.push_back(cat("saved_", v.node, "_", v.index));
    }
    g.set_outputs(outputs, names);
    g.erase_dead();
  }

  void build_backward(const Values& saved, Partition& out) const {
    Graph& g = out.backward;
    g.set_name(joint_.name() + "_backward");
    g.assume_sizes_of(joint_);
    ir::Cloner copy(g);
    for (size_t i = 0; i < num_leaves_; ++i) copy.copy(joint_.node(leaves_[i]));
    for (const Value v : saved) copy.set(v, g.input(cat("saved_", v.node, "_", v.index), joint_.shape(v)));
    for (size_t i = num_leaves_; i < leaves_.size(); ++i) copy.copy(joint_.node(leaves_[i]));
    // Backward nodes, and the forward nodes they need that nobody saved.
    std::vector<bool> emit(backward_);
    const auto nodes = joint_.nodes();
    for (size_t i = nodes.size(); i-- > 0;) {
      const Node& n = *nodes[i];
      if (n.op->traits.leaf) continue;
      if (!emit[n.id]) emit[n.id] = is_output(n.id) && !all_copied(n, copy);
      if (!emit[n.id]) continue;
      for (const Value v : n.inputs) {
        if (!copy.has(v)) emit[v.node] = true;
      }
    }
    for (const Node* n : nodes) {
      if (n->op->traits.leaf || !emit[n->id]) continue;
      if (!backward_[n->id] && !is_free(*n) && !shows_all(*n))
        out.recomputed.push_back(cat("%", n->id, " ", n->op->name));
      std::vector<std::pair<Value, Value>> kept;  // a saved result stays the saved one
      for (uint32_t r = 0; r < n->shapes.size(); ++r) {
        if (copy.has(n->result(r))) kept.push_back({n->result(r), copy.at(n->result(r))});
      }
      copy.copy(*n);
      for (const auto& [v, saved_copy] : kept) copy.set(v, saved_copy);
    }
    Values outputs;
    std::vector<std::string> names;
    const auto joint_names = joint_.output_names();
    for (size_t i = num_outputs_; i < joint_.outputs().size(); ++i) {
      outputs.push_back(copy.at(joint_.outputs()[i]));
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

  static bool all_copied(const Node& n, const ir::Cloner& copy) {
    for (uint32_t i = 0; i < n.shapes.size(); ++i) {
      if (!copy.has(n.result(i))) return false;
    }
    return true;
  }

  const Graph& joint_;
  std::vector<NodeId> leaves_;
  size_t num_leaves_, num_outputs_;
  std::vector<bool> backward_;
  Values needed_;
  std::unordered_set<Value, ir::ValueHash> seen_;
};

}  // namespace

Partition partition(const Graph& joint, size_t num_leaves, size_t num_outputs, SavePolicy policy,
                    std::optional<int64_t> budget) {
  return Partitioner(joint, num_leaves, num_outputs).run(policy, budget);
}

}  // namespace rlx::transform
