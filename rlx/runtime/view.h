// Tensors in the caller's memory: what runs read and write without copying.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "rlx/ir/literal.h"

namespace rlx {

/// Dense row-major elements that somebody else owns. Small and without memory of its own, so that making one costs nothing.
struct TensorView {
  static constexpr int kMaxRank = 16;

  std::byte* data = nullptr;  // not written where it serves as an input
  DType dtype = DType::f32;
  int rank = 0;
  int64_t dims[kMaxRank] = {};

  Shape shape() const;
  int64_t elements() const;
  /// Size of the elements.
  size_t bytes() const { return size_t(elements()) * dtype_size(dtype); }
  /// The elements; another type than the tensor's is a user error.
  template <class T>
  std::span<T> as() const {
    check_type(dtype_of<std::remove_const_t<T>>());
    return {reinterpret_cast<T*>(data), size_t(elements())};
  }

 private:
  void check_type(DType asked) const;
};

/// Memory of these extents whose type is not known to the compiler.
TensorView view_bytes(DType, const void* data, std::span<const int64_t> dims);
/// The contents of a literal, which must outlive the view.
TensorView view(const Literal&);

template <class T>
TensorView view(T* data, std::initializer_list<int64_t> dims) {
  return view_bytes(dtype_of<std::remove_const_t<T>>(), data, std::span(dims.begin(), dims.size()));
}

/// A value for an input, by name.
struct Input {
  std::string_view name;
  TensorView value;
};

}  // namespace rlx
