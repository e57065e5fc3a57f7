#include "rlx/train/step_graph.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "rlx/base/error.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/operators.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/passes/precision.h"
#include "rlx/train/gradients.h"
#include "rlx/train/init.h"

namespace rlx::train {
namespace {

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const auto& p) { return matches(p, name); });
}

void require(bool condition, const std::string& message) {
  if (!condition) throw invalid("train: ", message);
}

bool is_positive(double x) { return x > 0 && std::isfinite(x); }

void check_loss_scale(const LossScale& l) {
  require(is_positive(l.initial), cat("a loss scale of ", l.initial, "; above 0 and finite is needed"));
  require(l.growth >= 1 && std::isfinite(l.growth),
          cat("a loss scale that grows by a factor of ", l.growth, "; at least 1 and finite is needed"));
  require(l.backoff > 0 && l.backoff < 1,
          cat("a loss scale that falls by a factor of ", l.backoff, "; a number between 0 and 1 is needed"));
  require(l.interval >= 1, cat("a loss scale that grows after ", l.interval, " steps; at least 1 is needed"));
}

void check_options(const TrainOptions& o) {
  require(o.accumulate >= 1, cat("gradients of ", o.accumulate, " batches; at least 1"));
  require(!o.clip_value || *o.clip_value > 0,
          cat("gradients limited to ", o.clip_value.value_or(0), "; a number above 0 is needed"));
  require(!o.clip_norm || *o.clip_norm > 0,
          cat("the norm of gradients limited to ", o.clip_norm.value_or(0), "; a number above 0 is needed"));
  require(
      !o.average || (*o.average >= 0 && *o.average < 1),
      cat("averaged weights with a decay of ", o.average.value_or(0), "; at least 0 and below 1 is needed"));
  require(!o.mixed || *o.mixed == DType::bf16 || *o.mixed == DType::f16,
          "mixed precision computes in bf16 or f16");
  require(bool(o.optimizer.update), "the optimizer has no update");
  require(bool(o.rate), "there is no learning rate");
  require(o.compile.states.empty(),
          "the options of compiling have states; those of the model stand in TrainOptions::states");
  for (const WeightRule& r : o.rules) {
    require(r.rate_factor >= 0 && std::isfinite(r.rate_factor),
            cat("the rule for '", r.names, "' has a rate factor of ", r.rate_factor,
                "; at least 0 and finite is needed"));
    const double decay = r.weight_decay.value_or(0);
    require(decay >= 0 && std::isfinite(decay), cat("the rule for '", r.names, "' has a weight decay of ",
                                                    decay, "; at least 0 and finite is needed"));
  }
  if (o.loss_scale) check_loss_scale(*o.loss_scale);
  if (o.activation_budget) {
    require(*o.activation_budget >= 0,
            cat("an activation budget of ", *o.activation_budget, " bytes; at least 0 is needed"));
    require(o.accumulate == 1, "an activation budget and gradients of several batches do not go together");
    require(o.states.empty(), "an activation budget and states of the model do not go together");
  }
}

// Sums, squares and steps of 16 bits lose themselves: eps becomes 0, and 0.999 v is v.
Tensor wide(const Tensor& t) {
  return t.dtype() == DType::f16 || t.dtype() == DType::bf16 ? t.cast(DType::f32) : t;
}

// Products, what is done with elements and moves of them are narrow; losses, norms, softmax, sums and functions that need the
// range or the digits of f32 are not.
passes::PrecisionPolicy mixed_policy(DType narrow) {
  passes::PrecisionPolicy p = passes::PrecisionPolicy::all(narrow);
  p.reduction = DType::f32;
  p.keep = {"exp", "expm1", "log", "log1p", "pow", "div", "sqrt", "rsqrt", "tan", "erf", "softplus"};
  return p;
}

