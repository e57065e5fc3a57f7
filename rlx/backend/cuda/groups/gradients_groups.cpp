#include <algorithm>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/shape/concat.h"

namespace rlx::cuda {

// Gradients that nobody but the concatenation reads.
std::vector<Group> gradients_groups(const ir::Graph& g) {
  std::vector<Group> out;
  for (const ir::Node* n : g.nodes()) {
    if (!n->is<ops::Concat>() || n->inputs.size() != 3) continue;
    const ir::Node& gradients = g.node(n->inputs[0]);
    if (!gradients.is<ops::AttentionBackward>() || gradients.uses.size() != 3) continue;
    const bool only = std::all_of(gradients.uses.begin(), gradients.uses.end(),
                                  [&](const ir::Use& u) { return u.user == n->id; });
    if (only) out.push_back({kGradientsGroup, {&gradients, n}});
  }
  return out;
}

}  // namespace rlx::cuda
