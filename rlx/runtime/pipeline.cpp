#include "rlx/runtime/pipeline.h"

#include <algorithm>

#include "rlx/ir/bodies.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"
#include "rlx/passes/algebra.h"
#include "rlx/passes/canonicalise.h"
#include "rlx/passes/cse.h"
#include "rlx/passes/fold.h"
#include "rlx/passes/hoist.h"
#include "rlx/passes/join_attention.h"
#include "rlx/passes/join_products.h"
#include "rlx/passes/legalise.h"
#include "rlx/passes/precision.h"
#include "rlx/passes/quantise.h"
#include "rlx/passes/quantise_codes.h"
#include "rlx/passes/schedule.h"
#include "rlx/runtime/devices.h"

namespace rlx::runtime {
namespace {

constexpr std::string_view kFuse = "fuse", kSchedule = "schedule";

struct Context {
  const ir::Target* target = nullptr;
  std::vector<passes::Remark>* remarks = nullptr;
};

// A graph is large: passes take it over, and what a pass does not change is not copied.
struct Pass {
  std::string_view name;
  ir::Rewritten (*run)(ir::Graph, const Context&);
};

ir::Rewritten hoist(ir::Graph g, const Context&) {
  const bool loops =
      ir::any_node(g, [](const ir::Node& n) { return n.is<ops::Scan>() || n.is<ops::While>(); });
  if (!loops) return {std::move(g), 0};
  return passes::hoist_invariants(g);
}

constexpr Pass kFold = {"fold_constants",
                        [](ir::Graph g, const Context&) { return passes::fold_constants(std::move(g)); }};
constexpr Pass kCanonicalise = {
    "canonicalise", [](ir::Graph g, const Context&) { return passes::canonicalise(std::move(g)); }};
constexpr Pass kSimplify = {"simplify",
                            [](ir::Graph g, const Context&) { return passes::simplify(std::move(g)); }};
constexpr Pass kCse = {"cse", [](ir::Graph g, const Context&) { return passes::cse(std::move(g)); }};
constexpr Pass kDce = {"dce", [](ir::Graph g, const Context&) {
                         const size_t gone = g.erase_dead();
                         return ir::Rewritten{std::move(g), gone};
                       }};

// On any sizes, once per compiled graph.
constexpr Pass kGeneral[] = {
    kFold,
    kCanonicalise,  // predicates are known by now
    {"hoist", hoist},
    kSimplify,
    kCse,
    // Changes numbers of graphs that are rounded to eight bits, by at most one code where they are rounded.
    {"join_codes", [](ir::Graph g, const Context& c) { return passes::join_codes(std::move(g), c.target); }},
    {"join_products",
     [](ir::Graph g, const Context& c) { return passes::join_products(std::move(g), c.remarks); }},
    kDce,
};

// On known sizes, for one target.
constexpr Pass kSized[] = {
    // Changes numbers by the order of sums.
    {"join_attention",
     [](ir::Graph g, const Context& c) {
       return passes::join_attention(std::move(g), *c.target, c.remarks);
     }},
    {"legalise", [](ir::Graph g, const Context& c) { return passes::legalise(std::move(g), *c.target); }},
    // Decompositions bring fills, views and repeated parts.
    kFold,
    kCanonicalise,
    kSimplify,
    kCse,
    kDce,
};

// Change numbers within the error of eight bits: only when asked for by name.
constexpr Pass kOnRequest[] = {
    {"merge_roundings", [](ir::Graph g, const Context&) { return passes::merge_roundings(g); }},
    {"quantise_products", [](ir::Graph g, const Context&) { return passes::quantise_products(g); }},
};

ir::Graph run(std::span<const Pass> list, ir::Graph g, const Context& context, const PassListener& listener) {
  for (const Pass& pass : list) {
    ir::Rewritten after = pass.run(std::move(g), context);
    g = std::move(after.graph);
    if (listener) listener(pass.name, g);
#ifndef NDEBUG
    if (after.changes == 0) continue;
    if (const auto wrong = g.verify(); !wrong.empty())
      RLX_CHECK(false, "after ", pass.name, ": ", wrong.front());
#endif
  }
  return g;
}

std::vector<passes::StateUpdate> updates_of(const ir::Graph& g, const std::vector<StatePair>& states) {
  std::vector<passes::StateUpdate> out;
  const auto names = g.output_names();
  for (const StatePair& pair : states) {
    const auto leaf = g.find_leaf(pair.input);
    const auto output = std::find(names.begin(), names.end(), pair.output);
    if (!leaf || output == names.end()) continue;  // refused elsewhere
    out.push_back({g.node(*leaf).result(), g.outputs()[size_t(output - names.begin())]});
  }
  return out;
}

}  // namespace

ir::Graph optimise(const ir::Graph& graph, const CompileOptions& options, const PassListener& listener,
                   std::vector<passes::Remark>* remarks) {
  const Context context{options.optimise ? &device_named(options.device) : nullptr, remarks};
  if (!options.precision) return options.optimise ? run(kGeneral, graph, context, listener) : graph;
  ir::Graph stored = passes::apply_precision(graph, *options.precision);
  if (listener) listener("precision", stored);
  return options.optimise ? run(kGeneral, std::move(stored), context, listener) : stored;
}

ir::Graph specialise(ir::Graph graph, const ir::Target& target, const CompileOptions& options,
                     std::vector<passes::Remark>& remarks, const PassListener& listener) {
  if (!options.optimise) return graph;
  ir::Graph g = run(kSized, std::move(graph), {&target, &remarks}, listener);
  if (options.fuse) {
    passes::Fused fused = passes::fuse(std::move(g), target);
    remarks.insert(remarks.end(), fused.remarks.begin(), fused.remarks.end());
    g = std::move(fused.graph);
    if (listener) listener(kFuse, g);
  }
  const auto updates = updates_of(g, options.states);
  g = passes::schedule(std::move(g), updates).graph;
  if (listener) listener(kSchedule, g);
  return g;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> out;
  const auto add = [&out](std::string_view name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.emplace_back(name);
  };
  for (const Pass& pass : kGeneral) add(pass.name);
  for (const Pass& pass : kSized) add(pass.name);
  add(kFuse);
  add(kSchedule);
  for (const Pass& pass : kOnRequest) add(pass.name);
  return out;
}

ir::Graph run_pass(std::string_view name, const ir::Graph& graph, const ir::Target& target) {
  if (name == kFuse) return passes::fuse(graph, target).graph;
  if (name == kSchedule) return passes::schedule(graph).graph;
  const std::span<const Pass> all[] = {kGeneral, kSized, kOnRequest};
  for (const std::span<const Pass> list : all) {
    for (const Pass& pass : list) {
      if (pass.name == name) return pass.run(graph, {&target}).graph;
    }
  }
  const auto known = pass_names();
  const std::string near = nearest_name(name, known);
  throw invalid("passes: unknown pass '", name, "'", near.empty() ? "" : cat("; did you mean '", near, "'"),
                "; known: ", join(known));
}

}  // namespace rlx::runtime
