// A tensor inside a file: what it is called, how it is stored, where its bytes lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/dtype.h"
#include "rlx/base/error.h"
#include "rlx/quant/format.h"

namespace rlx::io {

/// How elements are stored: `elements` of them in `bytes` bytes. Files hold more types than tensors of ours
/// can have: then `dtype` is empty and the bytes can be copied but not computed with.
struct StorageType {
  std::string_view name;  // lower-case: a dtype's name, a block format's, or the file's own word
  int elements = 1, bytes = 0;
  std::optional<DType> dtype;
  const quant::BlockFormat* format = nullptr;  // set when GGUF has the type

  /// How tensors of this type are stored.
  static StorageType of(DType);
  static StorageType of(const quant::BlockFormat&);

  friend bool operator==(const StorageType& a, const StorageType& b) { return a.name == b.name; }
};

/// Bytes and what keeps them.
struct OwnedBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Light: copying it copies no tensor data, and `owner` keeps the file mapped.
struct TensorView {
  std::string name;
  StorageType type;
  std::vector<int64_t> dims;         // row-major, slowest first
  std::span<const std::byte> bytes;  // empty while the tensor is packed
  std::shared_ptr<const void> owner;
  /// Set while the bytes must be made first, as those of a deflated array: `unpacked` calls it.
  std::function<OwnedBytes()> unpack;

  int64_t elements() const;
  /// Size of the bytes, also while they are packed.
  int64_t stored_bytes() const;
};

/// The tensor with its bytes in place.
TensorView unpacked(const TensorView&);

/// Gives writers the bytes of tensor `index` when they come to it, valid until the next call: a conversion
/// then holds one tensor in memory, not the model.
using LoadTensor = std::function<std::span<const std::byte>(size_t index)>;

/// Product of the extents; empty when one is negative or the product does not fit.
std::optional<int64_t> checked_elements(std::span<const int64_t> dims);
/// Bytes of a tensor; empty on overflow, or when the last extent (the whole, for sub-byte types) is no
/// whole number of blocks.
std::optional<int64_t> checked_bytes(const StorageType&, std::span<const int64_t> dims);

/// The size of a tensor to be written. A shape that has none, and bytes of another size (unless they will be
/// loaded), are user errors.
int64_t written_bytes(const TensorView&, bool loaded_later, std::string_view where);
/// The bytes of tensor `index`, loaded if there is a loader. A loader that gives another size is a bug.
std::span<const std::byte> bytes_to_write(std::span<const TensorView>, size_t index, const LoadTensor&);

/// Values as f32: block formats decoded, plain real types converted. Complex and unknown types are user
/// errors that name the tensor and its type.
std::vector<float> to_f32(const TensorView&);

/// "SOURCE: has no tensor 'NAME'; did you mean 'NEAR'"
Error missing_tensor(std::string_view source, std::string_view name, std::span<const TensorView> present);

/// "f32[2, 3]"
void append_text(std::string& out, const TensorView&);

}  // namespace rlx::io
