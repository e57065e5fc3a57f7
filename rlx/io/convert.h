// From one tensor file to another of a different kind or storage type.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rlx/io/model_file.h"

namespace rlx::io {

/// How tensors are stored in the new file.
struct ConvertOptions {
  /// Storage type for float tensors: f32, f16, bf16, or for GGUF any block format with an encoder. Block
  /// formats go to tensors of two dimensions and more whose rows are whole blocks; the others keep their
  /// type, and so do norms, biases and tables of a GGUF model unless f32 is asked for (FileFormat::stays).
  std::optional<std::string> type;
  bool deflate = false;  // npz only
  /// Called before each tensor and at the end, with the bytes written so far and in all.
  std::function<void(int64_t done, int64_t total)> progress;
};

/// What became of the tensors.
struct ConvertReport {
  std::string_view from, to;         // names of the formats
  int64_t tensors = 0, changed = 0;  // changed: stored in another type than before
  int64_t bytes_in = 0, bytes_out = 0;
  std::vector<std::string>
      notes;  // what the new file does not say any more, or was kept otherwise than asked
};

/// The format written follows the ending of `out` (FormatTable::for_output). Without `type`, tensors keep
/// theirs where the new file has it, and block formats become f32 where it has not; other types it lacks are
/// user errors that name every such tensor. GGUF metadata travels through safetensors exactly. One tensor is
/// held in memory at a time.
ConvertReport convert_file(const std::string& in, const std::string& out, const ConvertOptions& = {},
                           const FormatTable& = FormatTable::standard());

}  // namespace rlx::io
