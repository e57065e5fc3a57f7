#include "rlx/runtime/lockstep.h"

#include <algorithm>

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/runtime/core.h"
#include "rlx/runtime/devices.h"
#include "rlx/runtime/label.h"
#include "rlx/runtime/lockstep_inside.h"
#include "rlx/runtime/pipeline.h"
#include "rlx/runtime/reduce.h"

namespace rlx {

using runtime::difference;

namespace {

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
  return run_compiled(one, leaves, {.device = device, .threads = threads, .optimise = false});
}

CompileOptions of_second(const LockstepOptions& o) {
  CompileOptions options = o.compile;
  options.device = o.b;
  return options;
}

Literals run_second(const ir::Graph& g, const NamedLiterals& leaves, const LockstepOptions& o) {
  return o.run_b ? o.run_b(g, leaves) : run_compiled(g, leaves, of_second(o));
}

Literals in_order(const ir::Graph& g, const NamedLiterals& leaves) { return ir::arrange_leaves(g, leaves); }

// The pass behind which the graph gives other numbers.
std::optional<Parting> check_passes(const ir::Graph& g, const NamedLiterals& leaves, const LockstepOptions& o,
                                    const CompileOptions& options, ir::Graph& program) {
  const Literals expected = ir::interpret(g, in_order(g, leaves));
  // Passes store values less exactly when they are told to, and leave out roundings: either graph may be the less exact.
  const std::vector<double> given = output_tolerances(g, o.tolerance);
  std::optional<Parting> parting;
  ir::Graph before = g;
  const auto check = [&](std::string_view pass, const ir::Graph& after) {
    double worst = 0;
    if (parting) return;
    std::vector<double> allowed = output_tolerances(after, o.tolerance);
    for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = std::max(allowed[i], given[i]);
    const std::string wrong =
        difference(expected, ir::interpret(after, in_order(after, leaves)), allowed, worst);
    if (!wrong.empty()) parting = Parting{cat("pass ", pass), wrong, before, leaves};
    before = after;
  };
  std::vector<passes::Remark> remarks;
  program = runtime::specialise(runtime::optimise(g, options, check), device_named(options.device), options,
                                remarks, check);
  return parting;
}

// The program one node at a time, on both devices.
class Walk {
 public:
  Walk(const ir::Graph& program, const LockstepOptions& o, int threads)
      : program_(program), o_(o), threads_(threads), a_(program.next_id()), b_(program.next_id()) {}

  void run(const NamedLiterals& leaves, LockstepResult& out) {
    const Literals given = in_order(program_, leaves);
    size_t leaf = 0;
    for (const ir::Node* n : program_.nodes()) {
      if (n->op->traits.leaf) {
        a_[n->id] = b_[n->id] = {given[leaf++]};
        continue;
      }
      if (!step(*n, out)) return;
    }
  }

  // Outputs by the first device, and how far the second is from them when each of its nodes reads what it made itself. No
  // node is wrong then: so far rounding alone takes them apart.
  Literals outputs() const { return outputs_of(a_); }
  std::vector<double> drift() const {
    const Literals a = outputs_of(a_), b = outputs_of(b_);
    std::vector<double> out;
    for (size_t i = 0; i < a.size(); ++i) out.push_back(deviation(a[i], b[i]).error);
    return out;
  }

 private:
  bool step(const ir::Node& n, LockstepResult& out) {
    NamedLiterals operands, own;
    const ir::Graph one = alone(program_, n, a_, operands);
    a_[n.id] = run_alone(one, operands, o_.a, threads_);
    if (n.inputs.empty()) {
      b_[n.id] = a_[n.id];
      return true;
    }
    const Literals beside = run_alone(one, operands, o_.b, threads_);
    std::vector<double> allowed = output_tolerances(one, o_.tolerance);
    double worst = 0;
    const std::string wrong = difference(a_[n.id], beside, allowed, worst);
    out.nodes.push_back({runtime::label_of(n), worst});
    if (!wrong.empty()) {
      out.parting = Parting{runtime::label_of(n), cat(wrong, n.origin ? cat("; ", n.origin->text()) : ""),
                            one, operands};
      if (auto inside = look_inside(n)) out.parting = std::move(inside);
      return false;
    }
    const ir::Graph same = alone(program_, n, b_, own);
    b_[n.id] = operands == own ? beside : run_alone(same, own, o_.b, threads_);
    return true;
  }

