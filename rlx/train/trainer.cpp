#include "rlx/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "rlx/base/error.h"
#include "rlx/base/pool.h"
#include "rlx/ir/leaves.h"
#include "rlx/runtime/core.h"
#include "rlx/train/checkpoint.h"

namespace rlx::train {
namespace {

// Common types are read without a literal, which would allocate in every step.
double scalar_of(const TensorView& v) {
  if (v.dtype == DType::f32) return double(*reinterpret_cast<const float*>(v.data));
  if (v.dtype == DType::f64) return *reinterpret_cast<const double*>(v.data);
  if (v.dtype == DType::bool_) return double(*reinterpret_cast<const bool*>(v.data));
  return Literal::borrow(v.shape(), {v.data, v.bytes()}, nullptr).real_at(0);
}

int place_of(const std::vector<Port>& ports, std::string_view name) {
  const auto it = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == name; });
  return it == ports.end() ? -1 : int(it - ports.begin());
}

// Every param that is missing, unknown or of another type.
void check_weights(const ir::Graph& loss, const NamedLiterals& weights) {
  std::vector<std::string> problems, known;
  for (const ir::NodeId id : loss.params()) {
    const std::string& name = ir::leaf_name(loss.node(id));
    known.push_back(name);
    const auto it = weights.find(name);
    if (it == weights.end()) {
      problems.push_back(cat("param '", name, "' (", loss.node(id).shapes[0], ") has no value"));
    } else if (it->second.shape() != loss.node(id).shapes[0]) {
      problems.push_back(
          cat("'", name, "' is ", loss.node(id).shapes[0], ", the value is ", it->second.shape()));
    }
  }
  for (const auto& [name, value] : weights) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest_name(name, known);
    problems.push_back(
        cat("'", name, "' is not a param", near.empty() ? "" : cat("; did you mean '", near, "'")));
  }
  if (!problems.empty()) throw invalid("train: ", join(problems, "; "));
}

CompileOptions with_states(CompileOptions options, const StepGraph& step) {
  options.states.clear();
  for (const StepGraph::State& s : step.states) options.states.push_back({s.name, cat("next/", s.name)});
  return options;
}

NamedLiterals frozen_of(const ir::Graph& graph, const NamedLiterals& weights) {
  NamedLiterals out;
  for (const ir::NodeId id : graph.params())
    out.emplace(ir::leaf_name(graph.node(id)), weights.at(ir::leaf_name(graph.node(id))));
  return out;
}

CompileOptions without_states(CompileOptions options) {
  options.states.clear();
  return options;
}

}  // namespace

struct Trainer::Impl {
  Impl(const ir::Graph& loss, const NamedLiterals& weights, TrainOptions given)
      : options(std::move(given)),
        step(step_graph(loss, options)),
        frozen(frozen_of(step.graph, weights)),
        program(compile(step.graph, frozen, with_states(options.compile, step))) {
    if (step.forward) {
      forward.emplace(
          compile(*step.forward, frozen_of(*step.forward, weights), without_states(options.compile)));
      const auto forms = std::make_shared<FormPool>();
      for (CompiledGraph* part : {&program, &*forward}) part->core().share_forms(forms);
    }
    start_states(weights);
    loss_at = place_of((forward ? *forward : program).outputs(), step.loss);
    norm_at = place_of(program.outputs(), "train/grad_norm");
    finite_at = place_of(program.outputs(), "train/finite");
  }

  // A schedule may be any function.
  double rate_now() const {
    const double rate = options.rate(steps);
    if (!std::isfinite(rate))
      throw invalid("train: the rate of step ", steps, " is ", rate, "; a finite number is needed");
    return rate;
  }

  // Fresh pages cost more than their bytes: every thread touches a part of them.
  void start_states(const NamedLiterals& weights) {
    struct Copy {
      TensorView place;
      Literal value;
    };
    std::vector<Copy> copies;
    for (const StepGraph::State& s : step.states) {
      const bool given = s.weight || !s.narrow_of.empty();
      if (!given && s.initial == 0) continue;  // states begin as zeros
      const TensorView place = program.state(s.name);
      constexpr std::string_view kAverage = "average/";
      const bool trained = std::find(step.trained.begin(), step.trained.end(), s.name) != step.trained.end();
      const std::string weight = !s.narrow_of.empty()                       ? s.narrow_of
                                 : !trained && s.name.starts_with(kAverage) ? s.name.substr(kAverage.size())
                                                                            : s.name;
      copies.push_back({place, given ? weights.at(weight) : Literal::full(place.shape(), s.initial)});
    }
    Team(default_pool(), options.compile.threads)
        .parallel_chunks(int64_t(copies.size()), 1, [&](int64_t begin, int64_t end) {
          for (const Copy& c : std::span(copies).subspan(size_t(begin), size_t(end - begin))) {
            const Literal value = c.value.dtype() == c.place.dtype ? c.value : c.value.cast(c.place.dtype);
            std::memcpy(c.place.data, value.bytes().data(), c.place.bytes());
          }
        });
  }

  // The first part, whose saved values become inputs of the second.
  void run_forward(std::span<const Input> batch) {
    first_inputs.assign(batch.begin(), batch.end());
    for (const std::string& name : step.trained) first_inputs.push_back({name, program.state(name)});
    first.emplace(forward->run(std::span<const Input>(first_inputs)));
    for (const std::string& name : step.saved) inputs.push_back({name, first->view(name)});
  }

  void read_results(StepResult& out) const {
    out.loss = scalar_of((forward ? *first : *last)[size_t(loss_at)]);
    if (norm_at >= 0) out.grad_norm = scalar_of((*last)[size_t(norm_at)]);
    if (finite_at >= 0) out.skipped = scalar_of((*last)[size_t(finite_at)]) == 0;
  }

