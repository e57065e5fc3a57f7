// rlx opt: what the compiler makes of a graph, pass by pass.
#include <algorithm>

#include "apps/rlx/bound_graph.h"
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/text.h"
#include "rlx/ir/bodies.h"
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
  bool no_fuse = false;
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

// The statement of a node, without its bodies.
std::string statement(const ir::Graph& g, const ir::Node& n) {
  std::vector<std::string> operands, types;
  for (const ir::Value v : n.inputs) {
    const ir::Node& from = g.node(v);
    operands.push_back(from.name.empty() ? cat("%", v.node) : from.name);
  }
  for (const Shape& s : n.shapes) types.push_back(cat(s));
  return cat(n.op->name, "(", join(operands), ") : ", join(types));
}

bool holds(const ir::Node& n, const std::string& name) {
  bool found = false;
  ir::for_each_body(n, [&](const ir::FieldInfo&, const ir::GraphRef& body) {
    found = found || ir::any_node(*body, [&](const ir::Node& inner) { return inner.name == name; });
  });
  return found;
}

// The steps that run a node, also those in bodies, numbered as reports do. Those in bodies are found by names, since a loop that threads
// share runs a copy of its body.
void explain_steps(const backend::Plan& plan, const ir::Graph& g, const std::string& name,
                   const std::string& path) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const backend::Plan::Step& step = plan.steps[i];
    const auto nodes = g.nodes();
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const ir::Node* n) {
      const bool runs = path.empty() ? n->id == step.node : n->name == step.name && !n->name.empty();
      return runs && (n->name == name || holds(*n, name));
    });
    if (found == nodes.end()) continue;
    print(cat("step ", path, i, ": ", step.kernel, step.note.empty() ? "" : cat(" (", step.note, ")"), "\n"));
    for (const backend::Declined& d : step.declined)
      print(cat("  declined: ", d.kernel, ": ", d.reason, "\n"));
    size_t body = 0;
    ir::for_each_body(**found, [&](const ir::FieldInfo&, const ir::GraphRef& inner) {
      if (body < step.bodies.size())
        explain_steps(step.bodies[body], *inner, name, cat(path, i, ".", body, "."));
      ++body;
    });
  }
}

// What became of a node: its statement at every stage where it changed, and the step that runs it.
void explain(const runtime::Stages& c, const std::string& name) {
  std::string last;
  bool known = false;
  for (const runtime::StageGraph& s : c.stages) {
    std::string now;
    for (const ir::Node* n : s.graph.nodes()) {
      if (n->name == name) now = statement(s.graph, *n);
      if (holds(*n, name))
        now = cat("inside ", n->name.empty() ? cat("%", n->id) : n->name, " = ", statement(s.graph, *n));
    }
    known = known || !now.empty();
    if (now == last || (s.name == "prologue" && now.empty())) continue;
    print(cat(s.name, ": ", now.empty() ? "gone: another node gives its value, or nothing reads it" : now,
              "\n"));
    last = now;
  }
  if (!known) throw invalid("opt: no node is called '", name, "'; nodes without a name are %0, %1, ..");
  if (!c.report) return;
  for (const passes::Remark& r : c.report->remarks) {
    if (r.node == name) print(cat("fusion: ", r.text, "\n"));
  }
  explain_steps(c.report->plan, c.stages.back().graph, name, "");
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
  if (!a.explain.empty()) return explain(c, a.explain);
  if (!a.dump.empty()) return dump(c, a.dump);
  print_passes(c);
  print(ir::to_text(c.stages.back().graph));
}

}  // namespace

void add_opt(Command app) {
  Command command = app.add_subcommand("opt", "show what the compiler makes of a graph");
  auto a = std::make_shared<OptArguments>();
  add_graph_file(command, a->graph);
  command.add_option("--device", a->device, "the device to compile for");
  const Argument passes =
      command
          .add_option("--pass", a->passes,
                      cat("run these alone, in this order: ", join(runtime::pass_names())))
          .separated_by_commas();
  const Argument dump =
      command.add_option("--dump", a->dump, "print a stage: input, a pass, prologue, main, plan, or all")
          .excludes(passes);
  command.add_option("--explain", a->explain, "what became of a node, and which kernels declined it")
      .excludes(passes)
      .excludes(dump);
  command.add_flag("--no-fuse", a->no_fuse, "leave every operator a step of its own").excludes(passes);
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