// Each an input and an output of one type, in one pair.
void check_states(const ir::Graph& g, const TrainOptions& o, const std::string& loss) {
  std::vector<std::string> problems, taken, inputs;
  const auto names = g.output_names();
  for (const ir::NodeId id : g.inputs()) inputs.push_back(ir::leaf_name(g.node(id)));
  const auto is_new = [&](const std::string& name) {
    const bool known = std::find(taken.begin(), taken.end(), name) != taken.end();
    taken.push_back(name);
    return !known;
  };
  for (const StatePair& s : o.states) {
    const bool is_input = std::find(inputs.begin(), inputs.end(), s.input) != inputs.end();
    const auto output = std::find(names.begin(), names.end(), s.output);
    if (!is_input)
      problems.push_back(cat("state '", s.input, "' is no input of the graph, which takes ",
                             inputs.empty() ? "none" : join(inputs)));
    if (output == names.end()) {
      problems.push_back(
          cat("state '", s.input, "' becomes '", s.output, "', which is no output; there are ", join(names)));
    } else if (s.output == loss) {
      problems.push_back(cat("the loss '", loss, "' cannot be a state"));
    } else if (is_input) {
      const Shape &before = g.node(*g.find_leaf(s.input)).shapes[0],
                  &after = g.shape(g.outputs()[size_t(output - names.begin())]);
      if (before != after)
        problems.push_back(
            cat("state '", s.input, "' is ", before, " and becomes ", after, "; both must be of one type"));
    }
    if (!is_new(cat("in ", s.input))) problems.push_back(cat("state '", s.input, "' is in two pairs"));
    if (!is_new(cat("out ", s.output))) problems.push_back(cat("output '", s.output, "' is in two pairs"));
  }
  require(problems.empty(), join(problems, "; "));
}

// The loss graph in the types it is computed in, and what is trained of it. Leaves stay f32, so gradients by them are f32.
LossGraph read_loss(const ir::Graph& given, const TrainOptions& o) {
  LossGraph l{.graph = o.mixed ? passes::apply_precision(given, mixed_policy(*o.mixed), true) : given};
  const auto names = given.output_names();
  require(!names.empty(), cat("graph '", given.name(), "' has no outputs"));
  l.loss = o.loss.empty() ? names[0] : o.loss;
  std::vector<std::string> params;
  for (const ir::NodeId id : given.params()) {
    const std::string& name = ir::leaf_name(given.node(id));
    params.push_back(name);
    const Shape& shape = given.node(id).shapes[0];
    if (!is_float(shape.dtype()) || matches_any(o.frozen, name)) continue;
    require(shape.is_static(), cat("param '", name, "' is ", shape, "; bind its symbols first"));
    l.trained.push_back(name);
  }
  for (const std::string& pattern : o.frozen)
    require(std::any_of(params.begin(), params.end(), [&](const auto& p) { return matches(pattern, p); }),
            cat("'", pattern, "' is to be frozen, but no param has that name; there are ", join(params)));
  for (const WeightRule& rule : o.rules)
    require(
        std::any_of(params.begin(), params.end(), [&](const auto& p) { return matches(rule.names, p); }),
        cat("there is a rule for '", rule.names, "', but no param has that name; there are ", join(params)));
  require(!l.trained.empty(), cat("graph '", given.name(), "' has no params to train"));
  check_states(given, o, l.loss);
  for (const StatePair& s : o.states) {
    l.carried.push_back(s.input);
    l.left.push_back(s.output);
  }
  return l;
}

class StepBuilder {
 public:
  StepBuilder(const ir::Graph& loss, const TrainOptions& options)
      : options_(options), loss_(read_loss(loss, options)), out_{.graph = Graph(cat("train_", loss.name()))} {
    if (options.loss_scale) scaling_ = options.loss_scale;
    if (!scaling_ && options.mixed == DType::f16) scaling_ = LossScale();
    out_.trained = loss_.trained;
    out_.loss = loss_.loss;
  }

  StepGraph build() {
    add_leaves();
    Gradients g = add_gradients();
    outputs_ = std::move(g.outputs);
    prepare(g.gradients);
    update(g.gradients);
    for (size_t i = 0; i < g.carried.size(); ++i) next_state(loss_.carried[i], g.carried[i]);
    if (scaling_) hold_back();
    read_narrow();
    finish();
    return std::move(out_);
  }

 private:
  struct Held {
    std::string leaf;
    Tensor before, after;
  };

  Graph& graph() { return out_.graph; }
  Tensor input(const std::string& name, const Shape& shape) {
    return ir::Expr{&graph(), graph().ir::Graph::input(name, shape)};
  }
  Tensor new_state(const std::string& name, const Shape& shape, double initial, bool weight = false) {
    const Tensor leaf = input(name, shape);
    out_.states.push_back({name, initial, weight});
    held_.push_back({name, leaf, {}});
    return leaf;
  }
  void next_state(const std::string& name, const Tensor& after) {
    for (Held& h : held_) {
      if (h.leaf == name) h.after = after;
    }
  }

