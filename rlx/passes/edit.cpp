#include "rlx/passes/edit.h"

#include <unordered_map>

#include "rlx/ir/bodies.h"

namespace rlx::passes {
namespace {

class Editor {
 public:
  explicit Editor(const EditRule& rule) : rule_(rule) {}

  size_t run(ir::Graph& g) {
    // Names that outputs have from their nodes, before others take their places.
    std::vector<std::string> names;
    size_t changes = 0;
    for (const ir::NodeId id : g.topo_order()) {
      if (g.node(id).op->traits.leaf) continue;
      edit_bodies(g, id, changes);
      const ir::NodeId first = g.next_id();
      const auto results = rule_(g, g.node(id));
      if (!results) continue;
      if (names.empty()) names = g.output_names();
      ++changes;
      replace(g, id, *results, first);
    }
    if (!names.empty()) g.set_outputs(g.outputs(), names);
    return changes;
  }

 private:
  static void replace(ir::Graph& g, ir::NodeId id, const ir::Values& results, ir::NodeId first_new) {
    const ir::Node& n = g.node(id);
    RLX_CHECK(results.size() == n.shapes.size(), n.op->name, " has ", n.shapes.size(), " results; ",
              results.size(), " given");
    // What was made in place of a named node takes its name.
    const ir::NodeId made = results.size() == 1 ? results[0].node : ir::kNoNode;
    if (made != ir::kNoNode && made >= first_new && g.node(made).name.empty()) g.set_name(made, n.name);
    for (uint32_t i = 0; i < results.size(); ++i) g.replace(g.value(id, i), results[i]);
    g.erase(id);
  }

  void edit_bodies(ir::Graph& g, ir::NodeId id, size_t& changes) {
    const ir::Node& n = g.node(id);
    const ir::AttrsRef attrs = ir::map_bodies(
        n, [&](const ir::FieldInfo&, const ir::GraphRef& body) { return edited(body, changes); });
    if (attrs != n.attrs) g.node_mut(id).attrs = attrs;
  }

  ir::GraphRef edited(const ir::GraphRef& body, size_t& changes) {
    const auto [it, is_new] = done_.try_emplace(body.get(), body, 0);
    auto& [result, count] = it->second;  // stays in place when the table grows
    if (is_new) {
      ir::Graph inner = *body;
      count = run(inner);
      if (count > 0) {
        before_.push_back(body);
        result = std::make_shared<const ir::Graph>(std::move(inner));
      }
    }
    changes += count;
    return result;
  }

  const EditRule& rule_;
  std::unordered_map<const ir::Graph*, std::pair<ir::GraphRef, size_t>> done_;
  std::vector<ir::GraphRef> before_;  // bodies that nobody else may hold any more: their addresses stay taken
};

}  // namespace

ir::Rewritten edit(ir::Graph graph, const EditRule& rule) {
  const size_t changes = Editor(rule).run(graph);
  return {std::move(graph), changes};
}

}  // namespace rlx::passes
