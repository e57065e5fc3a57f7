// The training step of ./dev run: a decoder of characters, AdamW with clipping.
#include "apps/main_job/language_model.h"
#include "bench/bench.h"
#include "bench/workloads/workload.h"
#include "rlx/ir/sample.h"
#include "rlx/train/trainer.h"

namespace rlx::bench {
namespace {

std::function<void()> step() {
  const main_job::ModelSize size{.characters = 96};
  const Graph loss = main_job::loss_graph(size, 8);
  const auto t = std::make_shared<train::Trainer>(
      loss, main_job::starting_weights(loss, 1),
      train::TrainOptions{.optimizer = train::adamw({.beta2 = 0.95, .weight_decay = 0.1}),
                          .rate = train::constant(1e-3),
                          .clip_norm = 1.0,
                          .compile = {.threads = threads()}});
  const auto ids = std::make_shared<Literal>(
      ir::sample_literal(cat("i32[8,", size.context + 1, "] <", size.characters), 3));
  return [t, ids] { t->step({{"ids", view(*ids)}}); };
}

}  // namespace

std::vector<Workload> language_workloads() {
  return {{"tiny_gpt_train_8x128", [](const std::string&) { return step(); }}};
}

}  // namespace rlx::bench
