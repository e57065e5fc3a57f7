// Composites that people know by name, as functions of the model.
#include <algorithm>
#include <array>

#include "rlx/ir/leaves.h"
#include "rlx/onnx/write/writer.h"

namespace rlx::onnx {
namespace {

constexpr std::array<std::string_view, 8> kFunctions{"attention",    "fused_swiglu", "group_norm",
                                                     "layer_norm2d", "logsumexp",    "residual_rms_norm",
                                                     "rms_norm",     "rope"};

// The node alone: a graph of its operands.
ir::Graph body_of(const ir::Graph& g, const ir::Node& n) {
  ir::Graph body{std::string(n.op->name)};
  ir::Values leaves;
  for (size_t i = 0; i < n.inputs.size(); ++i)
    leaves.push_back(body.input(cat("x", i), g.shape(n.inputs[i])));
  const ir::NodeId id = body.append(*n.op, n.attrs, leaves);
  ir::Values outputs;
  for (uint32_t i = 0; i < n.shapes.size(); ++i) outputs.push_back(body.value(id, i));
  body.set_outputs(outputs);
  return body;
}

}  // namespace

bool is_function(std::string_view op) {
  return std::find(kFunctions.begin(), kFunctions.end(), op) != kFunctions.end();
}

Names Writer::inlined(const ir::Graph& body, const Names& leaves) {
  const ir::Graph g = with_counterparts(body, true);
  Writer inner(g, this);
  const auto ids = g.leaves();
  for (size_t i = 0; i < ids.size(); ++i) inner.set_name(g.node(ids[i]).result(), leaves.at(i));
  inner.write_body();
  for (file::Node& n : inner.out_.nodes) out_.nodes.push_back(std::move(n));
  for (file::Tensor& t : inner.out_.initializers) out_.initializers.push_back(std::move(t));
  kept_.insert(kept_.end(), inner.kept_.begin(), inner.kept_.end());
  Names out;
  for (const ir::Value v : g.outputs()) out.push_back(inner.name(v));
  return out;
}

// The name of the function with this body, written when it is the first.
std::string Writer::function_for(const ir::Node& n, const ir::Graph& body) {
  for (const auto& [known, name] : root_->function_bodies_) {
    if (known == body) return name;
  }
  const ir::Graph g = with_counterparts(body, true);
  Writer w(g, nullptr);
  w.in_function_ = true;
  file::Function f;
  for (const ir::NodeId id : g.inputs()) {
    f.inputs.push_back(ir::leaf_name(g.node(id)));
    w.set_name(g.node(id).result(), f.inputs.back());
  }
  w.learn_symbols();
  w.write_body();
  for (const ir::Value v : g.outputs()) f.outputs.push_back(w.node("Identity", {w.name(v)}));
  size_t same = 1;
  for (const file::Function& other : root_->functions_) same += other.name.starts_with(n.op->name);
  f.name = same == 1 ? std::string(n.op->name) : cat(n.op->name, "_", same);
  f.domain = kFunctionDomain;
  f.nodes = std::move(w.out_.nodes);
  root_->kept_.insert(root_->kept_.end(), w.kept_.begin(), w.kept_.end());
  root_->functions_.push_back(std::move(f));
  root_->function_bodies_.emplace_back(body, root_->functions_.back().name);
  return root_->functions_.back().name;
}

Names Writer::write_function(const ir::Node& n) {
  Names in;
  for (const ir::Value v : n.inputs) in.push_back(name(v));
  const ir::Graph body = body_of(graph_, n);
  std::string called;
  try {
    called = function_for(n, body);
  } catch (const Error&) {
    // A size that no operand has: only the graph around knows it.
    return inlined(body, in);
  }
  Names out = nodes(called, in, {}, int(n.shapes.size()));
  out_.nodes.back().domain = kFunctionDomain;
  return out;
}

}  // namespace rlx::onnx
