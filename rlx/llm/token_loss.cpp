#include "rlx/llm/token_loss.h"

#include <algorithm>

#include "rlx/base/error.h"
#include "rlx/ir/clone.h"
#include "rlx/ir/inline.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/transform/transform.h"

namespace rlx::llm {
namespace {

constexpr int64_t kTogether = 16;  // tokens that products take at once

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

ir::Value output_named(const ir::Graph& g, std::string_view name) {
  const auto names = g.output_names();
  const auto it = std::find(names.begin(), names.end(), name);
  RLX_CHECK(it != names.end(), "graph '", g.name(), "' has no output ", name);
  return g.outputs()[size_t(it - names.begin())];
}

// Nodes that `wanted` needs when `given` is known; empty if one of them is an input.
std::vector<bool> needed_nodes(const ir::Graph& g, ir::Value wanted, ir::Value given) {
  std::vector<bool> needed;
  std::vector<ir::NodeId> work;
  const auto ask = [&](ir::Value v) {
    if (v == given) return;
    if (v.node >= needed.size()) needed.resize(v.node + 1, false);
    if (!needed[v.node]) work.push_back(v.node);
    needed[v.node] = true;
  };
  ask(wanted);
  while (!work.empty()) {
    const ir::Node& n = g.node(work.back());
    work.pop_back();
    if (n.is<ir::Input>()) return {};
    for (const ir::Value v : n.inputs) ask(v);
  }
  return needed;
}

// Operands of `graph` by the names of its leaves: the given ones, else params of their own name.
template <class Given>
ir::Exprs operands_of(const ir::Graph& graph, const Given& given) {
  ir::Exprs out;
  for (const ir::NodeId id : graph.leaves()) out.push_back(given(graph.node(id)));
  return out;
}

// Losses of so many rows: hidden [1, rows, size], targets [rows], the params of the head as inputs -> nll [rows]; with the gradient
// of their sum by hidden behind it.
ir::Graph part_graph(const Graph& head, int64_t rows, bool with_gradient) {
  const Graph fixed = head.bind({{"batch", 1}, {"seq", rows}});
  Graph g("token_losses");
  Tracer t(g);
  const ir::Exprs leaves = operands_of(fixed, [&](const ir::Node& leaf) {
    return ir::Expr(t.input(ir::leaf_name(leaf), leaf.shapes[0].dims(), leaf.shapes[0].dtype()));
  });
  const Tensor targets = t.input("targets", {rows}, DType::i32);
  const Tensor logits = ir::inline_graph(g, fixed, leaves)[0];
  const Tensor nll = softmax_cross_entropy_with_logits(logits.reshape({rows, logits.dim(-1)}), targets);
  if (!with_gradient) {
    g.set_outputs({nll}, {"nll"});
    return g;
  }
  g.set_outputs({nll, nll.sum({0})}, {"nll", "total"});
  return transform::value_and_grad(g, {"hidden"}, {.loss = "total"});
}

// All rows, part by part: hidden [n, size], targets [n], params -> nll [n] and, with the gradient, d nll[i] / d hidden[i] [n, size].
Graph all_rows(const Graph& head, const Shape& hidden, bool with_gradient, int64_t logit_bytes) {
  const int64_t n = hidden.dim(0).value(), size = hidden.dim(1).value();
  const int64_t vocab = head.shape(head.outputs()[0]).dim(-1).value();
  const int64_t parts = ceil_div(n * vocab * 4, logit_bytes),
                rows = ceil_div(ceil_div(n, parts), kTogether) * kTogether;
  Graph g("token_losses");
  Tracer t(g);
  const Tensor x = t.input("hidden", hidden.dims(), hidden.dtype()),
               targets = t.input("targets", {n}, DType::i32);
  for (const ir::NodeId id : head.leaves()) {
    const ir::Node& leaf = head.node(id);
    if (leaf.is<ir::Param>()) t.input(ir::leaf_name(leaf), leaf.shapes[0].dims(), leaf.shapes[0].dtype());
  }
  Tensors losses, gradients;
  for (int64_t first = 0; first < n; first += rows) {
    const int64_t count = std::min(rows, n - first);
    const ir::Graph part = part_graph(head, count, with_gradient);
    const ir::Exprs leaves = operands_of(part, [&](const ir::Node& leaf) -> ir::Expr {
      const std::string& name = ir::leaf_name(leaf);
      if (name == "hidden") return x.narrow(0, first, count).reshape({1, count, size});
      if (name == "targets") return targets.narrow(0, first, count);
      return {&g, g.value(*g.find_leaf(name))};
    });
    const ir::Exprs results = ir::inline_graph(g, part, leaves);
    losses.push_back(results[0]);
    if (with_gradient) gradients.push_back(Tensor(results[2]).reshape({count, size}));
  }
  const auto joined = [](const Tensors& list) {
    return list.size() == 1 ? list[0] : concat(list, {.axis = 0});
  };
  with_gradient ? g.set_outputs({joined(losses), joined(gradients)}) : g.set_outputs({joined(losses)});
  return g;
}

// d hidden[i] = d nll[i] times the gradient kept.
Graph backward_of(const Graph& forward) {
  Graph g("token_losses_gradient");
  Tracer t(g);
  Tensors operands;
  for (const ir::NodeId id : forward.leaves()) {
    const Shape& s = forward.node(id).shapes[0];
    operands.push_back(t.input(ir::leaf_name(forward.node(id)), s.dims(), s.dtype()));
  }
  const Shape losses = forward.shape(forward.outputs()[0]), kept = forward.shape(forward.outputs()[1]);
  t.input("primal_output_0", losses.dims());
  const Tensor slopes = t.input("primal_output_1", kept.dims());
  const Tensor from_above = t.input("d_output_0", losses.dims());
  t.input("d_output_1", kept.dims());
  Values out{slopes * from_above.unsqueeze(1)};
  for (size_t i = 1; i < operands.size(); ++i) out.push_back(operands[i].zeros_like());
  g.set_outputs(out);
  return g;
}

}  // namespace

std::optional<Graph> head_of(const Graph& model) {
  const ir::Value hidden = output_named(model, "hidden"), logits = output_named(model, "logits");
  const std::vector<bool> needed = needed_nodes(model, logits, hidden);
  if (needed.empty()) return std::nullopt;
  ir::Graph out("head");
  ir::Cloner copy(out);
  copy.set(hidden, out.input("hidden", model.shape(hidden)));
  for (const ir::Node* n : model.nodes()) {
    if (n->id < needed.size() && needed[n->id] && !copy.has(n->result())) copy.copy(*n);
  }
  out.set_outputs({copy.at(logits)}, {"logits"});
  return Graph(std::move(out));
}

Tensor token_losses(const Graph& head, const Tensor& hidden, const Tensor& targets, bool trainable,
                    int64_t logit_bytes) {
  ir::Graph& g = hidden.graph();
  Graph forward = all_rows(head, hidden.shape(), trainable, logit_bytes);
  const ir::Exprs operands = operands_of(forward, [&](const ir::Node& leaf) -> ir::Expr {
    const std::string& name = ir::leaf_name(leaf);
    if (name == "hidden") return hidden;
    if (name == "targets") return targets;
    const auto known = g.find_leaf(name);
    return {&g, known ? g.value(*known) : g.param(name, leaf.shapes[0])};
  });
  if (!trainable) return ir::inline_graph(g, forward, operands)[0];
  Graph backward = backward_of(forward);
  return ops::custom_fn(g, operands, std::move(forward), std::move(backward))[0];
}

}  // namespace rlx::llm
