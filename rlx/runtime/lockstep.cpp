#include "rlx/runtime/lockstep.h"

#include <cmath>

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/runtime/core.h"
#include "rlx/runtime/devices.h"
#include "rlx/runtime/pipeline.h"

namespace rlx {
namespace {

std::string label_of(const ir::Node& n) {
  return n.name.empty() ? cat("%", n.id, " ", n.op->name) : cat(n.name, " ", n.op->name);
}

// One node on leaves of its own: weights stay weights and constants constants, since kernels are chosen by that.
ir::Graph alone(const ir::Graph& g, const ir::Node& n, const std::vector<Literals>& values,
                NamedLiterals& leaves) {
  ir::Graph one(g.name());
  ir::Cloner copy(one);
  for (const ir::Value v : n.inputs) {
    if (copy.has(v)) continue;
    const ir::Node& from = g.node(v);
    if (from.is<ir::Constant>() || from.is<ir::Full>()) {
      copy.copy(from);
      continue;
    }
    std::string name = from.op->traits.leaf ? ir::leaf_name(from)
                       : from.name.empty()  ? cat("v", v.node)
                                            : from.name;
    if (v.index > 0 || one.find_leaf(name)) name = cat(name, "_", v.node, "_", v.index);
    copy.set(v, from.is<ir::Param>() ? one.param(name, g.shape(v)) : one.input(name, g.shape(v)));
    leaves.emplace(name, values[v.node][v.index]);
  }
  copy.copy(n);
  ir::Values outputs;
  for (uint32_t i = 0; i < n.shapes.size(); ++i) outputs.push_back(copy.at(n.result(i)));
  one.set_outputs(outputs);
  return one;
}

Literals run_alone(const ir::Graph& one, const NamedLiterals& leaves, const std::string& device,
                   int threads) {
  NamedLiterals weights, inputs;
  for (const ir::NodeId id : one.leaves()) {
    const std::string& name = ir::leaf_name(one.node(id));
    (one.node(id).is<ir::Param>() ? weights : inputs).emplace(name, leaves.at(name));
  }
  CompiledGraph f = compile(one, weights, {.device = device, .threads = threads, .optimise = false});
  const NamedLiterals out = f.run(inputs);
  Literals results;
  for (const Port& p : f.outputs()) results.push_back(out.at(p.name));
  return results;
}

struct Judge {
  std::optional<double> tolerance;

  // What is wrong with b; empty when it is near enough.
  std::string differs(const Literals& a, const Literals& b, double& worst) const {
    for (size_t i = 0; i < a.size(); ++i) {
      const DType t = a[i].dtype();
      const double allowed = is_float(t) || is_complex(t) ? tolerance.value_or(default_tolerance(t)) : 0;
      const Deviation d = deviation(a[i], b[i]);
      worst = std::max(worst, d.error);
      if (d.error > allowed)
        return cat("result ", i, " ", a[i].shape(), ": element ", d.element, " is ", d.a, " and ", d.b,
                   ", apart by ", d.error, " of ", allowed, " allowed");
    }
    return {};
  }
};

Literals in_order(const ir::Graph& g, const NamedLiterals& leaves) { return ir::arrange_leaves(g, leaves); }

// The pass behind which the graph gives other numbers.
std::optional<Parting> check_passes(const ir::Graph& g, const NamedLiterals& leaves,
                                    const CompileOptions& options, const Judge& judge, ir::Graph& program) {
  const Literals expected = ir::interpret(g, in_order(g, leaves));
  std::optional<Parting> parting;
  ir::Graph before = g;
  const auto check = [&](std::string_view pass, const ir::Graph& after) {
    double worst = 0;
    if (parting) return;
    const std::string wrong = judge.differs(expected, ir::interpret(after, in_order(after, leaves)), worst);
    if (!wrong.empty()) parting = Parting{cat("pass ", pass), wrong, before, leaves};
    before = after;
  };
  std::vector<passes::Remark> remarks;
  program = runtime::specialise(runtime::optimise(g, options, check), device_named(options.device), options,
                                remarks, check);
  return parting;
}

}  // namespace

double default_tolerance(DType t) {
  switch (t) {
    case DType::f64:
      return 1e-10;
    case DType::f16:
      return 4e-3;
    case DType::bf16:
      return 3e-2;
    case DType::f8e4m3:
    case DType::f8e5m2:
      return 0.25;
    default:
      return 1e-4;
  }
}

Deviation deviation(const Literal& a, const Literal& b) {
  RLX_CHECK(a.shape() == b.shape(), "deviation of ", a.shape(), " and ", b.shape());
  Deviation out;
  double largest = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double size = std::abs(a.complex_at(i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  for (int64_t i = 0; i < a.elements(); ++i) {
    const std::complex<double> x = a.complex_at(i), y = b.complex_at(i);
    const auto apart = [&](double p, double q) {
      if (p == q || (std::isnan(p) && std::isnan(q))) return 0.0;
      return std::isfinite(p) && std::isfinite(q) ? std::fabs(p - q) / (1 + largest) : INFINITY;
    };
    const double error = std::max(apart(x.real(), y.real()), apart(x.imag(), y.imag()));
    if (error > out.error) out = {error, i, x.real(), y.real()};
  }
  return out;
}

std::vector<Literals> values_of_nodes(const ir::Graph& g, const NamedLiterals& leaves) {
  const Literals given = in_order(g, leaves);
  ir::Interpreter interpreter;
  std::vector<Literals> values(g.next_id());
  size_t leaf = 0;
  for (const ir::Node* n : g.nodes()) {
    if (n->op->traits.leaf) {
      values[n->id] = {given[leaf++]};
      continue;
    }
    Literals in;
    for (const ir::Value v : n->inputs) in.push_back(values[v.node][v.index]);
    values[n->id] = interpreter.run_node(*n, in);
  }
  return values;
}

LockstepResult run_in_lockstep(const ir::Graph& graph, const NamedLiterals& leaves,
                               const LockstepOptions& o) {
  LockstepResult out;
  CompileOptions options = o.compile;
  options.device = o.b;
  const Judge judge{o.tolerance};
  ir::Graph program("none");
  out.parting = check_passes(graph, leaves, options, judge, program);
  if (out.parting) return out;
  const Literals given = in_order(program, leaves);
  std::vector<Literals> values(program.next_id());
  size_t leaf = 0;
  for (const ir::Node* n : program.nodes()) {
    if (n->op->traits.leaf) {
      values[n->id] = {given[leaf++]};
      continue;
    }
    NamedLiterals operands;
    const ir::Graph one = alone(program, *n, values, operands);
    values[n->id] = run_alone(one, operands, o.a, options.threads);
    if (n->inputs.empty()) continue;
    double worst = 0;
    const std::string wrong =
        judge.differs(values[n->id], run_alone(one, operands, o.b, options.threads), worst);
    out.nodes.push_back({label_of(*n), worst});
    if (wrong.empty()) continue;
    out.parting =
        Parting{label_of(*n), cat(wrong, n->origin ? cat("; ", n->origin->text()) : ""), one, operands};
    return out;
  }
  return out;
}

}  // namespace rlx
