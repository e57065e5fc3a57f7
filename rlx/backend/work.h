// The work of nodes, for plans and reports.
#pragma once

#include <span>

#include "rlx/ir/graph.h"

namespace rlx::backend {

/// Operations as the records of operators tell them. A node with bodies does what they do: those of a loop of known length so
/// many times, of branches the dearest, of other loops once. A convolution counts every place of its window, inside of x or not.
double operations_of(const ir::Node&, std::span<const Shape> in);
double operations_of(const ir::Graph&);

/// With the bytes of all operands and results.
ir::Cost work_of(const ir::Node&, std::span<const Shape> in);

}  // namespace rlx::backend
