#include "rlx/runtime/lockstep_inside.h"

#include <algorithm>

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"
#include "rlx/runtime/label.h"

namespace rlx::runtime {
namespace {

// A body as a graph of its own: what is fixed for the loop is a param of it.
ir::Graph with_params(const ir::Graph& body, const std::vector<bool>& fixed) {
  ir::Graph out(body.name());
  ir::Cloner copy(out);
  size_t leaf = 0;
  for (const ir::Node* n : body.nodes()) {
    if (!n->op->traits.leaf) {
      copy.copy(*n);
      continue;
    }
    const std::string& name = ir::leaf_name(*n);
    copy.set(n->result(), fixed[leaf++] ? out.param(name, n->shapes[0]) : out.input(name, n->shapes[0]));
  }
  copy.copy_outputs(body);
  return out;
}

/// A body, ready to run on both devices.
class Pair {
 public:
  Pair(const ir::Graph& body, const std::vector<bool>& fixed, const LockstepOptions& o, int threads)
      : graph_(with_params(body, fixed)),
        allowed_(output_tolerances(graph_, o.tolerance)),
        a_(graph_, {}, {.device = o.a, .threads = threads, .optimise = false}),
        b_(graph_, {}, {.device = o.b, .threads = threads, .optimise = false}) {
    for (const ir::NodeId id : graph_.leaves()) names_.push_back(ir::leaf_name(graph_.node(id)));
  }

  /// Results by the first device; what is wrong with those of the second.
  Literals run(const Literals& leaves, std::string& wrong) {
    NamedLiterals inputs;
    if (!has_weights_) {
      NamedLiterals weights;
      for (const Port& p : a_.params()) weights.emplace(p.name, leaves[place_of(p.name)]);
      a_.set_params(weights), b_.set_params(weights);
      has_weights_ = true;
    }
    for (const Port& p : a_.inputs()) inputs.emplace(p.name, leaves[place_of(p.name)]);
    const Literals a = results_of(a_, inputs), b = results_of(b_, inputs);
    double worst = 0;
    wrong = difference(a, b, allowed_, worst);
    return a;
  }

  /// Of these leaves, whose results differ: the first node that does, or the body as it is where none does alone.
  Parting part(const Literals& leaves, const std::string& wrong, const WalkNodes& walk) const {
    NamedLiterals values;
    for (size_t i = 0; i < names_.size(); ++i) values.emplace(names_[i], leaves[i]);
    if (std::optional<Parting> inner = walk(graph_, values)) return *std::move(inner);
    return {"the whole body", cat(wrong, "; no node differs alone"), graph_, values};
  }

 private:
  size_t place_of(const std::string& name) const {
    return size_t(std::find(names_.begin(), names_.end(), name) - names_.begin());
  }
  static Literals results_of(CompiledGraph& f, const NamedLiterals& inputs) {
    const NamedLiterals out = f.run(inputs);
    Literals results;
    for (const Port& p : f.outputs()) results.push_back(out.at(p.name));
    return results;
  }

  ir::Graph graph_;
  std::vector<double> allowed_;
  CompiledGraph a_, b_;
  std::vector<std::string> names_;
  bool has_weights_ = false;
};

class Inside {
 public:
  Inside(const ir::Node& n, const Literals& operands, const std::vector<bool>& fixed,
         const LockstepOptions& o, int threads, const WalkNodes& walk)
      : n_(n), operands_(operands), fixed_(fixed), o_(o), threads_(threads), walk_(walk) {}

  std::optional<Parting> run() {
    if (n_.is<ops::Scan>()) return scan(n_.as<ops::Scan>());
    if (n_.is<ops::While>()) return loop(n_.as<ops::While>());
    if (n_.is<ops::CustomFn>()) return once(*n_.as<ops::CustomFn>().fwd_body, 0);
    if (n_.is<ops::If>()) {
      const auto& a = n_.as<ops::If>();
      bool holds = true;
      for (int64_t i = 0; i < operands_[0].elements(); ++i)
        holds = holds && operands_[0].complex_at(i) != 0.0;
      return once(holds ? *a.then_body : *a.else_body, 1);
    }
    return std::nullopt;
  }

