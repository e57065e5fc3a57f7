#include "rlx/runtime/session.h"

#include <algorithm>

#include "rlx/runtime/core.h"
#include "rlx/runtime/devices.h"

namespace rlx {
namespace {

ir::Graph lowered(const ir::Graph& g) { return ir::holds_blocks(g) ? ir::Graph(lower(g)) : g; }

// Whether every step of the program is a kernel of the device. Graphs with open sizes are asked at no size: they count as run.
bool runs_natively(const ir::Graph& g, const std::string& device) {
  if (g.has_dynamic_dims()) return true;
  runtime::Core core(g, {}, {.device = device});
  std::vector<Shape> leaves;
  for (const auto& leaf : core.leaves()) leaves.push_back(leaf.shape);
  const auto program = core.build(leaves).program;
  const auto& steps = program->plan().steps;
  return std::none_of(steps.begin(), steps.end(), backend::runs_by_rule);
}

}  // namespace

PrecisionPolicy policy_of(Precision p) {
  switch (p) {
    case Precision::f32:
      return PrecisionPolicy::always_f32();
    case Precision::f16:
      return PrecisionPolicy::auto_mixed();
    case Precision::bf16:
      return PrecisionPolicy::auto_mixed_bf16();
  }
  return {};
}

std::vector<std::string> available_devices() {
  std::vector<std::string> out;
  for (const std::string& name : device_names()) {
    if (attempt([&] { return &device_named(name); })) out.push_back(name);
  }
  const auto rank = [](const std::string& name) { return name == "ref" ? 2 : name == "cpu" ? 1 : 0; };
  std::stable_sort(out.begin(), out.end(),
                   [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  return out;
}

std::string pick_device(const ir::Graph& graph) {
  const ir::Graph g = lowered(graph);
  const auto names = available_devices();
  for (const std::string& name : names) {
    if (name != "ref" && runs_natively(g, name)) return name;
  }
  return names.front();
}

Session::Session(std::string_view device, Precision precision)
    : device_(device_named(device).name()), precision_(precision), policy_(policy_of(precision)) {}

Session& Session::with_policy(PrecisionPolicy policy) {
  policy_ = std::move(policy);
  return *this;
}

CompileOptions Session::options() const {
  CompileOptions o{.device = device_};
  if (!policy_.changes_nothing()) o.precision = policy_;
  return o;
}

CompiledGraph Session::compile(const ir::Graph& graph, const NamedLiterals& weights) const {
  return {lowered(graph), weights, options()};
}

CompiledGraph Session::compile(const Program& program) const {
  return compile(program.graph, program.weights);
}

CompiledGraph Session::compile_with(const ir::Graph& graph, const NamedLiterals& weights,
                                    CompileOptions options) const {
  options.device = device_;
  if (!options.precision && !policy_.changes_nothing()) options.precision = policy_;
  return {lowered(graph), weights, options};
}

CompiledGraph Session::compile_hir(const Hir& hir, const NamedLiterals& weights) const {
  return compile(lower(hir).graph, weights);
}

CompiledGraph Session::compile_module(const GraphModule& module, const NamedLiterals& weights) const {
  return compile(module.stage() == Stage::Hir ? module.lower().as_graph() : module.as_graph(), weights);
}

CompiledGraph compile(const Program& program, const CompileOptions& options) {
  return {lowered(program.graph), program.weights, options};
}

Attempt<CompiledGraph> try_compile(const ir::Graph& graph, const NamedLiterals& weights,
                                   const CompileOptions& options) {
  return attempt([&] { return CompiledGraph(graph, weights, options); });
}

}  // namespace rlx
