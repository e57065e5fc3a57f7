// The order of nodes that keeps the fewest bytes in use.
#pragma once

#include <span>

#include "rlx/ir/graph.h"

namespace rlx::passes {

/// A leaf whose memory becomes that of an output: a state and its next value.
struct StateUpdate {
  ir::Value state, next;
};

struct Scheduled {
  ir::Graph graph;
  int64_t bytes_before = 0, bytes_after = 0;  // largest sum of values in use
};

/// The same graph in another order, when that lowers the largest sum of bytes in use at one node.
///   a = exp(x); b = exp(y); s = sum(a); t = sum(b)   =>   a = exp(x); s = sum(a); b = exp(y); t = sum(b)
/// Of the nodes whose operands are there, the one goes next that leaves the least in use; of equal ones the first. Views are part of what they
/// view. A node that makes the next value of a state waits for the other readers of that state, where it can: else the
/// new value needs memory of its own and a copy. The order found is taken if fewer updates come early, or as many and its
/// peak is lower. Sizes must be static.
Scheduled schedule(ir::Graph, std::span<const StateUpdate> = {});

/// Updates that come before some other reader of the old state, in the order of the graph.
int early_updates(const ir::Graph&, std::span<const StateUpdate>);

/// The largest sum of bytes of results in use at one node, in the order of the graph; leaves and constants do not count.
int64_t peak_bytes(const ir::Graph&);

}  // namespace rlx::passes
