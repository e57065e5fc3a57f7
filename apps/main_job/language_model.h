// A small decoder of characters, traced twice from one description: for training and for generation.
#pragma once

#include <cstdint>

#include "rlx/ir/interpreter.h"
#include "rlx/lang/graph.h"

namespace rlx::main_job {

struct ModelSize {
  int64_t characters = 0;  // of the alphabet
  int64_t width = 128, heads = 4, layers = 4, context = 128;
  int64_t before = 2;  // characters before each that it is read with
};

/// ids: i32[batch, context + 1] -> loss: the mean cross entropy of each next character.
Graph loss_graph(const ModelSize&, int64_t batch);
/// ids: i32[1, context] -> logits: f32[context, characters], of the character after each place.
Graph logits_graph(const ModelSize&);

/// Weights of either graph before training.
ir::NamedLiterals starting_weights(const Graph&, uint64_t seed);

/// Floating-point operations of the products in one training step: forward, and twice as many back.
double operations_of_step(const ModelSize&, int64_t batch);

}  // namespace rlx::main_job
