#include "rlx/lang/module.h"

#include <ostream>

#include "rlx/lang/graph_file.h"
#include "rlx/lang/inspect.h"
#include "rlx/ops/all.h"

namespace rlx {

std::string_view stage_name(Stage stage) {
  constexpr std::string_view kNames[] = {"HIR", "MIR", "LIR"};
  return kNames[size_t(stage)];
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
  if (stage() != Stage::Hir) return *this;
  return rlx::lower(as_hir());
}

Mir GraphModule::into_mir() const {
  return stage() == Stage::Hir   ? rlx::lower(as_hir())
         : stage() == Stage::Mir ? as_mir()
                                 : Mir{as_lir().graph};
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
    std::vector<std::string> blocks;
    for (const auto& [op, count] : histogram(graph())) {
      if (ops::is_block(ops::table().at(op))) blocks.push_back(cat(op, " ", count));
    }
    out += blocks.empty() ? "none" : join(blocks);
  }
  out += "\n";
  if (stage() == Stage::Lir) out += as_lir().plan.text();
  return out + rlx::inspect(graph());
}

std::string GraphModule::to_text() const {
  constexpr std::string_view kWords[] = {"hir", "mir", "lir"};
  std::string out = cat("module ", kWords[size_t(stage())]);
  if (stage() == Stage::Hir) out += cat(" ", choice_names(FusionPolicy())[size_t(fusion_policy())]);
  return cat(out, "\n", graph().to_text());
}

GraphModule GraphModule::parse(std::string_view text) {
  const size_t end = text.find('\n');
  const std::string_view head = text.substr(0, end);
  // Spaces in place of the first line keep line numbers of errors right.
  const std::string body = end == std::string_view::npos ? std::string() : cat("\n", text.substr(end + 1));
  if (head == "module hir direct") return Hir{Graph::parse(body), FusionPolicy::direct};
  if (head == "module hir fusable") return Hir{Graph::parse(body), FusionPolicy::fusable};
  if (head == "module mir") return Mir{Graph::parse(body)};
  if (head == "module lir") return rlx::plan(Mir{Graph::parse(body)});
  Error e = invalid(
      "parse: expected 'module hir direct', 'module hir fusable', 'module mir' or 'module lir', found '",
      head.substr(0, 40), "'");
  e.set_origin("line 1 column 1");
  throw e;
}

void GraphModule::save(const std::string& path, const NamedLiterals& weights) const {
  constexpr std::string_view kWords[] = {"hir", "mir", "lir"};
  std::string stage_word(kWords[size_t(stage())]);
  if (stage() == Stage::Hir) stage_word += cat(" ", choice_names(FusionPolicy())[size_t(fusion_policy())]);
  save_graph({graph(), weights, stage_word}, path);
}

GraphModule GraphModule::load(const std::string& path) {
  GraphFile file = load_graph(path);
  if (file.stage == "hir direct") return Hir{std::move(file.graph), FusionPolicy::direct};
  if (file.stage == "hir fusable") return Hir{std::move(file.graph), FusionPolicy::fusable};
  if (file.stage == "lir") return rlx::plan(Mir{std::move(file.graph)});
  return Mir{std::move(file.graph)};
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
