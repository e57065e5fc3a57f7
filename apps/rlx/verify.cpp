// rlx verify: reads a graph and tells every error in it.
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/lang/graph_file.h"

namespace rlx::cli {

void add_verify(Command app) {
  Command command = app.add_subcommand("verify", "check a graph and tell every error in it");
  auto path = std::make_shared<std::string>();
  command.add_option("FILE", *path, "a .rlx text, its JSON form or a saved graph").required();
  command.callback([path] {
    const auto errors = verify_graph_file(*path);
    for (const ir::VerifyError& e : errors) print(cat(e.rule, ": ", e, "\n"));
    if (!errors.empty()) throw invalid(*path, ": ", errors.size(), errors.size() == 1 ? " error" : " errors");
    const ir::Graph g = read_graph(*path).graph;
    const size_t outputs = g.outputs().size();
    print(cat(*path, ": graph @", g.name(), " is sound: ", g.len(), g.len() == 1 ? " node, " : " nodes, ",
              outputs, outputs == 1 ? " output\n" : " outputs\n"));
  });
}

}  // namespace rlx::cli