  struct Started {
    StepResult result;
    bool done = false;  // it was waited for
  };

  TrainOptions options;
  StepGraph step;
  NamedLiterals frozen;
  CompiledGraph program;
  std::optional<CompiledGraph> forward;
  int loss_at = -1, norm_at = -1, finite_at = -1;  // among the outputs; -1: not there
  std::vector<Input> inputs, first_inputs;
  std::optional<Outputs> first, last;
  std::deque<Started> started;
  int64_t steps = 0;
};

Trainer::Trainer(const ir::Graph& loss, const NamedLiterals& weights, TrainOptions options) {
  check_weights(loss, weights);
  impl_ = std::make_unique<Impl>(loss, weights, std::move(options));
}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

StepResult Trainer::step(std::span<const Input> batch) {
  Impl& t = *impl_;
  if (!t.started.empty())
    throw invalid("train: step: ", t.started.size(),
                  " steps were started and not finished; finish them first");
  StepResult out{.step = t.steps, .rate = t.rate_now()};
  if (t.finite_at >= 0) out.scale = scalar_of(t.program.state("train/scale"));
  t.inputs.assign(batch.begin(), batch.end());
  if (t.forward) t.run_forward(batch);
  t.inputs.push_back({"train/rate", view(&out.rate, {})});
  t.last.emplace(t.program.run(std::span<const Input>(t.inputs)));
  ++t.steps;
  t.read_results(out);
  return out;
}

// What the scale is and what the forward part saved is known when a step has ended.
void Trainer::start_step(std::span<const Input> batch) {
  Impl& t = *impl_;
  if (t.started.size() == CompiledGraph::kAhead)
    throw invalid("train: start_step: ", t.started.size(), " steps are on their way; finish one first");
  if (t.finite_at >= 0 || t.forward) {
    if (!t.started.empty())
      throw invalid(
          "train: start_step: with a loss scale or an activation budget one step is on its way; finish it first");
    const StepResult done = step(batch);
    t.started.push_back({done, true});
    return;
  }
  const StepResult begun{.step = t.steps, .rate = t.rate_now()};
  t.inputs.assign(batch.begin(), batch.end());
  t.inputs.push_back({"train/rate", view(&begun.rate, {})});
  t.program.start(t.inputs);
  t.started.push_back({begun, false});
  ++t.steps;
}

StepResult Trainer::finish_step() {
  Impl& t = *impl_;
  if (t.started.empty()) throw invalid("train: finish_step: no step was started");
  auto [out, done] = t.started.front();
  t.started.pop_front();
  if (done) return out;
  t.last.emplace(t.program.finish());
  t.read_results(out);
  return out;
}

StepResult Trainer::step(const NamedLiterals& batch) {
  std::vector<Input> list;
  for (const auto& [name, value] : batch) list.push_back({name, view(value)});
  return step(std::span<const Input>(list));
}

const TensorView& Trainer::output(std::string_view name) const {
  const auto& from = impl_->forward ? impl_->first : impl_->last;
  if (!from) throw invalid("train: there was no step yet that could have an output '", name, "'");
  return from->view(name);
}

int64_t Trainer::steps() const { return impl_->steps; }
const std::vector<std::string>& Trainer::trained() const { return impl_->step.trained; }
CompiledGraph& Trainer::program() { return impl_->program; }
CompiledGraph* Trainer::forward_program() { return impl_->forward ? &*impl_->forward : nullptr; }
int64_t Trainer::saved_bytes() const { return impl_->step.saved_bytes; }

NamedLiterals Trainer::weights(bool averaged) const {
  Impl& t = *impl_;
  NamedLiterals out = t.frozen;
  for (const std::string& name : t.step.trained) {
    const bool mean = averaged && t.options.average;
    const TensorView v = t.program.state(mean ? cat("average/", name) : name);
    const Literal value = Literal::copy_of(v.shape(), {v.data, v.bytes()});
    const DType type = mean ? t.program.state(name).dtype : v.dtype;  // means of 16 bits are kept in f32
    out.emplace(name, v.dtype == type ? value : value.cast(type));
  }
  return out;
}

void Trainer::save_checkpoint(const std::string& path) const {
  Impl& t = *impl_;
  Checkpoint c{
      .steps = t.steps, .optimizer = describe(t.options.optimizer), .states = t.program.save_states()};
  for (const StepGraph::State& s : t.step.states) {
    if (!s.narrow_of.empty()) c.states.erase(s.name);
  }
  write_checkpoint(path, c);
}

void Trainer::load_checkpoint(const std::string& path) {
  Impl& t = *impl_;
  Checkpoint c = read_checkpoint(path);
  std::vector<std::string> problems;
  if (const std::string own = describe(t.options.optimizer); c.optimizer != own)
    problems.push_back(cat("it was made by ", c.optimizer, ", here is ", own));
  for (const StepGraph::State& s : t.step.states) {
    if (s.narrow_of.empty() && !c.states.contains(s.name))
      problems.push_back(cat("it has no '", s.name, "'"));
  }
  if (!problems.empty()) throw invalid("checkpoint: '", path, "' does not fit: ", join(problems, "; "));
  for (const StepGraph::State& s : t.step.states) {
    if (!s.narrow_of.empty())
      c.states.insert_or_assign(s.name, c.states.at(s.narrow_of).cast(*t.options.mixed));
  }
  try {
    t.program.load_states(c.states);
  } catch (Error& e) {
    e.set_message(cat("checkpoint: '", path, "' does not fit: ", e.message()));
    throw;
  }
  t.steps = c.steps;
}

}  // namespace rlx::train
