// safetensors: a JSON header with names, dtypes, shapes and offsets, then the tensors without gaps.
//
//   header length u64 | header JSON, padded with spaces | data
//   {"__metadata__": {"k": "v"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}}
//
// A large model is several such files and a `model.safetensors.index.json` that says which tensor is where.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/io/input.h"
#include "rlx/io/name_index.h"
#include "rlx/io/tensor_view.h"

namespace rlx::io {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // the format's own limit

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// A safetensors file, or the shards of a model, mapped.
class SafetensorsFile {
 public:
  /// A file, an index, or a folder with `model.safetensors` or an index in it. Maps the files, checks their
  /// structure, touches no tensor data.
  static SafetensorsFile open(const std::string& path) { return open(Input::open(path)); }
  static SafetensorsFile open(const Input&);
  /// One file's bytes, kept alive by `owner`.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                               std::string_view name);

  /// In header order; of a sharded model, shard after shard.
  std::span<const TensorView> tensors() const { return tensors_; }
  /// The `__metadata__` of the file, or of all shards (equal entries once).
  const Metadata& metadata() const { return metadata_; }
  /// The value of that key; null when there is none.
  const std::string* find_metadata(std::string_view key) const;

  /// The tensor of that name; null when there is none.
  const TensorView* find_tensor(std::string_view name) const;
  /// As find_tensor; a missing name is a user error.
  const TensorView& tensor(std::string_view name) const;
  /// 1, or the number of shards.
  size_t file_count() const { return file_count_; }

 private:
  static SafetensorsFile open_one(const Input&);
  static SafetensorsFile open_index(const Input&);
  void index_tensors();

  std::string source_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  NameIndex index_;
  size_t file_count_ = 1;
};

/// Writes the tensors in the given order. Types the format does not have, names that repeat and sizes that do
/// not fit are user errors. The same arguments give the same bytes; data starts at a multiple of 64.
void write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                       const Metadata& metadata = {}, const LoadTensor& load = {});
/// The whole file in memory.
std::string safetensors_bytes(std::span<const TensorView> tensors, const Metadata& metadata = {});

/// The format's word for a type ("F32", "BF16"), or empty when it has none.
std::string_view safetensors_dtype(const StorageType&);

}  // namespace rlx::io
