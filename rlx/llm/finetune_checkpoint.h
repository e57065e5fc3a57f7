// What a checkpoint of fine-tuning was made of: it goes on with the same bits only with the same texts and options.
#pragma once

#include <string>
#include <vector>

#include "rlx/llm/finetune.h"

namespace rlx::llm {

/// All that decides the bits of a step beside the model: texts, their order, the shape of the adapter, the optimiser.
std::string fingerprint_of(const std::vector<TrainingText>&, const FinetuneOptions&);
/// Beside the checkpoint that is about to be written, as CHECKPOINT.json. A checkpoint of another run is removed first, so that what is there
/// belongs together whenever the process ends.
void write_fingerprint(const std::string& checkpoint, const std::string& fingerprint);
/// Another one is a user error that says what differs.
void check_fingerprint(const std::string& checkpoint, const std::string& fingerprint);

}  // namespace rlx::llm
