#include "rlx/llm/finetune.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rlx/base/error.h"
#include "rlx/base/philox.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"
#include "rlx/llm/finetune_checkpoint.h"
#include "rlx/llm/token_loss.h"

namespace rlx::llm {
namespace {

// Numbers 0 .. n - 1 in an order that (seed, round) decides.
std::vector<size_t> shuffled(size_t n, uint64_t seed, uint64_t round) {
  std::vector<size_t> out(n);
  std::iota(out.begin(), out.end(), size_t(0));
  for (size_t i = n; i > 1; --i) {
    const PhiloxBlock bits = philox_block(seed, round, i);
    std::swap(out[i - 1], out[(uint64_t(bits[1]) << 32 | bits[0]) % i]);
  }
  return out;
}

// Rows of one length: padding stands behind a text and counts nowhere.
struct Batch {
  std::vector<int32_t> ids, targets;
  std::vector<float> weights;
  int64_t tokens = 0;

  void fill(const std::vector<const TrainingText*>& rows, int64_t length) {
    const size_t size = rows.size() * size_t(length);
    ids.assign(size, 0), targets.assign(size, 0), weights.assign(size, 0);
    tokens = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      const TrainingText& t = *rows[r];
      tokens += int64_t(t.ids.size());
      for (size_t i = 0; i < t.ids.size(); ++i) {
        const size_t at = r * size_t(length) + i;
        ids[at] = t.ids[i];
        if (i == 0) continue;
        targets[at - 1] = t.ids[i];
        weights[at - 1] = t.learnt[i] ? 1.0f : 0.0f;
      }
    }
  }
};

struct LossGraph {
  Graph graph;
  NamedLiterals weights;
};

ir::Value output_named(const Graph& g, std::string_view name) {
  const auto names = g.output_names();
  return g.outputs()[size_t(std::find(names.begin(), names.end(), name) - names.begin())];
}

// An adapter of the head itself is trained through the logits of all tokens.
bool is_adapted(const Graph& head) {
  const auto params = head.params();
  return std::any_of(params.begin(), params.end(),
                     [&](ir::NodeId id) { return ir::leaf_name(head.node(id)).starts_with("adapter."); });
}

// loss = mean of -ln p(target) over the tokens that count; `count` is their number.
LossGraph loss_graph(const models::Model& model, const Adapter& adapter, int64_t rows, int64_t length,
                     bool trainable) {
  models::ModelGraph g = model.graph({.hidden = true, .linear = adapter.hook(), .trainable = trainable});
  for (const auto& [name, value] : adapter.weights()) g.weights.insert_or_assign(name, value);
  const std::optional<Graph> head = head_of(g.graph);
  const bool in_parts = head && !(trainable && is_adapted(*head));
  g.graph.set_outputs({output_named(g.graph, in_parts ? "hidden" : "logits")});
  g.graph.erase_dead();
  LossGraph out{g.graph.bind({{"batch", rows}, {"seq", length}}), {}};
  Tracer t(out.graph);
  const int64_t n = rows * length;
  Tensor last = ir::Expr{&out.graph, out.graph.outputs()[0]};
  last = last.reshape({n, last.dim(-1)});
  const Tensor targets = t.input("targets", {rows, length}, DType::i32).reshape({n});
  const Tensor weights = t.input("weights", {rows, length}).reshape({n});
  const Tensor nll = in_parts ? token_losses(*head, last, targets, trainable)
                              : softmax_cross_entropy_with_logits(last, targets);
  const Tensor count = weights.sum({0});
  out.graph.set_outputs({(nll * weights).sum({0}) / count.max(1), count}, {"loss", "count"});
  for (const ir::NodeId id : out.graph.params()) {
    const std::string& name = ir::leaf_name(out.graph.node(id));
    out.weights.insert_or_assign(name, g.weights.at(name));
  }
  return out;
}

}  // namespace

struct Finetuning::State {
  const models::Model& model;
  FinetuneOptions options;
  std::vector<TrainingText> texts, held_back;
  int64_t length = 0, total = 0;
  std::string fingerprint;
  Adapter adapter;
  std::unique_ptr<train::Trainer> trainer;
  std::unique_ptr<CompiledGraph> judge;
  Batch batch;

  State(const models::Model& m, TrainingTexts given, FinetuneOptions o)
      : model(m), options(std::move(o)), adapter(Adapter::create(m, options.adapter)) {
    if (model.config().encoder)
      throw invalid("finetune: '", model.file().path, "' is an encoder and predicts no text");
    if (options.batch < 1) throw invalid("finetune: ", options.batch, " texts in a step; 1 or more expected");
    for (const TrainingText& t : given.texts)
      for (const text::TokenId id : t.ids)
        if (id < 0 || id >= model.config().vocab)
          throw invalid("finetune: token ", id, " is not below ", model.config().vocab);
    fingerprint = fingerprint_of(given.texts, options);
    length = (given.longest() + 31) / 32 * 32;
    if (model.config().max_positions > 0) length = std::min(length, model.config().max_positions);
    if (given.longest() > length)
      throw invalid("finetune: a text of ", given.longest(), " tokens; the model reads ", length);
    divide(std::move(given.texts));
    total = options.steps > 0
                ? options.steps
                : int64_t(std::ceil(options.epochs * double(texts.size()) / double(options.batch)));
    make_trainer();
  }

