#include "rlx/lang/program.h"

#include "rlx/ir/leaves.h"
#include "rlx/lang/graph_file.h"
#include "rlx/lang/module.h"

namespace rlx {

Program Program::open(const std::string& path) {
  GraphFile file = read_graph(path);
  const FusionPolicy policy = file.stage == "hir fusable" ? FusionPolicy::fusable : FusionPolicy::direct;
  return {lower(file.graph, policy), std::move(file.weights)};
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