  // A loop or branch: the first node in it that differs.
  std::optional<Parting> look_inside(const ir::Node& n) const {
    Literals operands;
    std::vector<bool> fixed;
    for (const ir::Value v : n.inputs) {
      const ir::Node& from = program_.node(v);
      operands.push_back(a_[v.node][v.index]);
      fixed.push_back(from.is<ir::Param>() || from.is<ir::Constant>() || from.is<ir::Full>());
    }
    return runtime::part_inside(n, operands, fixed, o_, threads_,
                                [&](const ir::Graph& body, const NamedLiterals& leaves) {
                                  LockstepResult inside;
                                  Walk(body, o_, threads_).run(leaves, inside);
                                  return std::move(inside.parting);
                                });
  }

  Literals outputs_of(const std::vector<Literals>& values) const {
    Literals out;
    for (const ir::Value v : program_.outputs()) out.push_back(values[v.node][v.index]);
    return out;
  }

  const ir::Graph& program_;
  const LockstepOptions& o_;
  int threads_;
  std::vector<Literals> a_, b_;  // by node id
};

// Rounding that the nodes do not show, since a kernel adds in another order where its operands lie otherwise, stays within
// a few times what they show.
constexpr double kMoreThanDrift = 4;

// Where the outputs of the whole program lie apart though no node does: made as small as it still is so.
std::optional<Parting> check_whole(const ir::Graph& g, const NamedLiterals& leaves, const LockstepOptions& o,
                                   const Walk& walk, double& worst) {
  const Literals expected = walk.outputs(), got = run_second(g, leaves, o);
  const std::vector<double> drift = walk.drift();
  std::vector<double> allowed = output_tolerances(g, o.tolerance);
  for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = std::max(allowed[i], kMoreThanDrift * drift[i]);
  const std::string wrong = difference(expected, got, allowed, worst);
  if (wrong.empty()) return {};
  double least = 0;
  for (size_t i = 0; i < drift.size(); ++i) {
    if (deviation(expected[i], got[i]).error > allowed[i]) least = std::max(least, kMoreThanDrift * drift[i]);
  }
  Parting p{"the whole program", cat(wrong, "; no node differs alone"), g, leaves};
  try {
    Reduced r = reduce_graph(g, leaves, [&](const ir::Graph& piece, const NamedLiterals& values) {
      return outputs_part(piece, values, o, least);
    });
    p.graph = std::move(r.graph);
    p.values = std::move(r.values);
  } catch (const Error&) {  // it shows through the passes of this graph only
  }
  return p;
}

}  // namespace

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

Literals run_compiled(const ir::Graph& g, const NamedLiterals& leaves, const CompileOptions& options) {
  NamedLiterals weights, inputs;
  for (const ir::NodeId id : g.leaves()) {
    const std::string& name = ir::leaf_name(g.node(id));
    (g.node(id).is<ir::Param>() ? weights : inputs).emplace(name, leaves.at(name));
  }
  CompiledGraph f = compile(g, weights, options);
  const NamedLiterals out = f.run(inputs);
  Literals results;
  for (const Port& p : f.outputs()) results.push_back(out.at(p.name));
  return results;
}

bool outputs_part(const ir::Graph& g, const NamedLiterals& leaves, const LockstepOptions& o, double least) {
  const Literals a = run_compiled(g, leaves, {.device = o.a});
  Literals b;
  try {
    b = run_second(g, leaves, o);
  } catch (const Error&) {
    return true;
  }
  std::vector<double> allowed = output_tolerances(g, o.tolerance);
  for (double& t : allowed) t = std::max(t, least);
  double worst = 0;
  return !difference(a, b, allowed, worst).empty();
}

LockstepResult run_in_lockstep(const ir::Graph& graph, const NamedLiterals& leaves,
                               const LockstepOptions& o) {
  LockstepResult out;
  const CompileOptions options = of_second(o);
  ir::Graph program("none");
  out.parting = check_passes(graph, leaves, o, options, program);
  if (out.parting) return out;
  Walk walk(program, o, options.threads);
  walk.run(leaves, out);
  if (!out.parting) out.parting = check_whole(graph, leaves, o, walk, out.whole);
  return out;
}

}  // namespace rlx
