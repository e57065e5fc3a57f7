#include "rlx/runtime/pipeline.h"

#include "rlx/passes/algebra.h"
#include "rlx/passes/cse.h"
#include "rlx/passes/fold.h"
#include "rlx/passes/legalise.h"

namespace rlx::runtime {
namespace {

ir::Graph without_dead(ir::Graph g) {
  g.erase_dead();
  return g;
}

struct Pass {
  std::string_view name;
  ir::Graph (*run)(const ir::Graph&, const ir::Target*);
};

// On any sizes, once per compiled graph.
constexpr Pass kGeneral[] = {
    {"fold_constants", [](const ir::Graph& g, const ir::Target*) { return passes::fold_constants(g).graph; }},
    {"simplify", [](const ir::Graph& g, const ir::Target*) { return passes::simplify(g).graph; }},
    {"cse", [](const ir::Graph& g, const ir::Target*) { return passes::cse(g).graph; }},
    {"dce", [](const ir::Graph& g, const ir::Target*) { return without_dead(g); }},
};

// On known sizes, for one target.
constexpr Pass kSized[] = {
    {"legalise", [](const ir::Graph& g, const ir::Target* t) { return passes::legalise(g, *t).graph; }},
    // Decompositions bring fills, views and repeated parts.
    {"fold_constants", [](const ir::Graph& g, const ir::Target*) { return passes::fold_constants(g).graph; }},
    {"simplify", [](const ir::Graph& g, const ir::Target*) { return passes::simplify(g).graph; }},
    {"cse", [](const ir::Graph& g, const ir::Target*) { return passes::cse(g).graph; }},
    {"dce", [](const ir::Graph& g, const ir::Target*) { return without_dead(g); }},
};

ir::Graph run(std::span<const Pass> list, ir::Graph g, const ir::Target* target) {
  for (const Pass& pass : list) {
    g = pass.run(g, target);
#ifndef NDEBUG
    if (const auto wrong = g.verify(); !wrong.empty())
      RLX_CHECK(false, "after ", pass.name, ": ", wrong.front());
#endif
  }
  return g;
}

}  // namespace

ir::Graph optimise(const ir::Graph& graph, const CompileOptions& options) {
  return options.optimise ? run(kGeneral, graph, nullptr) : graph;
}

ir::Graph specialise(const ir::Graph& graph, const ir::Target& target, const CompileOptions& options,
                     std::vector<passes::Remark>& remarks) {
  if (!options.optimise) return graph;
  ir::Graph g = run(kSized, graph, &target);
  if (!options.fuse) return g;
  passes::Fused fused = passes::fuse(g, target);
  remarks.insert(remarks.end(), fused.remarks.begin(), fused.remarks.end());
  return std::move(fused.graph);
}

}  // namespace rlx::runtime
