// rlx dot: a graph as a picture.
#include "apps/rlx/command.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/open_program.h"
#include "apps/rlx/output.h"
#include "rlx/base/file.h"
#include "rlx/io/file_format.h"
#include "rlx/lang/graph_file.h"
#include "rlx/lang/picture.h"
#include "rlx/models/model.h"

namespace rlx::cli {
namespace {

// Blocks stay as they are. A model is drawn as it runs over whole sequences.
ir::Graph graph_to_draw(const std::string& given) {
  const std::string path = cached_path(given);
  const io::Input input = io::Input::open(path);
  if (is_onnx(input)) return open_program(path).graph;
  if (!is_graph_file(input) && io::FormatTable::standard().recognise(input) != nullptr)
    return models::open_model(path).graph().graph;
  return read_graph(path).graph;
}

}  // namespace

void add_dot(Command app) {
  struct Arguments {
    std::string path, output;
    bool svg = false;
  };
  Command command = app.add_subcommand("dot", "draw a graph: the language of Graphviz, or SVG");
  auto a = std::make_shared<Arguments>();
  command
      .add_option("FILE", a->path,
                  "a .rlx text, its JSON form, a saved graph, an ONNX model or a language model")
      .required();
  command.add_flag("--svg", a->svg, "an SVG picture, laid out here");
  command.add_option("--output,-o", a->output, "write to this file instead of standard output");
  command.callback([a] {
    const ir::Graph g = graph_to_draw(a->path);
    const std::string picture = a->svg ? to_svg(g) : to_dot(g);
    a->output.empty() ? print(picture) : write_file(a->output, std::string_view(picture));
  });
}

}  // namespace rlx::cli
