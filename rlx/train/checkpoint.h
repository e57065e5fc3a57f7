// Checkpoints: everything a training changes, in a safetensors file. Weights are under their own names, so that whoever
// reads weights reads them from a checkpoint too.
//
//   "rlx.format": "checkpoint"   "rlx.version": "1"   "rlx.steps": "120"   "rlx.optimizer": "adamw(beta1=0.9, ...)"
#pragma once

#include <string>

#include "rlx/ir/named_literals.h"
#include "rlx/train/optimizer.h"

namespace rlx::train {

struct Checkpoint {
  int64_t steps = 0;
  std::string optimizer;  // as `describe` has it
  ir::NamedLiterals states;
};

/// Writes it whole or not at all.
void write_checkpoint(const std::string& path, const Checkpoint&);
/// Another kind of file, or one of another version, is a user error.
Checkpoint read_checkpoint(const std::string& path);

/// "sgd(momentum=0.9, nesterov=1.0)": name and all settings.
std::string describe(const Optimizer&);

}  // namespace rlx::train
