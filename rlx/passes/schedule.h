// The order of nodes that keeps the fewest bytes in use.
#pragma once

#include "rlx/ir/graph.h"

namespace rlx::passes {

struct Scheduled {
  ir::Graph graph;
  int64_t bytes_before = 0, bytes_after = 0;  // largest sum of values in use
};

/// The same graph in another order, when that lowers the largest sum of bytes in use at one node.
///   a = exp(x); b = exp(y); s = sum(a); t = sum(b)   =>   a = exp(x); s = sum(a); b = exp(y); t = sum(b)
/// Of the nodes whose operands are there, the one goes next that leaves the least in use; of equal ones the first. Views are part of what they
/// view. The order found is taken only if its peak is lower. Sizes must be static.
Scheduled schedule(const ir::Graph&);

/// The largest sum of bytes of results in use at one node, in the order of the graph; leaves and constants do not count.
int64_t peak_bytes(const ir::Graph&);

}  // namespace rlx::passes
