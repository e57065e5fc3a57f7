// The type of a tensor: extents and element type. Dense and row-major; layouts and strides are a matter of
// the compiler's plan.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/dim.h"
#include "rlx/base/dtype.h"

namespace rlx {

class Shape {
 public:
  Shape() = default;  // f32 scalar
  Shape(DType dtype, Dims dims) : dims_(std::move(dims)), dtype_(dtype) {}
  /// Without axes.
  static Shape scalar(DType dtype) { return Shape(dtype, {}); }

  int rank() const { return int(dims_.size()); }
  /// Its extents, outermost first.
  const Dims& dims() const { return dims_; }
  /// Extent of an axis; negative axes count from the end.
  Dim dim(int axis) const;
  DType dtype() const { return dtype_; }

  bool is_static() const;
  /// Product of the extents, which may be symbolic.
  Dim num_elements() const { return product(dims_); }
  /// Number of elements of a static shape; an error when it is not static or does not fit.
  int64_t elements() const { return num_elements().value(); }
  /// Bytes of a static shape.
  int64_t size_bytes() const;

  // Another shape, like this one but for what is given.
  Shape with_dim(int axis, Dim) const;
  Shape with_dims(Dims dims) const { return Shape(dtype_, std::move(dims)); }
  Shape with_dtype(DType dtype) const { return Shape(dtype, dims_); }
  Shape bind(const DimBinding& binding) const { return Shape(dtype_, rlx::bind(dims_, binding)); }
  /// Names of the symbols in it, sorted.
  std::vector<std::string> dynamic_symbols() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  Dims dims_;
  DType dtype_ = DType::f32;
};

using Shapes = std::vector<Shape>;

/// `f32[2,seq,8]`, `i32[]`.
void append_text(std::string& out, const Shape&);
/// Reads one at `pos` and moves `pos` behind it.
Shape parse_shape(std::string_view text, size_t& pos);
/// The whole text must be one shape.
Shape parse_shape(std::string_view text);

/// Turns a negative axis into 0 <= axis < rank; false when it is out of range.
inline bool normalize_axis(int& axis, int rank) {
  if (axis < -rank || axis >= rank) return false;
  if (axis < 0) axis += rank;
  return true;
}

/// A tensor seen around one axis: element (o, k, i) lies at (o * length + k) * inner + i.
struct AxisView {
  int64_t outer, length, inner;
};
/// That view of a static shape; `axis` counts from the front.
AxisView axis_view(const Shape&, int axis);

/// Row-major strides, in elements, of a static shape.
std::vector<int64_t> row_major_strides(const Dims&);

}  // namespace rlx