  void add_leaves() {
    const auto& trained = loss_.trained;
    for (const ir::NodeId id : loss_.graph.leaves()) {
      const ir::Node& leaf = loss_.graph.node(id);
      const std::string& name = ir::leaf_name(leaf);
      const Shape& shape = leaf.shapes[0];
      if (std::find(trained.begin(), trained.end(), name) != trained.end()) {
        leaves_.emplace(name, new_state(name, shape, 0, true));
        if (is_rounded(leaf)) narrow_.emplace_back(name, new_narrow(name, shape.with_dtype(*options_.mixed)));
      } else if (leaf.is<ir::Param>()) {
        leaves_.emplace(name, Tensor(ir::Expr{&graph(), graph().ir::Graph::param(name, shape)}));
      } else if (std::find(loss_.carried.begin(), loss_.carried.end(), name) != loss_.carried.end()) {
        leaves_.emplace(name, new_state(name, shape, 0));
      } else {
        leaves_.emplace(name, input(name, options_.accumulate > 1 ? several(shape) : shape));
      }
    }
    rate_ = input("train/rate", Shape::scalar(DType::f64));
    count_ = new_state("train/count", Shape::scalar(DType::f64), 0) + 1.0;
    next_state("train/count", count_);
    if (scaling_) scale_ = new_state("train/scale", Shape::scalar(DType::f32), scaling_->initial);
  }

  // Whether a cast to the type of mixed precision reads this leaf, in every step.
  bool is_rounded(const ir::Node& leaf) const {
    if (!options_.mixed || !options_.keep_narrow || options_.accumulate > 1 || options_.activation_budget)
      return false;
    return std::any_of(leaf.uses.begin(), leaf.uses.end(), [&](const ir::Use& u) {
      return u.user != ir::kNoNode && rounds(loss_.graph.node(u.user));
    });
  }
  bool rounds(const ir::Node& n) const { return n.is<ops::Cast>() && n.shapes[0].dtype() == *options_.mixed; }
  Tensor new_narrow(const std::string& weight, const Shape& shape) {
    const Tensor leaf = new_state(cat("narrow/", weight), shape, 0);
    out_.states.back().narrow_of = weight;
    return leaf;
  }

  Shape several(const Shape& one) const {
    Dims dims = {Dim(options_.accumulate)};
    dims.insert(dims.end(), one.dims().begin(), one.dims().end());
    return one.with_dims(dims);
  }

  Gradients add_gradients() {
    const ir::LabelScope scope(graph(), "gradients");
    if (options_.activation_budget) {
      SplitGradients s = split_gradients_of(graph(), loss_, leaves_, scale_, *options_.activation_budget);
      out_.forward = std::move(s.forward);
      out_.saved = std::move(s.saved);
      out_.saved_bytes = s.saved_bytes;
      return {.outputs = {}, .gradients = std::move(s.gradients), .carried = {}};
    }
    return options_.accumulate > 1 ? mean_gradients_of(graph(), loss_, leaves_, scale_, options_.accumulate)
                                   : gradients_of(graph(), loss_, leaves_, scale_);
  }

  // Unscaled, checked and limited.
  void prepare(Tensors& gradients) {
    const ir::LabelScope scope(graph(), "clip");
    for (Tensor& g : gradients) g = wide(g);
    if (scaling_) {
      finite_ = {};
      for (Tensor& g : gradients) {
        g = g * (1.0 / scale_).cast(g.dtype());
        const Tensor good = all(is_finite(g));
        finite_ = finite_.is_empty() ? good : logical_and(finite_, good);
      }
    }
    if (options_.clip_value) {
      for (Tensor& g : gradients) g = g.clamp(-*options_.clip_value, *options_.clip_value);
    }
    if (!options_.clip_norm) return;
    Tensor square;
    for (const Tensor& g : gradients) {
      const Tensor part = (g * g).sum().cast(DType::f64);
      square = square.is_empty() ? part : square + part;
    }
    const Tensor norm = square.sqrt();
    const Tensor factor = (*options_.clip_norm / (norm + 1e-6)).min(1.0);
    for (Tensor& g : gradients) g = g * factor.cast(g.dtype());
    outputs_.emplace_back("train/grad_norm", norm);
  }

