// What Qwen's models share beyond the Llama family.
#pragma once

#include "rlx/models/config.h"
#include "rlx/models/config_source.h"

namespace rlx::models {

/// Experts, how they are chosen, and which layers have them.
void read_qwen_experts(ConfigSource&, Config&);

}  // namespace rlx::models
