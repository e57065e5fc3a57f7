// Values that keep their type when others are stored in 16 bits.
#pragma once

#include <map>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::passes {

/// What is an index, an angle or says how often a loop runs, and whatever it is made of, through loops and branches.
struct ExactValues {
  std::vector<bool> nodes;                               // by id: some result
  std::vector<bool> leaves;                              // in the order of leaves()
  std::map<ir::NodeId, std::vector<bool>> body_outputs;  // what the bodies of a node must give exactly
};

/// `outputs`: which outputs of the graph somebody outside wants exactly; none listed: none.
ExactValues exact_values(const ir::Graph&, const std::vector<bool>& outputs = {});

/// Whether an integer may stand in the place of this f32 operand without changing the results: operators take whole numbers in
/// f32 there, and 16 bits could not hold them.
bool is_index(const ir::Graph&, const ir::Node&, size_t operand);

/// Whether this operand picks places, by whole numbers of an integer type or of f32: a place that is not there is refused when the
/// node runs.
bool picks_places(const ir::Graph&, const ir::Node&, size_t operand);

/// Result types of the node on operands of these types.
Shapes infer_types(const ir::Node&, const Shapes& in);

}  // namespace rlx::passes
