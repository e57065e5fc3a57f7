#include "rlx/runtime/calibrate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "rlx/ir/bodies.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/runtime/label.h"

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

// Why a product cannot be one of codes; empty when it can.
std::string left_because(const ir::Graph& g, const ir::Node& n) {
  if (!n.is<ops::Matmul>() && !n.is<ops::Conv2d>())
    return "products of codes exist for matmul and conv2d alone";
  if (n.shapes[0].dtype() != DType::f32) return cat("it computes in ", n.shapes[0].dtype(), ", not in f32");
  for (const ir::Value v : n.inputs) {
    if (g.node(v).shapes.size() != 1) return "an operand is one of several results of a node";
  }
  return {};
}

// Products in the bodies of a node: values there have no place in a run of the graph where their range could be seen.
void out_of_reach(const ir::Node& n, std::vector<passes::Remark>& remarks) {
  ir::for_each_body(n, [&](const ir::FieldInfo&, const ir::GraphRef& body) {
    ir::for_each_node(*body, [&](const ir::Node& inner) {
      if (!inner.op->traits.contraction) return;
      remarks.push_back(
          {runtime::label_of(inner),
           cat("left as it is: it is in a body of ", runtime::label_of(n), ", where no range is known"),
           false});
    });
  });
}

// Names of the values that products read.
struct RoundedValues {
  std::set<std::string> activations, weights, windows;  // windows: weights that only convolutions read

  void add(ir::Graph& g, const ir::Node& n) {
    const bool conv = n.is<ops::Conv2d>();
    const ir::Values inputs = n.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::Node& from = g.node(inputs[i]);
      if (name_of(from).empty()) g.set_name(from.id, cat("value", from.id));
      const std::string name = name_of(from);
      if (!from.is<ir::Param>()) {
        activations.insert(name);
      } else if (conv && i == 1 && !weights.contains(name)) {
        windows.insert(name);
      } else {
        weights.insert(name);
        windows.erase(name);
      }
    }
  }
  bool empty() const { return activations.empty() && weights.empty() && windows.empty(); }
  std::vector<std::string> names() const {
    std::vector<std::string> out(activations.begin(), activations.end());
    out.insert(out.end(), weights.begin(), weights.end());
    out.insert(out.end(), windows.begin(), windows.end());
    return out;
  }
};

// A scale for each output channel: windows of one layer differ in size far more than columns of a matrix do, and a
// product of codes is scaled by channel anyway.
passes::TensorCode code_of_channels(const Literal& w) {
  const int64_t channels = w.shape().dim(0).value(), each = channels == 0 ? 0 : w.elements() / channels;
  passes::TensorCode out{.axis = 0, .scales = {}, .zero_points = {}};
  for (int64_t c = 0; c < channels; ++c) {
    double largest = 0;
    for (int64_t i = 0; i < each; ++i) largest = std::max(largest, std::fabs(w.real_at(c * each + i)));
    out.scales.push_back(passes::symmetric_code(-largest, largest).scales[0]);
    out.zero_points.push_back(0);
  }
  return out;
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

QuantisedGraph quantise_after_training(const ir::Graph& graph, const NamedLiterals& weights,
                                       std::span<const NamedLiterals> sets, const CompileOptions& options) {
  QuantisedGraph out{graph, {}};
  RoundedValues operands;
  for (const ir::NodeId id : out.graph.topo_order()) {
    const ir::Node& n = out.graph.node(id);
    out_of_reach(n, out.remarks);
    if (!n.op->traits.contraction) continue;
    const std::string why = left_because(out.graph, n);
    if (why.empty())
      operands.add(out.graph, n);
    else
      out.remarks.push_back({runtime::label_of(n), cat("left as it is: ", why), false});
  }
  if (operands.empty()) {
    if (out.remarks.empty())
      out.remarks.push_back({graph.name(), "left as it is: it has no products", false});
    return out;
  }
  std::map<std::string, passes::TensorCode> taps;
  for (const auto& [name, range] : calibrate(out.graph, weights, sets, operands.names(), options)) {
    if (operands.windows.contains(name))
      taps.emplace(name, code_of_channels(weights.at(name)));
    else if (operands.weights.contains(name))
      taps.emplace(name, passes::symmetric_code(range.low, range.high));
    else
      taps.emplace(name, passes::affine_code(range.low, range.high));
  }
  out.graph = passes::insert_rounding(out.graph, taps);
  return out;
}

}  // namespace rlx
