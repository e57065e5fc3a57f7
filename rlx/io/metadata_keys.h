// How the metadata of one format travels through another. GGUF entries are one typed JSON text in the metadata
// of safetensors; those of safetensors are GGUF strings with a prefix.
#pragma once

#include <string_view>

#include "rlx/io/gguf.h"

namespace rlx::io {

inline constexpr std::string_view kGgufMetadata = "gguf.metadata", kSafetensorsPrefix = "safetensors.";

/// Says which part of a split model a file is; a copy in one file leaves it out.
inline bool is_split_entry(const GgufEntry& e) { return e.key.starts_with("split."); }

}  // namespace rlx::io
