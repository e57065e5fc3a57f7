// rlx opt: what the compiler makes of a graph, pass by pass.
#include <algorithm>

#include "apps/rlx/bound_graph.h"
#include "apps/rlx/command.h"
#include "apps/rlx/device.h"
#include "apps/rlx/explain.h"
#include "apps/rlx/output.h"
#include "rlx/base/json_write.h"
#include "rlx/base/text.h"
#include "rlx/ir/text.h"
#include "rlx/lang/inspect.h"
#include "rlx/runtime/devices.h"
#include "rlx/runtime/pipeline.h"
#include "rlx/runtime/stages.h"

namespace rlx::cli {
namespace {

struct OptArguments {
  GraphArguments graph;
  std::string device = "cpu", dump, explain;
  std::vector<std::string> passes;
  bool no_fuse = false, json = false;
};

void print_passes(const runtime::Stages& c) {
  for (size_t i = 1; i < c.stages.size(); ++i) {
    const std::string change = diff(c.stages[i - 1].graph, c.stages[i].graph);
    print(cat("// ", c.stages[i].name, ": ", change.substr(0, change.find('\n')), "\n"));
  }
}

void dump(const runtime::Stages& c, const std::string& stage) {
  if (stage == "plan") {
    if (!c.report)
      throw invalid("opt: sizes are symbolic, so there is no plan; give them with --bind SYMBOL=N");
    return print(c.report->plan.text());
  }
  bool found = false;
  std::vector<std::string> known;
  for (const runtime::StageGraph& s : c.stages) {
    if (std::find(known.begin(), known.end(), s.name) == known.end()) known.push_back(s.name);
    if (stage != "all" && s.name != stage) continue;
    found = true;
    print(cat("// ", s.name, "\n", ir::to_text(s.graph)));
  }
  if (!found)
    throw invalid("opt: there is no stage '", stage, "'; there are ", join(known), ", plan and all");
}

void print_json(const runtime::Stages& c) {
  JsonWriter out({.indent = 2, .replace_invalid = true});
  out.begin_object();
  out.key("stages");
  out.begin_array();
  for (size_t i = 0; i < c.stages.size(); ++i) {
    const std::string change = i > 0 ? diff(c.stages[i - 1].graph, c.stages[i].graph) : "";
    out.begin_object();
    out.member("name", c.stages[i].name);
    out.member("nodes", c.stages[i].graph.len());
    out.member("change", change.substr(0, change.find('\n')));
    out.member("text", ir::to_text(c.stages[i].graph));
    out.end_object();
  }
  out.end_array();
  out.key("report");
  if (c.report) {
    out.value(Json::parse(c.report->json(), "report"));
  } else {
    out.null();
  }
  out.end_object();
  print(out.take() + "\n");
}

void run(const OptArguments& a) {
  const backend::Backend& device = device_named(a.device);
  ir::Graph g = read_graph_only(a.graph, "opt").graph;
  if (!a.passes.empty()) {
    for (const std::string& pass : a.passes) g = runtime::run_pass(pass, g, device);
    return print(ir::to_text(g));
  }
  // Names follow nodes through the passes.
  if (!a.explain.empty()) {
    for (const ir::NodeId id : g.topo_order()) {
      if (g.node(id).name.empty()) g.set_name(id, cat("%", id));
    }
  }
  const runtime::Stages c = runtime::compile_in_stages(g, {.device = a.device, .fuse = !a.no_fuse});
  if (!a.explain.empty()) {
    const Explanation e = explain(c, a.explain);
    return print(a.json ? e.json() + "\n" : e.text());
  }
  if (!a.dump.empty()) return dump(c, a.dump);
  if (a.json) return print_json(c);
  print_passes(c);
  print(ir::to_text(c.stages.back().graph));
}

}  // namespace

void add_opt(Command app) {
  Command command = app.add_subcommand("opt", "show what the compiler makes of a graph");
  auto a = std::make_shared<OptArguments>();
  add_graph_file(command, a->graph);
  add_target(command, a->device);
  const Argument passes =
      command
          .add_option("--pass", a->passes,
                      cat("run these alone, in this order: ", join(runtime::pass_names())))
          .separated_by_commas();
  const Argument dump =
      command.add_option("--dump", a->dump, "print a stage: input, a pass, prologue, main, plan, or all")
          .excludes(passes);
  command
      .add_option("--explain", a->explain,
                  "what became of a node, which kernels declined it, and the text of its kernels on a GPU")
      .excludes(passes)
      .excludes(dump);
  command.add_flag("--no-fuse", a->no_fuse, "leave every operator a step of its own").excludes(passes);
  command.add_flag("--json", a->json, "print stages and report, or what --explain tells, as JSON")
      .excludes(passes)
      .excludes(dump);
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
