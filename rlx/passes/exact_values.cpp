#include "rlx/passes/exact_values.h"

#include <set>

#include "rlx/ir/bodies.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/math.h"

namespace rlx::passes {
namespace {

// Functions of an angle: in 16 bits a large one is off by whole turns.
bool is_turn(const ir::Node& n) { return n.is<ops::Sin>() || n.is<ops::Cos>() || n.is<ops::Tan>(); }

class Finder {
 public:
  Finder(const ir::Graph& g, const std::vector<bool>& outputs) : g_(g) {
    found_.nodes.resize(g.next_id(), false);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i]) mark(g.outputs()[i]);
    }
    const auto nodes = g.nodes();
    for (size_t i = nodes.size(); i-- > 0;) visit(*nodes[i]);
    for (const ir::NodeId id : g.leaves()) found_.leaves.push_back(found_.nodes[id]);
  }

  ExactValues take() { return std::move(found_); }

 private:
  void mark(ir::Value v) {
    values_.insert({v.node, v.index});
    found_.nodes[v.node] = true;
  }

  void visit(const ir::Node& n) {
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      if (is_index(g_, n, k)) mark(n.inputs[k]);
    }
    if (n.is<ops::Scan>()) return scan(n);
    if (n.is<ops::While>()) return repeat(n);
    if (n.is<ops::If>()) return branch(n);
    if (is_turn(n)) found_.nodes[n.id] = true;
    if (found_.nodes[n.id]) {
      for (const ir::Value v : n.inputs) mark(v);
    }
    ir::for_each_body(n, [&](const ir::FieldInfo&, const ir::GraphRef& body) { call(n, *body); });
  }

  std::vector<bool> wanted_of(const ir::Node& n) const {
    std::vector<bool> out;
    for (uint32_t i = 0; i < n.shapes.size(); ++i) out.push_back(values_.contains({n.id, uint16_t(i)}));
    return out;
  }

  void mark_operands(const ir::Node& n, size_t first, const std::vector<bool>& leaves) {
    for (size_t i = 0; i < leaves.size() && first + i < n.inputs.size(); ++i) {
      if (leaves[i]) mark(n.inputs[first + i]);
    }
  }

  // A carry that is exact on one side of a step is so on the other.
  void loop(const ir::Node& n, const ir::Graph& body, size_t carries, std::vector<bool> wanted) {
    std::vector<bool> leaves;
    for (bool again = true; again;) {
      again = false;
      leaves = exact_values(body, wanted).leaves;
      for (size_t c = 0; c < carries; ++c) {
        again = again || (leaves[c] && !wanted[c]);
        wanted[c] = leaves[c] = wanted[c] || leaves[c];
      }
    }
    mark_operands(n, 0, leaves);
    found_.body_outputs[n.id] = std::move(wanted);
  }

  void scan(const ir::Node& n) {
    const auto& a = n.as<ops::Scan>();
    std::vector<bool> wanted = wanted_of(n);
    if (a.gate == ops::ScanGate::carry) wanted[0] = true;
    loop(n, *a.body, size_t(a.carries), std::move(wanted));
  }

  void repeat(const ir::Node& n) {
    const auto& a = n.as<ops::While>();
    std::vector<bool> wanted = wanted_of(n);
    const std::vector<bool> read = exact_values(*a.cond, {true}).leaves;
    for (size_t c = 0; c < wanted.size(); ++c) wanted[c] = wanted[c] || read[c];
    mark_operands(n, 0, read);
    loop(n, *a.body, size_t(a.carries), std::move(wanted));
  }

  void branch(const ir::Node& n) {
    const auto& a = n.as<ops::If>();
    const std::vector<bool> wanted = wanted_of(n);
    for (const ir::GraphRef& body : {a.then_body, a.else_body})
      mark_operands(n, 1, exact_values(*body, wanted).leaves);
    found_.body_outputs[n.id] = wanted;
  }

  // A body that stands for the node: its leaves are the operands.
  void call(const ir::Node& n, const ir::Graph& body) {
    if (body.leaves().size() != n.inputs.size() || body.outputs().size() != n.shapes.size()) return;
    const std::vector<bool> wanted = wanted_of(n);
    mark_operands(n, 0, exact_values(body, wanted).leaves);
    found_.body_outputs[n.id] = wanted;
  }

  const ir::Graph& g_;
  std::set<std::pair<ir::NodeId, uint16_t>> values_;
  ExactValues found_;
};

}  // namespace

ExactValues exact_values(const ir::Graph& g, const std::vector<bool>& outputs) {
  return Finder(g, outputs).take();
}

Shapes infer_types(const ir::Node& n, const Shapes& in) {
  const std::shared_ptr<void> attrs = n.op->copy_attrs(n.attrs.get());
  std::vector<ir::Constraint> equations;
  ir::Infer context(*n.op, in, &equations);
  return n.op->infer(context, attrs.get());
}

bool picks_places(const ir::Graph& g, const ir::Node& n, size_t operand) {
  Shapes in;
  for (const ir::Value v : n.inputs) in.push_back(g.shape(v));
  const DType t = in[operand].dtype();
  if (n.is<ops::Cast>() || (t != DType::f32 && !is_integer(t))) return false;
  in[operand] = in[operand].with_dtype(t == DType::f32 ? DType::i32 : DType::f32);
  try {
    return infer_types(n, in) == n.shapes;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::internal) throw;
    return false;
  }
}

bool is_index(const ir::Graph& g, const ir::Node& n, size_t operand) {
  if (g.shape(n.inputs[operand]).dtype() != DType::f32) return false;
  // A cast takes any number; whole ones are made of exact values.
  if (n.is<ops::Cast>()) return !is_float(n.shapes[0].dtype()) && !is_complex(n.shapes[0].dtype());
  return picks_places(g, n, operand);
}

}  // namespace rlx::passes
