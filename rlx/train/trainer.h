// Training: a loss graph, weights and an optimiser become one compiled step that changes its weights in place.
//
//   Trainer t(loss, init(loss, {}, 1), {.optimizer = adamw(), .rate = warm_up(10, cosine(3e-4, 990))});
//   for (...) std::printf("%f\n", t.step({{"x", view(x)}, {"y", view(y)}}).loss);
//   t.save_checkpoint("run.safetensors");
//
// Weights and optimiser state live in the compiled step; sizes of batches may be symbolic. One object is for one thread at a time.
#pragma once

#include <memory>

#include "rlx/runtime/compiled_graph.h"
#include "rlx/train/step_graph.h"

namespace rlx::train {

/// What a step tells.
struct StepResult {
  int64_t step = 0;  // its number, from 0
  double loss = 0;   // on this step's batch, before the weights changed
  double rate = 0;
  std::optional<double> grad_norm;  // before clipping, with clip_norm
  bool skipped = false;             // gradients were not finite under a loss scale
  double scale = 1;                 // the loss scale of this step
};

class Trainer {
 public:
  /// `weights` has every param of the loss graph.
  Trainer(const ir::Graph& loss, const NamedLiterals& weights, TrainOptions options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// One step on the inputs of the loss graph; with accumulate = k each has k batches on a first axis.
  StepResult step(std::span<const Input> batch);
  StepResult step(std::initializer_list<Input> batch) { return step(std::span(batch.begin(), batch.size())); }
  StepResult step(const NamedLiterals& batch);
  /// Queues a step and returns while a device works on it, so that the next batch is on its way before the loss of this one is known; the batch may change once
  /// the call returns. `finish_step` waits for the oldest step that was started. Until all are finished nothing but these two may be called, and at most
  /// CompiledGraph::kAhead may be on their way. With a loss scale or an activation budget the call waits for the step.
  void start_step(std::span<const Input> batch);
  void start_step(std::initializer_list<Input> batch) { start_step(std::span(batch.begin(), batch.size())); }
  /// What the oldest step that was started tells.
  StepResult finish_step();
  /// An output of the loss graph in the last finished step, valid until the next.
  const TensorView& output(std::string_view name) const;

  /// Steps called so far; the schedule goes by it.
  int64_t steps() const;
  /// Copies of all params as they are now, frozen ones too; `averaged` takes the running means where there are some.
  NamedLiterals weights(bool averaged = false) const;
  /// The params that are trained; the others are frozen.
  const std::vector<std::string>& trained() const;

  /// Everything that changes: weights, optimiser state, the number of steps. A trainer made with the same options that loads it goes on with
  /// the same bits.
  void save_checkpoint(const std::string& path) const;
  /// Refused with all reasons, and nothing changed, when names, types or the optimiser differ.
  void load_checkpoint(const std::string& path);

  /// The compiled step, for plans and profiles. With an activation budget the forward part is a program of its own.
  CompiledGraph& program();
  /// The forward part under an activation budget; null without one.
  CompiledGraph* forward_program();
  /// Bytes of values that cross from the forward to the backward part, with an activation budget.
  int64_t saved_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rlx::train
