// The part of a step graph that gives gradients: the loss graph differentiated, over one batch or several.
#pragma once

#include <map>

#include "rlx/lang/graph.h"
#include "rlx/lang/tensor.h"
#include "rlx/lang/traced_result.h"

namespace rlx::train {

/// What the loss graph is and what is asked of it.
struct LossGraph {
  ir::Graph graph;
  std::string loss;                  // its output
  std::vector<std::string> trained;  // differentiate by these
  std::vector<std::string> carried;  // inputs that are states of the model,
  std::vector<std::string> left;     // and the outputs that become them
};

/// Leaves of the loss graph by name, as tensors of the step graph. Batches of several carry their number in front.
using Leaves = std::map<std::string, Tensor, std::less<>>;

struct Gradients {
  NamedTensors outputs;  // of the loss graph, without those in `left`
  Tensors gradients;     // in the order of `trained`
  Tensors carried;       // next values, in the order of `left`
};

/// On one batch. The loss is multiplied by `scale` for the gradients, unless it is empty.
Gradients gradients_of(Graph& to, const LossGraph&, const Leaves&, const Tensor& scale);

/// On `batches` of them, one after the other in a loop: gradients and scalar outputs are means, other outputs are stacked.
Gradients mean_gradients_of(Graph& to, const LossGraph&, const Leaves&, const Tensor& scale, int64_t batches);

/// Forward and backward as two graphs with at most `budget` bytes between them.
struct SplitGradients {
  Graph forward;  // batch and trained weights as inputs, others as params -> outputs, then saved values
  std::vector<std::string> saved;  // names of those outputs, and of the inputs made of them
  int64_t saved_bytes = 0;
  Tensors gradients;
};
/// Adds the backward part to `to`, with inputs for the saved values. What is computed again comes right before the first that
/// needs it, so that it does not wait in memory.
SplitGradients split_gradients_of(Graph& to, const LossGraph&, const Leaves&, const Tensor& scale,
                                  int64_t budget);

}  // namespace rlx::train
