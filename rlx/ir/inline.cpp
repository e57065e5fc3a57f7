#include "rlx/ir/inline.h"

namespace rlx::ir {

Values inline_graph(Graph& to, const Graph& from, std::span<const Value> leaves) {
  from.check_order();
  to.assume_sizes_of(from);
  Cloner copy(to);
  size_t leaf = 0;
  for (const Node* n : from.nodes()) {
    if (n->op->traits.leaf) {
      RLX_CHECK(leaf < leaves.size(), "graph '", from.name(), "' has more leaves than values");
      copy.set(n->result(), leaves[leaf++]);
    } else {
      copy.copy(*n);
    }
  }
  RLX_CHECK(leaf == leaves.size(), "graph '", from.name(), "' has ", leaf, " leaves; ", leaves.size(),
            " values given");
  return copy.at(from.outputs());
}

Exprs inline_graph(Graph& to, const Graph& from, const Exprs& leaves) {
  Exprs out;
  for (const Value v : inline_graph(to, from, Values(leaves.begin(), leaves.end()))) out.push_back({&to, v});
  return out;
}

}  // namespace rlx::ir
