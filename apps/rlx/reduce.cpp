// rlx reduce: a graph that goes wrong, made small.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "apps/rlx/bound_graph.h"
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/file.h"
#include "rlx/io/literal.h"
#include "rlx/io/npy.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/devices.h"
#include "rlx/runtime/lockstep.h"
#include "rlx/runtime/reduce.h"

namespace rlx::cli {
namespace {

struct ReduceArguments {
  GraphArguments graph;
  LockstepOptions lockstep;
  std::string output_dir, command;
};

void write_graph(const std::string& folder, const ir::Graph& g, const NamedLiterals& values) {
  make_folders(folder);
  write_file(folder + "/reduced.rlx", ir::to_text(g));
  std::vector<io::TensorView> tensors;
  for (const auto& [name, value] : values) tensors.push_back(io::to_view(name, value));
  io::write_npz(folder + "/reduced.npz", tensors);
}

void run(const ReduceArguments& a) {
  device_named(a.lockstep.a);
  device_named(a.lockstep.b);
  const BoundGraph bound = read_bound_graph(a.graph, "reduce");
  if (const auto symbols = bound.graph.dynamic_symbols(); !symbols.empty())
    throw invalid("reduce: sizes of ", join(symbols), " are not known; give them with --bind SYMBOL=N");
  const std::string trial = (a.output_dir.empty() ? "." : a.output_dir) + "/reduce-trial";
  const struct Removed {
    const std::string& folder;
    ~Removed() {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  } removed{trial};
  const auto status_of = [&](const ir::Graph& g, const NamedLiterals& values) {
    write_graph(trial, g, values);
    return std::system(
        cat(a.command, " '", trial, "/reduced.rlx' '", trial, "/reduced.npz' >/dev/null 2>&1").c_str());
  };
  const StillWrong wrong = [&](const ir::Graph& g, const NamedLiterals& values) {
    return a.command.empty() ? outputs_part(g, values, a.lockstep) : status_of(g, values) != 0;
  };
  // A command that is not there would find fault with every graph.
  if (!a.command.empty()) {
    const int status = status_of(bound.graph, bound.leaves());
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127))
      throw invalid("reduce: --command ", a.command, ": the shell cannot run it (exit code ",
                    WEXITSTATUS(status), ")");
  }
  const Reduced r = reduce_graph(bound.graph, bound.leaves(), wrong);
  print(cat("// ", bound.graph.len(), " nodes became ", r.graph.len(), " in ", r.tests, " trials\n",
            ir::to_text(r.graph)));
  if (!a.output_dir.empty()) write_graph(a.output_dir, r.graph, r.values);
}

}  // namespace

void add_reduce(Command app) {
  Command command = app.add_subcommand("reduce", "make a graph that goes wrong as small as it still does");
  auto a = std::make_shared<ReduceArguments>();
  add_graph_arguments(command, a->graph);
  command.add_option("--a", a->lockstep.a, "the device to believe");
  command.add_option("--b", a->lockstep.b, "the device whose results differ, or that refuses to run");
  command.add_option("--tolerance", a->lockstep.tolerance, "as of 'rlx diff'").not_negative();
  command.add_option(
      "--command", a->command,
      "instead of two devices: a command that fails on GRAPH.rlx VALUES.npz as long as the fault is in it");
  command.add_option("--output-dir", a->output_dir,
                     "write reduced.rlx and the values of its leaves as reduced.npz");
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
