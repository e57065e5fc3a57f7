#include "rlx/lang/graph.h"

#include <ostream>

#include "rlx/ir/json.h"
#include "rlx/ir/text.h"
#include "rlx/lang/graph_file.h"
#include "rlx/lang/inspect.h"

namespace rlx {

std::vector<ir::Node*> Graph::nodes_mut() {
  std::vector<ir::Node*> out;
  for (const NodeId id : topo_order()) out.push_back(&node_mut(id));
  return out;
}

std::string Graph::to_text() const { return ir::to_text(*this); }
Graph Graph::parse(std::string_view text, const ir::OpTable& ops) { return ir::parse_graph(text, ops); }
std::string Graph::to_json(int indent) const { return ir::to_json(*this, indent); }
Graph Graph::from_json(std::string_view text, const ir::OpTable& ops) {
  return ir::graph_from_json(text, ops);
}

void Graph::save(const std::string& path, const NamedLiterals& weights) const {
  save_graph({*this, weights, "mir"}, path);
}
Graph Graph::load(const std::string& path, const ir::OpTable& ops) { return load_graph(path, ops).graph; }

std::string Graph::inspect() const { return rlx::inspect(*this); }

std::ostream& operator<<(std::ostream& out, const Graph& g) { return out << g.to_text(); }

}  // namespace rlx
