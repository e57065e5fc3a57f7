// The contents of stored tensors as literals.
#pragma once

#include <map>
#include <string>

#include "rlx/base/file.h"
#include "rlx/io/onnx/model.h"
#include "rlx/ir/literal.h"

namespace rlx::io::onnx {

/// Turns stored tensors into literals; external files are mapped once. Raw contents of types we have borrow the file where they
/// begin at a multiple of their element size; protobuf promises no place, so others are copied.
class Contents {
 public:
  /// `path` of the model: external data lies in its folder, or below it.
  Contents(std::string path, std::shared_ptr<const void> owner)
      : path_(std::move(path)), owner_(std::move(owner)) {}

  /// Sizes that do not fit the contents, types without values of ours and files outside of the model's folder are
  /// user errors that name the tensor.
  Literal literal(const Tensor&);
  /// The dense tensor.
  Literal literal(const SparseTensor&);
  /// Of raw contents that begin at other places.
  int64_t copied_bytes() const { return copied_bytes_; }

 private:
  std::span<const std::byte> external_bytes(const Tensor&, int64_t needed);
  std::string resolve(const Tensor&) const;

  std::string path_;
  std::shared_ptr<const void> owner_;
  std::map<std::string, MappedFile> files_;
  int64_t copied_bytes_ = 0;
};

}  // namespace rlx::io::onnx
