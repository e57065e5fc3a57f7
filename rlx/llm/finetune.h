// Fine-tuning: a low-rank adapter is trained beside the frozen weights of a model, packed or plain, on the graph that serves.
//
//   Finetuning run(model, read_training_texts("talks.jsonl", model, 512), {.steps = 200});
//   while (run.steps() < run.total_steps()) std::printf("%f\n", run.step().loss);
//   run.adapter().write("my-adapter", "SmolLM2-135M-Instruct");
#pragma once

#include <memory>

#include "rlx/llm/adapter.h"
#include "rlx/llm/finetune_data.h"
#include "rlx/train/trainer.h"

namespace rlx::llm {

/// What adapter is trained, on how many texts, at what rates.
struct FinetuneOptions {
  NewAdapter adapter;
  int64_t batch = 4;  // texts of a step
  int64_t steps = 0;  // in all; 0: `epochs` times through the texts
  double epochs = 1;
  double held_back = 0;  // part of the texts that is not trained on, from which held_back_loss is taken
  uint64_t seed = 1;     // of the order of the texts and of the part held back
  train::ScheduleText schedule{.name = "linear", .rate = 2e-4};
  double weight_decay = 0;
  std::optional<double> clip_norm = 1.0;
  /// Bytes of activations kept for the gradient; the rest is computed again.
  int64_t activation_budget = int64_t(256) << 20;
  CompileOptions compile;
};

/// What a step tells.
struct FinetuneStep {
  int64_t step = 0;    // its number, from 0
  int64_t tokens = 0;  // that were read, padding apart
  double loss = 0, rate = 0;
};

/// A training of an adapter on the way.
class Finetuning {
 public:
  /// The model must outlive it. An encoder is a user error.
  Finetuning(const models::Model&, TrainingTexts, FinetuneOptions = {});
  ~Finetuning();
  Finetuning(Finetuning&&) noexcept;

  int64_t steps() const;  // done
  /// Steps of the whole training.
  int64_t total_steps() const;
  /// Numbers of the adapter.
  int64_t trained_numbers() const;
  /// Texts that are not trained on.
  int64_t held_back_texts() const;

  /// One step on the next texts.
  FinetuneStep step();
  /// Mean negative log-likelihood of a learnt token of the texts held back, with the adapter as it is now.
  double held_back_loss();

  /// The adapter as it is now.
  const Adapter& adapter();

  /// Everything that changes. A run made with the same model, texts and options that loads it goes on with the same bits; other texts or
  /// options are user errors.
  void save_checkpoint(const std::string& path);
  /// Goes on from what save_checkpoint wrote.
  void load_checkpoint(const std::string& path);

  /// The training underneath, for plans and profiles.
  train::Trainer& trainer();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rlx::llm
