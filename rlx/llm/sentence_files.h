// What the files of Sentence Transformers beside a model say about vectors of texts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/base/json.h"
#include "rlx/llm/embedding.h"

namespace rlx::llm {

struct SentenceFiles {
  std::optional<Json> pooling;    // the settings of its pooling
  std::vector<VectorStep> steps;  // behind the pooling; a norm at the end is left to the caller
  std::string prompt;             // before every text
  bool lowercase = false;
  int64_t max_tokens = 0;  // 0: not told
};

/// Of a folder. A module that would change the vectors and is not known is a user error.
SentenceFiles sentence_files(const std::string& folder);
/// The steps that a GGUF file holds.
std::vector<VectorStep> stored_steps(const io::ModelFile& gguf);
/// The pooling that settings ask for; several at once are a user error.
Pooling pooling_of(const Json& settings);

}  // namespace rlx::llm
