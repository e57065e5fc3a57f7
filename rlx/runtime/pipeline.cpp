#include "rlx/runtime/pipeline.h"

namespace rlx::runtime {

ir::Graph optimise(const ir::Graph& graph, const ir::Target&, const CompileOptions& options) {
  ir::Graph g = graph;
  if (!options.optimise) return g;
  g.erase_dead();
  return g;
}

}  // namespace rlx::runtime
