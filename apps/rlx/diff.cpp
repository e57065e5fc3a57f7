// rlx diff: two devices on one graph, to the first node whose numbers part.

#include "apps/rlx/bound_graph.h"
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/file.h"
#include "rlx/base/json_write.h"
#include "rlx/io/literal.h"
#include "rlx/io/npy.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/devices.h"
#include "rlx/runtime/lockstep.h"

namespace rlx::cli {
namespace {

struct DiffArguments {
  GraphArguments graph;
  LockstepOptions lockstep;
  std::string output_dir;
  bool all = false, json = false;
};

// A graph and its values, so that `rlx run DIR/parting.rlx --input DIR/parting.npz` shows the case.
void write_case(const std::string& folder, const Parting& p) {
  make_folders(folder);
  write_file(folder + "/parting.rlx", ir::to_text(p.graph));
  std::vector<io::TensorView> tensors;
  for (const auto& [name, value] : p.values) tensors.push_back(io::to_view(name, value));
  io::write_npz(folder + "/parting.npz", tensors);
}

void print_json(const LockstepResult& r, const LockstepOptions& o) {
  JsonWriter out({.indent = 2});
  out.begin_object();
  out.member("a", o.a);
  out.member("b", o.b);
  out.member("agree", !r.parting);
  out.key("nodes");
  out.begin_array();
  for (const auto& n : r.nodes) {
    out.begin_object();
    out.member("node", n.node);
    out.member("error", n.error);
    out.end_object();
  }
  out.end_array();
  out.member("whole", r.whole);
  out.key("parting");
  if (r.parting) {
    out.begin_object();
    out.member("where", r.parting->where);
    out.member("text", r.parting->text);
    out.member("graph", ir::to_text(r.parting->graph));
    out.end_object();
  } else {
    out.null();
  }
  out.end_object();
  print(out.take() + "\n");
}

void print_text(const LockstepResult& r, const DiffArguments& a) {
  double worst = 0;
  for (const auto& n : r.nodes) {
    worst = std::max(worst, n.error);
    if (a.all) print(cat(n.node, ": ", n.error, "\n"));
  }
  if (!r.parting) {
    print(cat(a.lockstep.a, " and ", a.lockstep.b, " agree: ", r.nodes.size(), " nodes, largest error ",
              worst, "; as a whole ", r.whole, "\n"));
    return;
  }
  print(cat("// ", a.lockstep.a, " and ", a.lockstep.b, " part at ", r.parting->where, "\n// ",
            r.parting->text, "\n", ir::to_text(r.parting->graph)));
}

void run(const DiffArguments& a) {
  device_named(a.lockstep.a);
  device_named(a.lockstep.b);
  const BoundGraph bound = read_bound_graph(a.graph, "diff");
  if (const auto symbols = bound.graph.dynamic_symbols(); !symbols.empty())
    throw invalid("diff: sizes of ", join(symbols), " are not known; give them with --bind SYMBOL=N");
  const LockstepResult result = run_in_lockstep(bound.graph, bound.leaves(), a.lockstep);
  a.json ? print_json(result, a.lockstep) : print_text(result, a);
  if (!result.parting) return;
  if (!a.output_dir.empty()) write_case(a.output_dir, *result.parting);
  throw invalid("diff: ", a.lockstep.a, " and ", a.lockstep.b, " part at ", result.parting->where);
}

}  // namespace

void add_diff(Command app) {
  Command command =
      app.add_subcommand("diff", "run a graph on two devices and find where their numbers part");
  auto a = std::make_shared<DiffArguments>();
  add_graph_arguments(command, a->graph);
  command.add_option("--a", a->lockstep.a, "the device to believe");
  command.add_option("--b", a->lockstep.b, "the device to check");
  command
      .add_option(
          "--tolerance", a->lockstep.tolerance,
          "allowed |a - b| / (1 + max |a|); by default that of the least exact type on the way: 1e-10 for "
          "f64, 1e-4 for f32, 4e-3 for f16")
      .not_negative();
  command.add_option("--output-dir", a->output_dir,
                     "write the least graph that parts as parting.rlx and its operands as parting.npz");
  const Argument all = command.add_flag("--all", a->all, "print the error of every node");
  command.add_flag("--json", a->json, "print the errors of all nodes, and where they part, as JSON")
      .excludes(all);
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
