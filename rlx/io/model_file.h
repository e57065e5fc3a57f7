// Any file or folder of tensors, recognised by its content.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/io/file_format.h"
#include "rlx/io/gguf.h"
#include "rlx/io/hf_config.h"
#include "rlx/io/model_text.h"
#include "rlx/io/safetensors.h"

namespace rlx::io {

struct ModelFile {
  std::string path;
  const FileFormat* format = nullptr;
  size_t files = 1;
  std::vector<TensorView> tensors;
  Metadata metadata;               // of safetensors
  std::optional<GgufFile> gguf;    // when it is one
  std::optional<HfFolder> folder;  // when it is one

  /// What is no model file is a user error that says what would be.
  static ModelFile open(const std::string& path, const FormatTable& = FormatTable::standard());
  static ModelFile open(const Input&, const FormatTable& = FormatTable::standard());

  /// As GGUF or config.json name it; empty when nothing does.
  std::string architecture() const;

  /// A file that holds none is a user error. The files of a folder are read when asked for.
  text::Tokenizer tokenizer() const;
  /// `name` picks one of several templates; empty is the default one.
  ModelTemplate chat_template(const std::string& name = {}) const;
};

/// Totals over the tensors of one storage type.
struct TypeTotal {
  std::string_view type;
  int64_t tensors = 0, parameters = 0, bytes = 0;
};
/// Largest first; parameters are elements.
std::vector<TypeTotal> totals_by_type(std::span<const TensorView>);

/// Everything about the file as a JSON object: kind, architecture, counts, types, metadata, tensors. Metadata
/// arrays longer than `max_array` are given as {"array": type, "size": n}.
std::string describe_json(const ModelFile&, size_t max_array = 64);

}  // namespace rlx::io
