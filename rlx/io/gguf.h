// GGUF, the model file of llama.cpp: typed metadata, then tensors, all little-endian.
//
//   "GGUF" | version u32 | tensor count | entry count
//   entries:  key string | type u32 | value                      string = length, bytes
//   tensors:  name string | rank u32 | extents, fastest first | type u32 | offset u64
//   padding to the alignment | data: each tensor at its offset, aligned, in sequence
//
// Counts, lengths and extents are u64; in version 1 they were u32. The alignment is 32 unless the entry
// `general.alignment` says otherwise. A model may be split over files named NAME-00001-of-00003.gguf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/io/input.h"
#include "rlx/io/name_index.h"
#include "rlx/io/tensor_view.h"

namespace rlx::io {

/// Types of metadata values, by their number in a file.
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, bool_, string, array, u64, i64, f64 };

/// "u32", "string" and so on, for messages.
std::string_view gguf_type_name(GgufType);

/// A metadata value, still encoded: nothing is copied until it is asked for, so it must not outlive its file.
/// The bytes were checked when the file was opened. Asking for another kind than the value has is a user
/// error naming both.
class GgufValue {
 public:
  GgufValue(GgufType type, std::span<const std::byte> raw, bool wide) : type_(type), wide_(wide), raw_(raw) {}

  /// What it is.
  GgufType type() const { return type_; }
  /// As the file has it.
  std::span<const std::byte> raw() const { return raw_; }
  /// Lengths are u64 (versions 2 and 3), not u32.
  bool wide() const { return wide_; }

  bool is_integer() const;
  bool is_real() const { return type_ == GgufType::f32 || type_ == GgufType::f64; }

  int64_t integer() const;  // integer types; u64 above the range of i64 is an error
  double real() const;      // real and integer types
  /// true or false.
  bool boolean() const;
  /// A view of the file.
  std::string_view string() const;

  GgufType element_type() const;  // arrays
  uint64_t size() const;          // arrays
  // Of an array, in order.
  std::vector<GgufValue> elements() const;
  std::vector<int64_t> integers() const;
  std::vector<double> reals() const;
  std::vector<std::string_view> strings() const;

 private:
  std::span<const std::byte> payload() const;  // of an array, after type and count
  Error wrong_kind(std::string_view wanted) const;

  GgufType type_;
  bool wide_;
  std::span<const std::byte> raw_;
};

/// A metadata value under its key.
struct GgufEntry {
  std::string_view key;  // in the file
  GgufValue value;
};

/// A GGUF file, mapped.
class GgufFile {
 public:
  /// Maps the file, checks all of its structure, touches no tensor data. The first file of a split model
  /// brings in the others beside it.
  static GgufFile open(const std::string& path) { return open(Input::open(path)); }
  static GgufFile open(const Input&);
  /// The same over bytes kept alive by `owner`; a split file stands alone.
  static GgufFile parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                        std::string_view name);

  /// 1, 2 or 3.
  uint32_t version() const { return version_; }
  /// Of tensor data, in bytes.
  uint64_t alignment() const { return alignment_; }
  /// In file order; of a split model those of the first file.
  std::span<const GgufEntry> entries() const { return entries_; }
  /// In file order, over all files of a split model.
  std::span<const TensorView> tensors() const { return tensors_; }

  /// The metadata value of that key; null when there is none.
  const GgufValue* find(std::string_view key) const;
  /// The tensor of that name; null when there is none.
  const TensorView* find_tensor(std::string_view name) const;
  /// As find; a missing key is a user error.
  const GgufValue& at(std::string_view key) const;
  /// As find_tensor; a missing name is a user error.
  const TensorView& tensor(std::string_view name) const;

  /// Files of the model: 1, or the number of splits.
  size_t file_count() const { return owners_.size(); }

 private:
  void merge_splits(const std::string& path);
  void index_tensors();

  std::string source_;  // for messages: gguf 'path'
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::vector<GgufEntry> entries_;
  std::vector<TensorView> tensors_;
  NameIndex entry_index_, tensor_index_;
  std::vector<std::shared_ptr<const void>> owners_;
};

/// Writes version 3. The same calls give the same bytes; writing what was read from a file that this library,
/// llama.cpp or the Python package wrote gives that file again.
class GgufWriter {
 public:
  explicit GgufWriter(uint64_t alignment = 32);

  // A metadata entry; a key that is added twice is a user error of `write`.
  void add(std::string_view key, const GgufValue&);
  void add_u32(std::string_view key, uint32_t);
  void add_u64(std::string_view key, uint64_t);
  void add_i32(std::string_view key, int32_t);
  void add_f32(std::string_view key, float);
  void add_bool(std::string_view key, bool);
  void add_string(std::string_view key, std::string_view);
  void add_strings(std::string_view key, std::span<const std::string_view>);
  void add_i32s(std::string_view key, std::span<const int32_t>);
  void add_f32s(std::string_view key, std::span<const float>);

  /// The view must stay valid until `write`. Types GGUF does not have are user errors.
  void add_tensor(const TensorView&);
  /// The bytes come from the loader given to `write`; those of the view are not looked at.
  void add_tensor_later(const TensorView&);

  /// Writes the file whole or not at all.
  void write(const std::string& path, const LoadTensor& load = {}) const;
  /// The whole file in memory.
  std::string to_bytes() const;

 private:
  std::string& begin_entry(std::string_view key, GgufType);
  void check_tensor(const TensorView&, bool loaded_later);
  template <class Sink>
  void emit(Sink&&, const LoadTensor&) const;

  uint64_t alignment_;
  uint64_t entry_count_ = 0;
  std::string entries_;
  std::vector<std::string> keys_;
  std::vector<TensorView> tensors_;
};

/// Whether a model's tensor is the weight of a product, by its name in GGUF. Norms, biases, routers, convolutions, states and
/// tables of positions are small and stay in f32, which is what llama.cpp reads them in.
bool is_product_weight(const TensorView&);

/// Copies metadata and tensors of an open file into a writer: the plain round trip.
GgufWriter gguf_copy(const GgufFile&);

}  // namespace rlx::io
