// The memory a model will take, told from its plan before any weight is read.
#pragma once

#include <algorithm>
#include <memory>

#include "rlx/models/model.h"
#include "rlx/runtime/options.h"

namespace rlx::llm {

/// What the model is to remember, and how it is compiled.
struct MemoryQuestion {
  int64_t context = 4096;  // tokens that are remembered; at most what the model was made for
  int64_t batch = 1;
  models::CacheType cache_type;
  int64_t chunk = 512;  // tokens of a prompt that are read together
  CompileOptions compile;
};

/// In bytes.
struct ModelMemory {
  int64_t context = 0, batch = 1, chunk = 0;
  int64_t file = 0;              // weights as the file has them: mapped, and read once at least
  int64_t given_back = 0;        // of these: pages of weights that have a packed form
  int64_t packed = 0;            // forms of them that products read
  int64_t derived = 0;           // what was computed of weights, and constants
  int64_t caches = 0;            // keys and values, running states
  double cache_per_token = 0;    // of one text
  int64_t prompt_workspace = 0;  // a chunk behind a full context: activations, inputs and results
  int64_t token_workspace = 0;   // one token behind a full context
  /// The plans that this was read from, with empty caches. What they take beside these is part of what a run of the model takes.
  std::shared_ptr<const void> plans;

  /// What the process needs at its most.
  int64_t total() const {
    return file - given_back + packed + derived + caches + std::max(prompt_workspace, token_workspace);
  }
};

/// Encoders have no caches: their context is the length of the texts. A model that cannot be built is a user error.
ModelMemory memory_of(const models::Model&, const MemoryQuestion& = {});

}  // namespace rlx::llm
