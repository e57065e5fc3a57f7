// Neighbouring operators that the target runs as one piece.
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/ir/target.h"
#include "rlx/passes/remark.h"

namespace rlx::passes {

struct Fused {
  ir::Graph graph;
  size_t pieces = 0;            // `fused` nodes made
  std::vector<Remark> remarks;  // each of the last operator of a piece
};

/// Groups elementwise operators, broadcasts and reductions into `fused` nodes; a product with what follows it, a sum with its norm.
///   h = matmul(x, w); a = add(h, b); y = relu(a)   =>   h = matmul(x, w); y = fused(h, b){relu(add(x0, x1))}
///   s = add(x, r); y = rms_norm(s, g)              =>   s, y = fused(x, r, g){s = add(x0, x1); return s, rms_norm(s, x2)}
/// A value joins the piece that uses it when nobody outside needs it. The target is asked before a piece is made; a
/// piece that it refuses is left as it was, with the reason as a remark. Fills and constants of one value are copied into each piece that
/// reads them. Sizes must be static.
Fused fuse(ir::Graph, const ir::Target&);

}  // namespace rlx::passes
