// rlx grad: the derivative or the batched form of a graph, as text.
#include "apps/rlx/command.h"
#include "apps/rlx/open_program.h"
#include "apps/rlx/output.h"
#include "rlx/base/error.h"
#include "rlx/ir/text.h"
#include "rlx/lang/graph_file.h"
#include "rlx/transform/transform.h"

namespace rlx::cli {
namespace {

struct GradArguments {
  std::string path, policy;
  std::vector<std::string> wrt, vmap;
  bool jvp = false, hvp = false, value = false, report = false;
  int64_t budget = -1, batch = 0;
};

transform::SavePolicy policy_of(const std::string& name) {
  if (name == "save-all") return transform::SavePolicy::save_all;
  if (name == "save-matmuls") return transform::SavePolicy::save_matmuls;
  if (name == "recompute") return transform::SavePolicy::recompute_all;
  if (name == "fit") return transform::SavePolicy::fit_bytes;
  throw invalid("grad: unknown policy '", name, "'; known: save-all, save-matmuls, recompute, fit");
}

// x=0,y=1 -> the batch axis of each; the batch is the symbol `batch` unless --batch gives a number.
ir::Graph batched(const ir::Graph& g, const GradArguments& a) {
  transform::VmapOptions options{.in_axes = {}, .size = a.batch > 0 ? Dim(a.batch) : Dim::batch()};
  for (const std::string& item : a.vmap) {
    const size_t equals = item.find('=');
    const char* first = item.c_str() + equals + 1;
    char* end = nullptr;
    const long axis = equals == std::string::npos ? 0 : std::strtol(first, &end, 10);
    if (equals == std::string::npos || end == first || *end != '\0') {
      throw invalid("grad: --vmap '", item, "'; write NAME=AXIS");
    }
    options.in_axes[item.substr(0, equals)] = int(axis);
  }
  return transform::vmap(g, options);
}

void print_report(const transform::Partition& cut) {
  print(cat("saved: ", cut.saved.size(), " values, ", cut.saved_bytes, " bytes\n"));
  for (size_t i = 0; i < cut.saved.size(); ++i)
    print(cat("  ", cut.saved_names[i], " : ", cut.saved[i], "\n"));
  print(cat("recomputed: ", cut.recomputed.size(), " nodes\n"));
  for (const std::string& node : cut.recomputed) print(cat("  ", node, "\n"));
}

void run(const GradArguments& a) {
  ir::Graph g = a.path.ends_with(".onnx") ? ir::Graph(open_program(a.path).graph) : read_graph(a.path).graph;
  if (!a.policy.empty()) {
    const auto cut = transform::grad_partitioned(g, a.wrt, policy_of(a.policy),
                                                 a.budget >= 0 ? std::optional(a.budget) : std::nullopt);
    if (a.report) return print_report(cut);
    return print(ir::to_text(cut.forward) + ir::to_text(cut.backward));
  }
  if (a.report) throw invalid("grad: --report needs --policy");
  if (a.wrt.empty() && a.vmap.empty()) throw invalid("grad: give --wrt, --vmap or both");
  if (!a.wrt.empty()) {
    g = a.jvp   ? transform::jvp(g, a.wrt)
        : a.hvp ? transform::hvp(g, a.wrt)
                : transform::grad(g, a.wrt, {.with_value = a.value});
  }
  if (!a.vmap.empty()) g = batched(g, a);
  print(ir::to_text(g));
}

}  // namespace

void add_grad(Command app) {
  Command command = app.add_subcommand("grad", "differentiate or batch a graph and print the result");
  auto a = std::make_shared<GradArguments>();
  command.add_option("FILE", a->path, "a .rlx text, its JSON form or a saved graph").required();
  command.add_option("--wrt", a->wrt, "inputs and params to differentiate by").separated_by_commas();
  const Argument jvp = command.add_flag("--jvp", a->jvp, "forward mode: adds tangent_NAME inputs");
  command.add_flag("--hvp", a->hvp, "Hessian-vector product of a scalar").excludes(jvp);
  command.add_flag("--value", a->value, "keep the outputs in front of the gradients");
  command.add_option("--vmap", a->vmap, "then batch: NAME=AXIS, ...").separated_by_commas();
  command.add_option("--batch", a->batch, "number of examples for --vmap (default: the symbol batch)");
  command.add_option("--policy", a->policy,
                     "cut into forward and backward: save-all, save-matmuls, recompute, fit");
  command.add_option("--budget", a->budget, "bytes that may be saved, for --policy fit");
  command.add_flag("--report", a->report, "with --policy: what is saved and what runs again");
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