  void divide(std::vector<TrainingText> all) {
    if (options.held_back < 0 || options.held_back >= 1)
      throw invalid("finetune: a part of ", options.held_back,
                    " is held back; 0 or more and below 1 expected");
    auto kept = size_t(std::ceil(options.held_back * double(all.size())));
    if (kept >= all.size()) kept = all.size() - 1;
    const std::vector<size_t> order = shuffled(all.size(), options.seed, ~uint64_t(0));
    for (size_t i = 0; i < all.size(); ++i)
      (i < kept ? held_back : texts).push_back(std::move(all[order[i]]));
  }

  void make_trainer() {
    const LossGraph loss = loss_graph(model, adapter, options.batch, length, true);
    train::TrainOptions to;
    to.loss = "loss";
    to.optimizer = train::adamw({.weight_decay = options.weight_decay});
    train::ScheduleText schedule = options.schedule;
    schedule.steps = total;
    to.rate = train::schedule_of(schedule);
    to.clip_norm = options.clip_norm;
    to.activation_budget = options.activation_budget;
    to.compile = options.compile;
    for (const auto& [name, value] : loss.weights)
      if (is_float(value.dtype()) && !name.starts_with("adapter.")) to.frozen.push_back(name);
    trainer = std::make_unique<train::Trainer>(loss.graph, loss.weights, std::move(to));
  }

  const TrainingText* text_at(int64_t place) const {
    const auto n = int64_t(texts.size());
    return &texts[shuffled(size_t(n), options.seed, uint64_t(place / n))[size_t(place % n)]];
  }

  std::vector<Input> inputs() const {
    const int64_t rows = options.batch;
    return {{"input_ids", view(batch.ids.data(), {rows, length})},
            {"targets", view(batch.targets.data(), {rows, length})},
            {"weights", view(batch.weights.data(), {rows, length})}};
  }

  void read_adapter() {
    NamedLiterals now;
    for (const auto& [name, value] : trainer->weights())
      if (name.starts_with("adapter.")) now.insert_or_assign(name, value);
    adapter.set_weights(now);
  }
};

Finetuning::Finetuning(const models::Model& model, TrainingTexts texts, FinetuneOptions options)
    : state_(std::make_unique<State>(model, std::move(texts), std::move(options))) {}
Finetuning::~Finetuning() = default;
Finetuning::Finetuning(Finetuning&&) noexcept = default;

int64_t Finetuning::steps() const { return state_->trainer->steps(); }
int64_t Finetuning::total_steps() const { return state_->total; }
int64_t Finetuning::held_back_texts() const { return int64_t(state_->held_back.size()); }
train::Trainer& Finetuning::trainer() { return *state_->trainer; }

int64_t Finetuning::trained_numbers() const {
  int64_t out = 0;
  for (const auto& [name, part] : state_->adapter.parts()) out += part.a.elements() + part.b.elements();
  return out;
}

FinetuneStep Finetuning::step() {
  State& s = *state_;
  const int64_t number = s.trainer->steps();
  std::vector<const TrainingText*> rows;
  for (int64_t i = 0; i < s.options.batch; ++i) rows.push_back(s.text_at(number * s.options.batch + i));
  s.batch.fill(rows, s.length);
  const std::vector<Input> inputs = s.inputs();
  const train::StepResult r = s.trainer->step(std::span<const Input>(inputs));
  return {r.step, s.batch.tokens, r.loss, r.rate};
}

double Finetuning::held_back_loss() {
  State& s = *state_;
  if (s.held_back.empty()) throw invalid("finetune: no texts are held back");
  s.read_adapter();
  if (!s.judge) {
    const LossGraph g = loss_graph(s.model, s.adapter, s.options.batch, s.length, false);
    s.judge = std::make_unique<CompiledGraph>(g.graph, g.weights, s.options.compile);
  } else {
    s.judge->set_params(s.adapter.weights());
  }
  double sum = 0, count = 0;
  for (size_t at = 0; at < s.held_back.size(); at += size_t(s.options.batch)) {
    std::vector<const TrainingText*> rows;
    static const TrainingText kNone;
    for (size_t i = at; i < at + size_t(s.options.batch); ++i)
      rows.push_back(i < s.held_back.size() ? &s.held_back[i] : &kNone);
    s.batch.fill(rows, s.length);
    const std::vector<Input> inputs = s.inputs();
    const Outputs out = s.judge->run(std::span<const Input>(inputs));
    const double n = double(out.view("count").as<const float>()[0]);
    sum += double(out.view("loss").as<const float>()[0]) * n;
    count += n;
  }
  return sum / std::max(count, 1.0);
}

const Adapter& Finetuning::adapter() {
  state_->read_adapter();
  return state_->adapter;
}

void Finetuning::save_checkpoint(const std::string& path) {
  write_fingerprint(path, state_->fingerprint);
  state_->trainer->save_checkpoint(path);
}

void Finetuning::load_checkpoint(const std::string& path) {
  check_fingerprint(path, state_->fingerprint);
  state_->trainer->load_checkpoint(path);
}

}  // namespace rlx::llm
