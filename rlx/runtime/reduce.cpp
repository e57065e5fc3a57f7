#include "rlx/runtime/reduce.h"

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/runtime/lockstep.h"

namespace rlx {
namespace {

class Reducer {
 public:
  Reducer(const ir::Graph& g, ir::NamedLiterals values, const StillWrong& wrong)
      : best_{g, std::move(values), 0}, wrong_(wrong) {}

  Reduced run() {
    if (!test(best_.graph, best_.values)) throw invalid("reduce: the graph does not go wrong to begin with");
    while (fewer_outputs() || cut_front() || cut_values() || skip_nodes()) {
    }
    return std::move(best_);
  }

 private:
  bool test(const ir::Graph& g, const ir::NamedLiterals& values) {
    ++best_.tests;
    try {
      return wrong_(g, values);
    } catch (const Error&) {
      return false;
    }
  }

  // Takes the graph, without what no output needs, when it is still wrong.
  bool take(ir::Graph g, ir::NamedLiterals values) {
    g.erase_dead();
    ir::Graph tidy(g.name());
    ir::Cloner copy(tidy);
    ir::NamedLiterals used;
    for (const ir::Node* n : g.nodes()) {
      if (n->op->traits.leaf && n->uses.empty()) continue;
      if (n->op->traits.leaf) used.emplace(ir::leaf_name(*n), values.at(ir::leaf_name(*n)));
      copy.copy(*n);
    }
    copy.copy_outputs(g);
    if (used.size() == tidy.len()) return false;  // nothing computes
    if (tidy.len() >= best_.graph.len() && tidy.outputs().size() >= best_.graph.outputs().size())
      return false;
    if (!test(tidy, used)) return false;
    best_.graph = std::move(tidy);
    best_.values = std::move(used);
    return true;
  }

  bool fewer_outputs() {
    const ir::Graph& g = best_.graph;
    for (size_t i = 0; g.outputs().size() > 1 && i < g.outputs().size(); ++i) {
      ir::Graph one = g;
      one.set_outputs({g.outputs()[i]}, {g.output_name(i)});
      if (take(std::move(one), best_.values)) return true;
    }
    return false;
  }

  // A copy of the best graph in which these values are inputs.
  bool cut(const ir::Values& at) {
    const std::vector<Literals> known = values_of_nodes(best_.graph, best_.values);
    ir::Graph g = best_.graph;
    ir::NamedLiterals values = best_.values;
    for (const ir::Value v : at) {
      std::string name = cat("cut", v.node, v.index > 0 ? cat("_", v.index) : "");
      while (g.find_leaf(name)) name += "_";
      g.replace(v, g.input(name, g.shape(v)));
      values.emplace(name, known[v.node][v.index]);
    }
    return take(std::move(g), std::move(values));
  }

  bool can_be_cut(const ir::Node& n) const {
    return !n.op->traits.leaf && !n.inputs.empty() && !n.is<ir::Constant>();
  }

  // Everything in front of a place in the order: half of the graph, then quarters, ..
  bool cut_front() {
    const auto nodes = best_.graph.nodes();
    for (size_t step = nodes.size() / 2; step > 0; step /= 2) {
      for (size_t place = nodes.size() - step; place >= step && place < nodes.size(); place -= step) {
        std::vector<bool> behind(best_.graph.next_id(), false);
        for (size_t i = place; i < nodes.size(); ++i) behind[nodes[i]->id] = true;
        ir::Values crossing;
        for (size_t i = 0; i < place; ++i) {
          for (uint32_t r = 0; r < nodes[i]->shapes.size(); ++r) {
            const ir::Value v = best_.graph.value(nodes[i]->id, r);
            if (can_be_cut(*nodes[i]) && is_read(v, behind)) crossing.push_back(v);
          }
        }
        if (!crossing.empty() && cut(crossing)) return true;
      }
    }
    return false;
  }

  bool is_read(ir::Value v, const std::vector<bool>& behind) const {
    for (const ir::Use& u : best_.graph.users(v.node)) {
      if (u.user == ir::kNoNode ? best_.graph.outputs()[u.operand] == v
                                : behind[u.user] && best_.graph.node(u.user).inputs[u.operand] == v)
        return true;
    }
    return false;
  }

  bool cut_values() {
    for (const ir::Node* n : best_.graph.nodes()) {
      if (!can_be_cut(*n)) continue;
      for (uint32_t r = 0; r < n->shapes.size(); ++r) {
        if (cut({best_.graph.value(n->id, r)})) return true;
      }
    }
    return false;
  }

  bool skip_nodes() {
    for (const ir::Node* n : best_.graph.nodes()) {
      if (n->shapes.size() != 1) continue;
      for (const ir::Value v : n->inputs) {
        if (best_.graph.shape(v) != n->shapes[0]) continue;
        ir::Graph g = best_.graph;
        g.replace(g.value(n->id), g.value(v.node, v.index));
        if (take(std::move(g), best_.values)) return true;
      }
    }
    return false;
  }

  Reduced best_;
  const StillWrong& wrong_;
};

}  // namespace

Reduced reduce_graph(const ir::Graph& g, const ir::NamedLiterals& values, const StillWrong& wrong) {
  return Reducer(g, values, wrong).run();
}

}  // namespace rlx
