#include "rlx/lang/program.h"

#include "rlx/ir/leaves.h"
#include "rlx/lang/graph_file.h"
#include "rlx/lang/module.h"

namespace rlx {
namespace {

Graph lowered(GraphFile& file) {
  if (file.stage == "hir direct") return lower(Hir{std::move(file.graph), FusionPolicy::direct}).graph;
  if (file.stage == "hir fusable") return lower(Hir{std::move(file.graph), FusionPolicy::fusable}).graph;
  return std::move(file.graph);
}

}  // namespace

Program Program::open(const std::string& path) {
  GraphFile file = read_graph(path);
  NamedLiterals weights = std::move(file.weights);
  return {lowered(file), std::move(weights)};
}

void Program::save(const std::string& path) const { graph.save(path, weights); }

std::vector<std::string> Program::missing_weights() const {
  std::vector<std::string> out;
  for (const NodeId id : graph.params()) {
    const std::string& name = graph.node(id).as<ir::Param>().name;
    if (!weights.contains(name)) out.push_back(name);
  }
  return out;
}

NamedLiterals Program::interpret(const NamedLiterals& inputs) const {
  NamedLiterals all = inputs;
  all.insert(weights.begin(), weights.end());
  return graph.interpret(all);
}

}  // namespace rlx
