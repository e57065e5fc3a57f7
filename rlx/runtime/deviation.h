// How far two results lie apart, and how far they may.
#pragma once

#include <optional>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/literal.h"

namespace rlx {

/// How far apart results of one type may lie, relative to 1 + the largest finite magnitude of the expected tensor.
double default_tolerance(DType);

/// The same for every node of a graph: that of the least exact type on the way to its results, bodies included. What has no operands
/// is exact whatever its type; an f64 that was computed as f16 is no more exact than an f16. Integers and booleans have to be equal.
std::vector<double> default_tolerances(const ir::Graph&);  // by node id
/// Of the outputs, in order.
std::vector<double> output_tolerances(const ir::Graph&, std::optional<double> asked);

struct Deviation {
  double error =
      0;  // largest |a - b| / (1 + max |a|); infinite where one is NaN or infinite and the other is not
  int64_t element = 0;
  double a = 0, b = 0;
};
/// Of two literals of one type.
Deviation deviation(const Literal& a, const Literal& b);

}  // namespace rlx