 private:
  // Of leaves, the first `changing` and those from `end` on change from step to step.
  std::vector<bool> fixed_leaves(size_t changing, size_t end) const {
    std::vector<bool> out = fixed_;
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] && i >= changing && i < end;
    return out;
  }

  bool parts(Pair& pair, const Literals& leaves, Literals& results, const std::string& where) {
    std::string wrong;
    results = pair.run(leaves, wrong);
    if (wrong.empty()) return false;
    found_ = pair.part(leaves, wrong, walk_);
    found_->where = cat(label_of(n_), where, ": ", found_->where);
    return true;
  }

  std::optional<Parting> once(const ir::Graph& body, size_t first) {
    Pair pair(body, {fixed_.begin() + long(first), fixed_.end()}, o_, threads_);
    Literals results;
    parts(pair, {operands_.begin() + long(first), operands_.end()}, results, "");
    return std::move(found_);
  }

  std::optional<Parting> scan(const ops::Scan::Attrs& a) {
    const auto carries = size_t(a.carries), first_slice = carries + size_t(a.consts);
    Pair pair(*a.body, fixed_leaves(carries, first_slice), o_, threads_);
    Literals leaves = operands_, results;
    for (int64_t step = 0; step < a.length.value(); ++step) {
      const int64_t t = a.reverse ? a.length.value() - 1 - step : step;
      if (a.gate == ops::ScanGate::carry && leaves[0].real_at(0) == 0) break;
      if (a.gate == ops::ScanGate::sequence && operands_[first_slice].real_at(t) == 0) continue;
      for (size_t i = first_slice; i < operands_.size(); ++i) {
        const Shape slice = a.body->node(a.body->leaves()[i]).shapes[0];
        const auto size = size_t(slice.size_bytes());
        leaves[i] = Literal::copy_of(slice, operands_[i].bytes().subspan(size_t(t) * size, size));
      }
      if (parts(pair, leaves, results, cat(", step ", step))) break;
      std::copy_n(results.begin(), carries, leaves.begin());
    }
    return std::move(found_);
  }

  std::optional<Parting> loop(const ops::While::Attrs& a) {
    const auto carries = size_t(a.carries);
    const std::vector<bool> fixed = fixed_leaves(carries, operands_.size());
    Pair condition(*a.cond, fixed, o_, threads_), body(*a.body, fixed, o_, threads_);
    Literals leaves = operands_, flags, results;
    for (int64_t step = 0; !a.max_iterations || step < *a.max_iterations; ++step) {
      if (parts(condition, leaves, flags, cat(", condition of step ", step))) break;
      bool go_on = true;
      for (int64_t i = 0; i < flags[0].elements(); ++i) go_on = go_on && flags[0].complex_at(i) != 0.0;
      if (!go_on || parts(body, leaves, results, cat(", step ", step))) break;
      std::copy_n(results.begin(), carries, leaves.begin());
    }
    return std::move(found_);
  }

  const ir::Node& n_;
  const Literals& operands_;
  const std::vector<bool>& fixed_;
  const LockstepOptions& o_;
  int threads_;
  const WalkNodes& walk_;
  std::optional<Parting> found_;
};

}  // namespace

std::optional<Parting> part_inside(const ir::Node& n, const Literals& operands,
                                   const std::vector<bool>& fixed, const LockstepOptions& o, int threads,
                                   const WalkNodes& walk) {
  return Inside(n, operands, fixed, o, threads, walk).run();
}

std::string difference(const Literals& a, const Literals& b, const std::vector<double>& allowed,
                       double& worst) {
  for (size_t i = 0; i < a.size(); ++i) {
    const Deviation d = deviation(a[i], b[i]);
    worst = std::max(worst, d.error);
    if (d.error > allowed[i])
      return cat("result ", i, " ", a[i].shape(), ": element ", d.element, " is ", d.a, " and ", d.b,
                 ", apart by ", d.error, " of ", allowed[i], " allowed");
  }
  return {};
}

}  // namespace rlx::runtime
