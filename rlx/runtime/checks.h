// What is wrong with the values and places of a run, all of it.
#pragma once

#include "rlx/runtime/core.h"

namespace rlx::runtime {

bool same_type(const TensorView&, const Shape&);
bool same_type(const TensorView&, const TensorView&);

/// What is not there though it has elements.
inline bool lacks_memory(const TensorView& v) { return v.data == nullptr && v.elements() > 0; }

/// Inputs that are missing, unknown, given twice, of a wrong type, or do not agree on a size. `states`: their types now; what has no size yet
/// must get one from the inputs.
std::vector<std::string> input_problems(const Core&, std::span<const Input>, std::span<const Shape> states);

/// Why states cannot have these sizes together; empty when they can.
std::string state_problem(const Core&, std::span<const Shape> states);

/// A result or a state of the object that runs.
struct OwnMemory {
  std::string name;
  Extent extent;
  bool is_state = false;
};

/// Inputs that lie in memory which the run writes while it reads them.
std::vector<std::string> borrowed_problems(std::span<const Input>, std::span<const OwnMemory>);

/// Places that are too few or too many, have no memory or a wrong type, or overlap something. `types`: of results; sizes may be open.
std::vector<std::string> place_problems(const Core&, std::span<const TensorView> places,
                                        std::span<const Shape> types, std::span<const Input> inputs,
                                        std::span<const Extent> states);

}  // namespace rlx::runtime
