#include "rlx/train/gradients.h"

#include <algorithm>

#include "rlx/ir/clone.h"
#include "rlx/ir/inline.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/control.h"
#include "rlx/lang/functions.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/transform/transform.h"

namespace rlx::train {
namespace {

// Functions with derivatives of their own, written out, those inside of them too: once derivatives are taken, a call would only hide its operands from whoever
// looks at them, and a weight is packed once only where it is seen to be one.
ir::Graph with_functions_open(const ir::Graph& graph) {
  ir::Graph out(graph.name());
  out.assume_sizes_of(graph);
  ir::Cloner copy(out);
  for (const ir::Node* n : graph.nodes()) {
    if (!n->is<ops::CustomFn>()) {
      copy.copy(*n);
      continue;
    }
    ir::Exprs operands;
    for (const ir::Value v : n->inputs) operands.push_back({&out, copy.at(v)});
    const ir::Exprs results =
        ir::inline_graph(out, with_functions_open(*n->as<ops::CustomFn>().fwd_body), operands);
    copy.set_results(*n, ir::Values(results.begin(), results.end()));
  }
  copy.copy_outputs(graph);
  return out;
}

// The loss graph with gradients behind its outputs. Where the loss is scaled, a leaf for the scale comes last.
ir::Graph differentiated(const LossGraph& l, bool scaled) {
  return with_functions_open(
      transform::value_and_grad(l.graph, l.trained, {.loss = l.loss, .cotangent_inputs = scaled}));
}

// The outputs of `graph`, whose leaves are found by name; the last is the scale where there is one.
ir::Exprs placed(ir::Graph& to, const ir::Graph& graph, const Leaves& leaves, const Tensor& scale) {
  ir::Exprs operands;
  for (const ir::NodeId id : graph.leaves()) {
    const auto it = leaves.find(ir::leaf_name(graph.node(id)));
    operands.push_back(it != leaves.end() ? ir::Expr(it->second)
                                          : ir::Expr(scale.cast(graph.node(id).shapes[0].dtype())));
  }
  return ir::inline_graph(to, graph, operands);
}

// Outputs of the differentiated graph, told apart.
Gradients sorted(const LossGraph& l, const std::vector<std::string>& names, const Tensors& results) {
  Gradients out;
  const size_t outputs = l.graph.outputs().size();
  out.carried.resize(l.left.size());
  for (size_t i = 0; i < outputs; ++i) {
    const auto it = std::find(l.left.begin(), l.left.end(), names[i]);
    if (it == l.left.end()) {
      out.outputs.emplace_back(names[i], results[i]);
    } else {
      out.carried[size_t(it - l.left.begin())] = results[i];
    }
  }
  out.gradients.assign(results.begin() + long(outputs), results.end());
  return out;
}

}  // namespace

Gradients gradients_of(Graph& to, const LossGraph& l, const Leaves& leaves, const Tensor& scale) {
  const ir::Graph both = differentiated(l, !scale.is_empty());
  const ir::Exprs results = placed(to, both, leaves, scale);
  return sorted(l, both.output_names(), Tensors(results.begin(), results.end()));
}

namespace {

// The operands of the loop over batches: gradients and states of the model are carried, weights stay, batches are cut.
struct LoopOperands {
  Tensors carries, consts, sequences;
  std::vector<std::string> const_names, sequence_names;
};

LoopOperands loop_operands(Graph& to, const LossGraph& l, const Leaves& leaves) {
  LoopOperands o;
  for (const std::string& name : l.trained)
    o.carries.push_back(ir::full(to, leaves.find(name)->second.shape(), 0));
  for (const std::string& name : l.carried) o.carries.push_back(leaves.find(name)->second);
  for (const ir::NodeId id : l.graph.leaves()) {
    const std::string& name = ir::leaf_name(l.graph.node(id));
    if (std::find(l.carried.begin(), l.carried.end(), name) != l.carried.end()) continue;
    const bool weight = l.graph.node(id).is<ir::Param>();
    (weight ? o.consts : o.sequences).push_back(leaves.find(name)->second);
    (weight ? o.const_names : o.sequence_names).push_back(name);
  }
  return o;
}

}  // namespace

Gradients mean_gradients_of(Graph& to, const LossGraph& l, const Leaves& leaves, const Tensor& scale,
                            int64_t batches) {
  const ir::Graph both = differentiated(l, !scale.is_empty());
  LoopOperands o = loop_operands(to, l, leaves);
  if (!scale.is_empty()) o.consts.push_back(scale);
  NamedTensors stacked;
  const auto body = [&](Tracer& t, const Tensors& args) {
    Leaves inside;
    auto arg = args.begin();
    const Tensors sums(arg, arg + long(l.trained.size()));
    arg += long(l.trained.size());
    for (const std::string& name : l.carried) inside.emplace(name, *arg++);
    for (const std::string& name : o.const_names) inside.emplace(name, *arg++);
    const Tensor factor = scale.is_empty() ? Tensor() : *arg++;
    for (const std::string& name : o.sequence_names) inside.emplace(name, *arg++);
    const ir::Exprs results = placed(t.graph(), both, inside, factor);
    Gradients g = sorted(l, both.output_names(), Tensors(results.begin(), results.end()));
    Tensors out;
    for (size_t i = 0; i < sums.size(); ++i) out.push_back(sums[i] + g.gradients[i]);
    out.insert(out.end(), g.carried.begin(), g.carried.end());
    for (const auto& [name, value] : g.outputs) out.push_back(value);
    stacked = std::move(g.outputs);
    return out;
  };
  const Tensors results =
      scan(o.carries, {.consts = o.consts, .xs = o.sequences, .length = Dim(batches)}, body);
  Gradients out;
  size_t at = 0;
  for (; at < l.trained.size(); ++at) out.gradients.push_back(results[at] * (1.0 / double(batches)));
  for (size_t i = 0; i < l.carried.size(); ++i) out.carried.push_back(results[at++]);
  for (const auto& [name, inside] : stacked) {
    const Tensor& all = results[at++];
    out.outputs.emplace_back(name, all.rank() == 1 && is_float(all.dtype()) ? all.mean({0}) : all);
  }
  return out;
}

namespace {

// The same graph with the params that are trained as inputs.
Graph with_trained_inputs(const ir::Graph& graph, const std::vector<std::string>& trained) {
  ir::Graph out(graph.name());
  out.assume_sizes_of(graph);
  ir::Cloner copy(out);
  for (const ir::Node* n : graph.nodes()) {
    const bool moves =
        n->is<ir::Param>() && std::find(trained.begin(), trained.end(), ir::leaf_name(*n)) != trained.end();
    if (moves) {
      copy.set(n->result(), out.input(ir::leaf_name(*n), n->shapes[0]));
    } else {
      copy.copy(*n);
    }
  }
  copy.copy_outputs(graph);
  return out;
}

// The same graph with what does not depend on `late` leaves moved to right before its first user.
ir::Graph delayed(const ir::Graph& graph, const std::vector<std::string>& late) {
  std::vector<bool> depends;
  for (const ir::Node* n : graph.nodes()) {
    if (n->id >= depends.size()) depends.resize(n->id + 1, false);
    depends[n->id] =
        n->op->traits.leaf && std::find(late.begin(), late.end(), ir::leaf_name(*n)) != late.end();
    for (const ir::Value v : n->inputs) depends[n->id] = depends[n->id] || depends[v.node];
  }
  ir::Graph out(graph.name());
  out.assume_sizes_of(graph);
  ir::Cloner copy(out);
  for (const ir::NodeId id : graph.leaves()) copy.copy(graph.node(id));
  std::vector<ir::NodeId> waiting;  // a stack: the node on top needs what is put above it
  const auto emit = [&](ir::NodeId wanted) {
    waiting.push_back(wanted);
    while (!waiting.empty()) {
      const ir::Node& n = graph.node(waiting.back());
      const size_t before = waiting.size();
      if (!copy.has(n.result())) {
        for (const ir::Value v : n.inputs) {
          if (!copy.has(v)) waiting.push_back(v.node);
        }
        if (waiting.size() > before) continue;
        copy.copy(n);
      }
      waiting.pop_back();
    }
  };
  for (const ir::Node* n : graph.nodes()) {
    if (depends[n->id] && !n->op->traits.leaf) emit(n->id);
  }
  for (const ir::Value v : graph.outputs()) emit(v.node);
  copy.copy_outputs(graph);
  return out;
}

}  // namespace

SplitGradients split_gradients_of(Graph& to, const LossGraph& l, const Leaves& leaves, const Tensor& scale,
                                  int64_t budget) {
  const transform::Partition parts =
      transform::grad_partitioned(l.graph, l.trained, transform::SavePolicy::fit_bytes, budget);
  SplitGradients out{.forward = with_trained_inputs(with_functions_open(parts.forward), l.trained),
                     .saved_bytes = parts.saved_bytes};
  const auto names = parts.forward.output_names();
  out.saved.assign(names.begin() + long(l.graph.outputs().size()), names.end());
  const auto outputs = l.graph.output_names();
  // Cotangents come last: 1 (or the scale) for the loss, 0 for what is only looked at.
  const auto all = parts.backward.leaves();
  std::vector<std::string> cotangents;
  Leaves given = leaves;
  for (size_t i = 0; i < all.size(); ++i) {
    const ir::Node& leaf = parts.backward.node(all[i]);
    const std::string& name = ir::leaf_name(leaf);
    if (given.contains(name)) continue;
    if (std::find(out.saved.begin(), out.saved.end(), name) != out.saved.end()) {
      given.emplace(name, ir::Expr{&to, to.ir::Graph::input(name, leaf.shapes[0])});
      continue;
    }
    cotangents.push_back(name);
    const bool is_loss = outputs.size() == 1 || name == "d_" + l.loss;
    const Tensor one = scale.is_empty() ? Tensor(ir::full(to, leaf.shapes[0], 1)) : scale;
    given.emplace(name, is_loss ? one.cast(leaf.shapes[0].dtype()) : Tensor(ir::full(to, leaf.shapes[0], 0)));
  }
  const ir::Exprs results = placed(to, delayed(with_functions_open(parts.backward), cotangents), given, {});
  out.gradients.assign(results.begin(), results.end());
  return out;
}

}  // namespace rlx::train
