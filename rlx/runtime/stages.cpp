#include "rlx/runtime/stages.h"

namespace rlx::runtime {

Stages compile_in_stages(const ir::Graph& g, const CompileOptions& options) {
  Stages out;
  out.stages.push_back({"input", g});
  const auto keep = [&out](std::string_view pass, const ir::Graph& after) {
    out.stages.push_back({std::string(pass), after});
  };
  optimise(g, options, keep);
  Core core(g, {}, options);
  if (core.prologue()) {
    out.stages.push_back({"prologue", core.prologue()->graph()});
    out.stages.push_back({"main", core.graph()});
  }
  if (core.graph().has_dynamic_dims()) return out;
  std::vector<Shape> leaves;
  for (const auto& leaf : core.leaves()) leaves.push_back(leaf.shape);
  core.program_graph(leaves, keep);
  const Core::Built built = core.build(leaves);
  out.report = make_report(core, *built.program, built.remarks);
  return out;
}

}  // namespace rlx::runtime
