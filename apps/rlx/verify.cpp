// rlx verify: reads a graph and tells every error in it.
#include <cstdio>

#include "apps/rlx/command.h"
#include "rlx/lang/graph_file.h"

namespace rlx::cli {

void add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "check a graph and tell every error in it");
  auto path = std::make_shared<std::string>();
  command->add_option("FILE", *path, "a .rlx text, its JSON form or a saved graph")->required();
  command->callback([path] {
    const auto errors = verify_graph_file(*path);
    for (const ir::VerifyError& e : errors) std::printf("%s: %s\n", e.rule.c_str(), cat(e).c_str());
    if (!errors.empty()) throw invalid(*path, ": ", errors.size(), errors.size() == 1 ? " error" : " errors");
    const ir::Graph g = read_graph(*path).graph;
    std::printf("%s: graph @%s is sound: %zu nodes, %zu outputs\n", path->c_str(), g.name().c_str(), g.len(),
                g.outputs().size());
  });
}

}  // namespace rlx::cli
