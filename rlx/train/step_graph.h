// The graph of one training step: from batch, weights and state to loss, new weights and new state.
//
//   inputs   the inputs of the loss graph (with accumulate = k, [k, ...] each), "train/rate"
//   params   those of the loss graph that are frozen
//   states   the trained weights under their names, "optimizer/NAME", "average/WEIGHT", "train/count",
//            "narrow/WEIGHT" for weights that mixed precision rounds, "train/scale" and "train/good" with a loss scale, and
//            states of the model itself
//   outputs  those of the loss graph, "train/grad_norm" when it is computed, "train/finite" with a loss scale,
//            "next/STATE" for every state
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/lang/graph.h"
#include "rlx/runtime/options.h"
#include "rlx/train/optimizer.h"
#include "rlx/train/schedule.h"

namespace rlx::train {

/// What differs for the weights whose names match, where `*` stands for any text; the first rule that matches decides.
struct WeightRule {
  std::string names;
  double rate_factor = 1;
  std::optional<double> weight_decay = {};
};

/// Multiplies the loss so that small gradients keep their digits in f16. A step whose gradients are not all finite changes
/// nothing but the scale, which falls; after `interval` good steps it grows.
struct LossScale {
  double initial = 65536, growth = 2, backoff = 0.5;
  int64_t interval = 2000;
};

struct TrainOptions {
  Optimizer optimizer = adamw();
  Schedule rate = constant(1e-3);
  std::string loss = {};                 // the output to make small; empty: the first
  std::vector<std::string> frozen = {};  // params that stay as they are; `*` stands for any text
  std::vector<WeightRule> rules = {};
  /// Gradients limited to +- this, element by element.
  std::optional<double> clip_value = {};
  /// Then g *= min(1, clip_norm / (|g| + 1e-6)), with the norm |g| over all trained weights.
  std::optional<double> clip_norm = {};
  /// Batches whose gradients are averaged before a step.
  int64_t accumulate = 1;
  /// Decay of a running mean of the weights.
  std::optional<double> average = {};
  /// bf16 or f16: the type to compute in; weights and state stay f32. f16 has a loss scale unless one is given.
  std::optional<DType> mixed = {};
  /// With `mixed`: the update of a weight also writes it in that type, for the next step, instead of every step rounding all weights at
  /// its beginning. The bits are the same. Steps of several batches and those with an activation budget round at the beginning.
  bool keep_narrow = true;
  std::optional<LossScale> loss_scale = {};
  /// Bytes kept for the backward part; the rest is computed again. All sizes must be known.
  std::optional<int64_t> activation_budget = {};
  /// Of the model itself: an input and the output that is its next value.
  std::vector<StatePair> states = {};
  /// Device and threads; without states, which stand above.
  CompileOptions compile = {};
};

struct StepGraph {
  struct State {
    std::string name;
    double initial = 0;
    bool weight = false;  // starts as given, not as `initial`
    std::string narrow_of =
        {};  // this trained weight in the type of the state: follows from it, so that no checkpoint has it
  };
  Graph graph;
  std::vector<State> states;
  std::vector<std::string> trained;  // weights, in the order of the loss graph
  std::string loss;                  // name of its output
  /// With an activation budget: the part that runs first. It takes batch and trained weights as inputs; its outputs named in `saved`
  /// are inputs of `graph`, and the outputs of the loss graph are here.
  std::optional<Graph> forward = {};
  std::vector<std::string> saved = {};
  int64_t saved_bytes = 0;
};

/// All that is wrong with the options is a user error.
StepGraph step_graph(const ir::Graph& loss, const TrainOptions&);

}  // namespace rlx::train
