// rlx fmt: a graph in its canonical text form.
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/file.h"
#include "rlx/ir/json.h"
#include "rlx/ir/text.h"
#include "rlx/lang/graph_file.h"

namespace rlx::cli {

void add_fmt(Command app) {
  struct Options {
    std::string path;
    bool in_place = false, json = false;
  };
  Command command = app.add_subcommand("fmt", "write a graph in its canonical text form");
  auto o = std::make_shared<Options>();
  command.add_option("FILE", o->path, "a .rlx text, its JSON form or a saved graph").required();
  const Argument in_place =
      command.add_flag("--in-place,-i", o->in_place, "change the file instead of printing");
  command.add_flag("--json", o->json, "the JSON form").excludes(in_place);
  command.callback([o] {
    const ir::Module m = read_module(o->path);
    if (o->in_place) return write_file(o->path, ir::to_text(m));
    print(o->json ? ir::to_json(m.graph, 2) + "\n" : ir::to_text(m));
  });
}

}  // namespace rlx::cli
