// The table of file formats. Recognising, opening, inspecting, converting, the help of the commands and the
// fuzz run follow from it: a new format is one source file with its record and one line in file_format.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/io/input.h"
#include "rlx/io/tensor_view.h"

namespace rlx::io {

struct ModelFile;

/// What a format is to write: the tensors as planned, whose bytes come from `load`, and everything else the
/// input says.
struct WriteJob {
  const ModelFile& in;
  std::span<const TensorView> tensors;
  LoadTensor load;
  bool deflate = false;
  std::vector<std::string>& notes;  // what the new file does not say any more
};

/// What there is to know about a format.
struct FileFormat {
  std::string_view name;     // "gguf"
  std::string_view ending;   // ".gguf": of the files it writes, and a hint where the content says nothing
  std::string_view summary;  // for help: "GGUF model of llama.cpp"

  /// From the first bytes of a file, or the names in a folder. A file cut short is still recognised, so that
  /// opening it can tell what is missing.
  bool (*recognises)(const Input&);
  /// Fills tensors, metadata and whatever else the file says.
  void (*open)(const Input&, ModelFile&);

  /// Whether a tensor of this type can be written; `write` is empty for formats that are only read.
  bool (*can_hold)(const StorageType&) = nullptr;
  /// Writes a file of this format.
  void (*write)(const std::string& path, const WriteJob&) = nullptr;
  /// Whether readers of the format want this tensor of the input as it is, whatever type others are stored in; empty: none.
  bool (*stays)(const ModelFile& in, const TensorView&) = nullptr;
  bool deflates = false;  // understands WriteJob::deflate
};

/// Formats in the order in which a file is shown to them.
class FormatTable {
 public:
  /// The formats of this library.
  static const FormatTable& standard();
  /// This table and one format more, asked first. The record must outlive the table.
  FormatTable with(const FileFormat&) const;

  /// All of them.
  std::span<const FileFormat* const> formats() const { return formats_; }
  /// By content, else by the ending of the name; null when neither tells.
  const FileFormat* recognise(const Input&) const;
  /// By the ending of a file to be written; a user error that lists what can be.
  const FileFormat& for_output(const std::string& path) const;
  /// "gguf, safetensors, npy or npz"
  std::string names() const;
  /// ".gguf, .safetensors or .npz"
  std::string written_endings() const;

 private:
  std::vector<const FileFormat*> formats_;
};

}  // namespace rlx::io
