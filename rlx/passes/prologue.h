// What depends on weights alone, cut off to run once.
#pragma once

#include "rlx/ir/graph.h"

namespace rlx::passes {

/// A graph cut in two. `prologue` has the params of the graph as leaves and gives the values that are named in `made`; `main` has them as
/// params, beside those of the graph's params that it still reads.
///   wt = transpose(w); s = mul(wt, 2); y = matmul(x, s)   =>   prologue: s from w;   main: y = matmul(x, param s)
struct Split {
  ir::Graph prologue, main;
  std::vector<std::string> made;  // outputs of the prologue, names of params of main
                                  // none: there is nothing to cut off, and the graphs may be empty

  bool empty() const { return made.empty(); }
};

/// Views of weights stay where they are: kernels read them as they lie. Values of random operators do not depend on the run
/// unless their keys do, so they may be cut off too.
Split split_prologue(const ir::Graph&);

}  // namespace rlx::passes