  void update(const Tensors& gradients) {
    const ir::LabelScope scope(graph(), "optimizer");
    std::vector<Trained> trained;
    std::map<double, Tensor> rates = {{1.0, rate_}};  // by factor
    for (size_t i = 0; i < gradients.size(); ++i) {
      const std::string& name = loss_.trained[i];
      Trained p{.name = name, .value = wide(leaves_.at(name)), .gradient = gradients[i], .rate64 = rate_};
      const auto rule = std::find_if(options_.rules.begin(), options_.rules.end(),
                                     [&](const WeightRule& r) { return matches(r.names, name); });
      if (rule != options_.rules.end()) {
        const auto [rate, is_new] = rates.try_emplace(rule->rate_factor);
        if (is_new) rate->second = rate_ * rule->rate_factor;
        p.rate64 = rate->second;
        p.weight_decay = rule->weight_decay;
      }
      p.rate = p.rate64.cast(p.value.dtype());
      trained.push_back(std::move(p));
    }
    Update u(graph(), count_, std::move(trained));
    options_.optimizer.update(u);
    for (const Update::State& s : u.states()) {
      const std::string leaf = cat("optimizer/", s.name);
      out_.states.push_back({leaf, s.initial});
      held_.push_back({leaf, s.before, s.after});
    }
    for (const Trained& p : u.trained()) {
      if (p.next.is_empty() || p.next.shape() != p.value.shape())
        throw invalid("train: optimizer '", options_.optimizer.name, "' gives ",
                      p.next.is_empty() ? "no value" : cat(p.next.shape()), " for '", p.name, "', which is ",
                      p.value.shape());
      const Tensor kept = p.next.cast(leaves_.at(p.name).dtype());
      next_state(p.name, kept);
      if (options_.average) average(p.name, wide(kept));
    }
  }

  // Starts at the weights themselves.
  void average(const std::string& weight, const Tensor& next) {
    const std::string name = cat("average/", weight);
    const Tensor before = new_state(name, next.shape(), 0, true);
    next_state(name, before * *options_.average + next * (1 - *options_.average));
  }

  // A step whose gradients are not finite leaves all as it was and lowers the scale.
  void hold_back() {
    for (Held& h : held_) {
      if (h.leaf != "train/scale" && !h.after.is_empty()) h.after = finite_.where(h.after, h.before);
    }
    const Tensor good = new_state("train/good", Shape::scalar(DType::f32), 0) + 1.0;
    const Tensor full = good >= double(scaling_->interval);
    const Tensor larger = scale_ * scaling_->growth;  // no infinite one: it could not be lowered again
    const Tensor grown = logical_and(full, is_finite(larger)).where(larger, scale_);
    next_state("train/scale", finite_.where(grown, scale_ * scaling_->backoff));
    next_state("train/good", logical_and(finite_, logical_not(full)).where(good, 0.0));
    outputs_.emplace_back("train/finite", finite_);
  }

  // What rounded a weight reads it as the last step left it; last, so that the weight is the one that is really kept.
  void read_narrow() {
    for (const auto& [name, narrow] : narrow_) {
      const Held& weight =
          *std::find_if(held_.begin(), held_.end(), [&](const Held& h) { return h.leaf == name; });
      const std::vector<ir::Use> uses = graph().node(Value(weight.before)).uses;
      for (const ir::Use& u : uses) {
        if (u.user != ir::kNoNode && rounds(graph().node(u.user)))
          graph().replace(graph().node(u.user).result(), narrow);
      }
      next_state(cat("narrow/", name), weight.after.cast(*options_.mixed));
    }
  }

  void finish() {
    Values values;
    std::vector<std::string> names;
    for (const auto& [name, tensor] : outputs_) values.push_back(tensor), names.push_back(name);
    for (const Held& h : held_) {
      values.push_back(h.after.is_empty() ? h.before : h.after);
      names.push_back(cat("next/", h.leaf));
    }
    graph().set_outputs(values, names);
    graph().erase_dead();
  }

  const TrainOptions& options_;
  LossGraph loss_;
  StepGraph out_;
  std::optional<LossScale> scaling_;
  Leaves leaves_;
  Tensor rate_, count_, scale_, finite_;
  NamedTensors outputs_, narrow_;
  std::vector<Held> held_;
};

}  // namespace

StepGraph step_graph(const ir::Graph& loss, const TrainOptions& options) {
  check_options(options);
  return StepBuilder(loss, options).build();
}

}  // namespace rlx::train
