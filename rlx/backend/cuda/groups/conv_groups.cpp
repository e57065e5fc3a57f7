#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ops/conv/conv.h"

namespace rlx::cuda {

std::vector<Group> conv_groups(const ir::Graph& g) {
  const std::vector<size_t> order = order_of(g);
  std::vector<Group> out;
  for (const ir::Node* n : g.nodes()) {
    if (!n->is<ops::Conv>()) continue;
    if (const ir::Node* elements = elements_behind(g, order, order[n->id], {n}))
      out.push_back({kConvGroup, {n, elements}});
  }
  return out;
}

}  // namespace rlx::cuda
