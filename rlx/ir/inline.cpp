#include "rlx/ir/inline.h"

namespace rlx::ir {

Values inline_graph(Graph& to, const Graph& from, std::span<const Value> leaves) {
  ValueMap<Value> map;
  size_t leaf = 0;
  for (const Node* n : from.nodes()) {
    if (n->op->traits.leaf) {
      RLX_CHECK(leaf < leaves.size(), "graph '", from.name(), "' has more leaves than values");
      map[n->result()] = leaves[leaf++];
      continue;
    }
    Values operands;
    for (const Value v : n->inputs) operands.push_back(map.at(v));
    const OriginRef before = to.current_origin();
    if (n->origin) to.set_current_origin(n->origin);
    const NodeId id = to.append(*n->op, n->attrs, operands, n->name);
    to.set_current_origin(before);
    for (uint32_t i = 0; i < n->shapes.size(); ++i) map[n->result(i)] = to.value(id, i);
  }
  RLX_CHECK(leaf == leaves.size(), "graph '", from.name(), "' has ", leaf, " leaves; ", leaves.size(),
            " values given");
  Values out;
  for (const Value v : from.outputs()) out.push_back(map.at(v));
  return out;
}

Exprs inline_graph(Graph& to, const Graph& from, const Exprs& leaves) {
  Exprs out;
  for (const Value v : inline_graph(to, from, Values(leaves.begin(), leaves.end()))) out.push_back({&to, v});
  return out;
}

}  // namespace rlx::ir
