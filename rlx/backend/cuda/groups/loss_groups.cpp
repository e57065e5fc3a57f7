#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/loss/cross_entropy.h"

namespace rlx::cuda {
namespace {

bool is_loss(const ir::Node& n) {
  return n.is<ops::SoftmaxCrossEntropyWithLogits>() || n.is<ops::SoftmaxCrossEntropyBackward>();
}

// The cast of a gradient, where nobody else reads it.
const ir::Node* cast_behind(const ir::Graph& g, const ir::Node& gradient) {
  if (gradient.uses.size() != 1 || gradient.uses[0].user == ir::kNoNode) return nullptr;
  const ir::Node& n = g.node(gradient.uses[0].user);
  return n.is<ops::Cast>() ? &n : nullptr;
}

// Losses and gradients of the same logits and labels.
Group group_of(const ir::Graph& g, const ir::Node& first) {
  Group out{kLossGroup, {}};
  const ir::Node& logits = g.node(first.inputs[0]);
  bool only_losses = true;
  for (const ir::Use& u : logits.uses) {
    const ir::Node* const n = u.user == ir::kNoNode ? nullptr : &g.node(u.user);
    if (!n || !is_loss(*n) || n->inputs[0] != first.inputs[0] || n->inputs[1] != first.inputs[1]) {
      only_losses = false;
      continue;
    }
    out.nodes.push_back(n);
    if (!n->is<ops::SoftmaxCrossEntropyBackward>()) continue;
    if (const ir::Node* cast = cast_behind(g, *n)) out.nodes.push_back(cast);
  }
  if (only_losses && logits.is<ops::Cast>()) out.nodes.push_back(&logits);
  return out;
}

}  // namespace

std::vector<Group> loss_groups(const ir::Graph& g) {
  std::vector<Group> out;
  for (const ir::Node* n : g.nodes()) {
    if (!is_loss(*n)) continue;
    if (Group whole = group_of(g, *n); whole.nodes.size() > 1) out.push_back(std::move(whole));
    // Where the loss decides about the gradient, the two are apart.
    if (const ir::Node* cast = n->is<ops::SoftmaxCrossEntropyBackward>() ? cast_behind(g, *n) : nullptr)
      out.push_back({kLossGroup, {n, cast}});
  }
  return out;
}

}  // namespace rlx::cuda
