#include "rlx/runtime/calibrate.h"

#include <algorithm>
#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/linalg/matmul.h"

namespace rlx {
namespace {

const std::string& name_of(const ir::Node& n) { return n.op->traits.leaf ? ir::leaf_name(n) : n.name; }

void widen(ValueRange& range, const Literal& values, const std::string& name) {
  for (int64_t i = 0; i < values.elements(); ++i) {
    const double x = values.real_at(i);
    if (!std::isfinite(x))
      throw invalid("calibrate: '", name, "' is ", x, " at element ", i, "; no scale would fit");
    range.low = std::min(range.low, x);
    range.high = std::max(range.high, x);
  }
}

}  // namespace

std::map<std::string, ValueRange> calibrate(const ir::Graph& graph, const NamedLiterals& weights,
                                            std::span<const NamedLiterals> sets,
                                            const std::vector<std::string>& names,
                                            const CompileOptions& options) {
  if (sets.empty()) throw invalid("calibrate: no inputs are given to run on");
  ir::Graph tapped = graph;
  ir::Values outputs;
  for (const std::string& name : names) {
    const auto nodes = graph.nodes();
    const auto found =
        std::find_if(nodes.begin(), nodes.end(), [&](const ir::Node* n) { return name_of(*n) == name; });
    if (found == nodes.end())
      throw invalid("calibrate: no value of graph '", graph.name(), "' is called '", name, "'");
    outputs.push_back(tapped.value((*found)->id));
  }
  tapped.set_outputs(outputs, names);
  CompileOptions plain = options;
  plain.states.clear();
  CompiledGraph f = compile(tapped, weights, plain);
  std::map<std::string, ValueRange> ranges;
  for (const NamedLiterals& inputs : sets) {
    for (const auto& [name, value] : f.run(inputs)) widen(ranges[name], value, name);
  }
  return ranges;
}

ir::Graph quantise_after_training(const ir::Graph& graph, const NamedLiterals& weights,
                                  std::span<const NamedLiterals> sets, const CompileOptions& options) {
  ir::Graph named = graph;
  std::vector<std::string> activations, fixed;
  for (const ir::NodeId id : named.topo_order()) {
    const ir::Node& n = named.node(id);
    if (!n.is<ops::Matmul>() || n.shapes[0].dtype() != DType::f32) continue;
    for (const ir::Value v : ir::Values(n.inputs)) {
      if (named.node(v).shapes.size() != 1) continue;
      if (name_of(named.node(v)).empty()) named.set_name(v.node, cat("value", v.node));
      auto& list = named.node(v).is<ir::Param>() ? fixed : activations;
      const std::string name = name_of(named.node(v));
      if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
    }
  }
  std::vector<std::string> all = activations;
  all.insert(all.end(), fixed.begin(), fixed.end());
  if (all.empty()) return graph;
  std::map<std::string, passes::TensorCode> taps;
  for (const auto& [name, range] : calibrate(named, weights, sets, all, options)) {
    const bool is_weight = std::find(fixed.begin(), fixed.end(), name) != fixed.end();
    taps.emplace(name, is_weight ? passes::symmetric_code(range.low, range.high)
                                 : passes::affine_code(range.low, range.high));
  }
  return passes::insert_rounding(named, taps);
}

}  // namespace rlx
