// Training data in memory: tensors whose first axis counts batches, handed out as borrowed slices.
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::train {

class Batches {
 public:
  /// `data` has every input of the loss graph but those in `states`, with one axis more in front. Integers become the graph's
  /// integers and floats its floats, where no integer changes. All that is wrong is told in one error.
  Batches(const ir::Graph& loss, const NamedLiterals& data, int64_t accumulate = 1,
          const std::vector<std::string>& states = {});

  /// Steps until every batch was used.
  int64_t steps() const { return (count_ + per_step_ - 1) / per_step_; }
  /// The inputs of a step: batches step * accumulate and on, the first ones again after the last. Valid until the next call.
  std::span<const Input> at(int64_t step);

 private:
  struct Tensor {
    std::string name;
    Literal all;
    TensorView first;               // of step 0
    std::vector<std::byte> joined;  // of a step that goes on at the beginning
  };
  std::vector<Tensor> tensors_;
  std::vector<Input> inputs_;
  int64_t count_ = 0, per_step_ = 1;
};

}  // namespace rlx::train
