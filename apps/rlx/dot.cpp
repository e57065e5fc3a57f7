// rlx dot: a graph as a picture.
#include "apps/rlx/bound_graph.h"
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/file.h"
#include "rlx/lang/graph_file.h"
#include "rlx/lang/picture.h"

namespace rlx::cli {

void add_dot(Command app) {
  struct Arguments {
    std::string path, output;
    bool svg = false;
  };
  Command command = app.add_subcommand("dot", "draw a graph: the language of Graphviz, or SVG");
  auto a = std::make_shared<Arguments>();
  command.add_option("FILE", a->path, "a .rlx text, its JSON form or a saved graph").required();
  command.add_flag("--svg", a->svg, "an SVG picture, laid out here");
  command.add_option("--output,-o", a->output, "write to this file instead of standard output");
  command.callback([a] {
    const ir::Graph g = read_graph(a->path).graph;
    const std::string picture = a->svg ? to_svg(g) : to_dot(g);
    a->output.empty() ? print(picture) : write_file(a->output, std::string_view(picture));
  });
}

}  // namespace rlx::cli
