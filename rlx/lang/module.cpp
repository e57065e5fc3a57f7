#include "rlx/lang/module.h"

#include <map>
#include <ostream>

#include "rlx/ir/bodies.h"
#include "rlx/ir/text.h"
#include "rlx/lang/graph_file.h"
#include "rlx/lang/inspect.h"

namespace rlx {

GraphModule GraphModule::from_graph(const ir::Graph& graph) {
  if (ir::holds_blocks(graph)) return Hir{graph};
  return Mir{graph};
}

GraphModule GraphModule::define(const std::string& name, const std::function<Value(GraphModule&)>& build) {
  GraphModule m = hir(name);
  m.finish_hir(build(m));
  return m;
}

void GraphModule::wrong_stage(std::string_view what, std::string_view needs) const {
  throw invalid(what, ": module '", name(), "' is at ", stage_name(stage()), " stage; ", needs);
}

const Graph& GraphModule::graph() const {
  return std::visit([](const auto& s) -> const Graph& { return s.graph; }, state_);
}

Graph& GraphModule::hir_graph(std::string_view what) {
  if (stage() != Stage::Hir) wrong_stage(what, "blocks are added at HIR stage");
  return std::get<Hir>(state_).graph;
}

Graph& GraphModule::builders() {
  if (stage() == Stage::Lir) wrong_stage("builders", "a planned graph is not edited");
  return stage() == Stage::Hir ? std::get<Hir>(state_).graph : std::get<Mir>(state_).graph;
}

FusionPolicy GraphModule::fusion_policy() const {
  if (stage() != Stage::Hir) wrong_stage("fusion_policy", "only HIR has one");
  return as_hir().policy;
}

GraphModule& GraphModule::with_fusion_policy(FusionPolicy policy) {
  if (stage() != Stage::Hir) wrong_stage("with_fusion_policy", "only HIR has one");
  std::get<Hir>(state_).policy = policy;
  return *this;
}

Value GraphModule::input(const std::string& name, const Shape& shape, const Loc& loc) {
  return builders().input(name, shape, loc);
}
Value GraphModule::param(const std::string& name, const Shape& shape, const Loc& loc) {
  return builders().param(name, shape, loc);
}
void GraphModule::set_outputs(const Values& outputs, const std::vector<std::string>& names) {
  builders().set_outputs(outputs, names);
}
void GraphModule::set_hir_outputs(const Values& outputs) {
  hir_graph("set_hir_outputs").set_outputs(outputs);
}
GraphModule& GraphModule::finish_hir(Value output) {
  hir_graph("finish_hir").set_outputs({output});
  return *this;
}

Value GraphModule::named(const std::string& label, const std::function<Value(GraphModule&)>& build) {
  Graph& g = builders();
  const ir::LabelScope scope(g, label);
  const Value v = build(*this);
  if (!g.node(v).op->traits.leaf) g.set_name(v.node, label);
  return v;
}

GraphModule GraphModule::lower() const {
  if (stage() == Stage::Lir || (stage() == Stage::Mir && !ir::holds_blocks(graph()))) return *this;
  return into_mir();
}

Mir GraphModule::into_mir() const {
  return stage() == Stage::Hir ? rlx::lower(as_hir()) : Mir{rlx::lower(graph())};
}
Lir GraphModule::into_lir() const { return stage() == Stage::Lir ? as_lir() : rlx::plan(into_mir()); }

const Hir& GraphModule::as_hir() const {
  if (stage() != Stage::Hir) wrong_stage("as_hir", "lowering does not go back");
  return std::get<Hir>(state_);
}
const Mir& GraphModule::as_mir() const {
  if (stage() == Stage::Hir) wrong_stage("as_mir", "call lower() first");
  if (stage() == Stage::Lir) wrong_stage("as_mir", "take into_mir() or as_graph()");
  return std::get<Mir>(state_);
}
const Lir& GraphModule::as_lir() const {
  if (stage() != Stage::Lir) wrong_stage("as_lir", "call into_lir() first");
  return std::get<Lir>(state_);
}
const Graph& GraphModule::as_graph() const {
  if (stage() == Stage::Hir) wrong_stage("as_graph", "call lower() first");
  return graph();
}

std::string GraphModule::inspect() const {
  std::string out = cat("module @", name(), " at ", stage_name(stage()), " stage");
  if (stage() == Stage::Hir) {
    out += cat(", policy ", choice_names(FusionPolicy())[size_t(fusion_policy())], "\n  blocks: ");
    std::map<std::string_view, int64_t> counts;
    ir::for_each_node(graph(), [&counts](const ir::Node& n) {
      if (n.op->traits.block) ++counts[n.op->name];
    });
    std::vector<std::string> blocks;
    for (const auto& [op, count] : counts) blocks.push_back(cat(op, " ", count));
    out += blocks.empty() ? "none" : join(blocks);
  }
  out += "\n";
  if (stage() == Stage::Lir) out += as_lir().plan.text();
  return out + rlx::inspect(graph());
}

ir::Module GraphModule::module() const {
  ir::Module m{graph(), stage()};
  if (stage() == Stage::Hir) m.policy = fusion_policy();
  if (stage() == Stage::Lir) m.plan = as_lir().plan.statements();
  return m;
}

// What a text or file calls MIR is HIR when there are blocks in it.
GraphModule GraphModule::from_module(ir::Module m) {
  if (m.stage == Stage::Hir) return Hir{std::move(m.graph), m.policy};
  if (m.stage == Stage::Mir) return from_graph(m.graph);
  if (m.plan.empty()) return rlx::plan(Mir{std::move(m.graph)});
  Plan plan = read_plan(m.graph, m.plan);
  return Lir{std::move(m.graph), std::move(plan)};
}

std::string GraphModule::to_text() const { return ir::to_text(module()); }

GraphModule GraphModule::parse(std::string_view text, const ir::OpTable& ops) {
  return from_module(ir::parse_module(text, ops));
}

void GraphModule::save(const std::string& path, const NamedLiterals& weights) const {
  ir::Module m = module();
  save_graph({std::move(m.graph), weights, m.words(), std::move(m.plan)}, path);
}

GraphModule GraphModule::load(const std::string& path, const ir::OpTable& ops) {
  GraphFile file = load_graph(path, ops);
  ir::Module m;
  m.set_words(file.stage);
  m.graph = std::move(file.graph);
  m.plan = std::move(file.plan);
  return from_module(std::move(m));
}

std::ostream& operator<<(std::ostream& out, const GraphModule& m) { return out << m.to_text(); }

GraphModule Graph::define(const std::string& name, const std::function<Value(GraphModule&)>& build) {
  return GraphModule::define(name, build);
}
GraphModule Graph::hir(const std::string& name) { return GraphModule::hir(name); }
GraphModule Graph::module() const { return GraphModule::from_graph(*this); }
Graph Graph::from_hir(const Hir& h) { return lower(h).graph; }
Graph Graph::from_lir(const Lir& l) { return l.graph; }
std::string Graph::inspect_module(const GraphModule& m) { return m.inspect(); }

}  // namespace rlx
