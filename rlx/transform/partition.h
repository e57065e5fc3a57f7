// Cutting a joint forward and backward graph in two, and choosing what crosses the cut.
#pragma once

#include <optional>

#include "rlx/transform/walk.h"

namespace rlx::transform {

/// What of the forward part is kept for the backward part.
enum class SavePolicy {
  save_all,       // every forward value that the backward part reads; nothing runs twice
  save_matmuls,   // results of matmul-like operators; the rest is recomputed from them
  recompute_all,  // nothing but the leaves: the backward part runs the forward part again
  fit_bytes,      // the set within a byte budget that leaves least to run again
};

struct Partition {
  Graph forward;                         // leaves -> outputs, then saved values
  Graph backward;                        // leaves, saved values, cotangents -> gradients
  Shapes saved;                          // types of the saved values
  std::vector<std::string> saved_names;  // the joint graph's node, as "%7 softmax"
  std::vector<std::string> recomputed;   // forward nodes that the backward part runs again
  int64_t saved_bytes = 0;               // symbolic sizes count as 0
};

/// `joint` has `num_leaves` primal leaves first, then cotangents, and `num_outputs` primal outputs first,
/// then gradients. A node is forward when it depends on no cotangent.
Partition partition(const Graph& joint, size_t num_leaves, size_t num_outputs, SavePolicy policy,
                    std::optional<int64_t> budget = std::nullopt);

}  // namespace rlx::transform
