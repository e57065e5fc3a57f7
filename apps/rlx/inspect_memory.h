// What a model will take of the memory, for rlx inspect.
#pragma once

#include <string>

#include "rlx/io/model_file.h"
#include "rlx/llm/model_memory.h"

namespace rlx::cli {

/// Lines of a table; why there is none where the file is no model that can be run. Empty for files without an architecture.
std::string memory_text(const io::ModelFile&, const llm::MemoryQuestion&);
/// A JSON object with the member "memory" added, where there is something to tell.
std::string with_memory(const std::string& json, const io::ModelFile&, const llm::MemoryQuestion&);

}  // namespace rlx::cli
