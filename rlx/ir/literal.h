// A tensor with known contents: constants, inputs and results of the interpreter, tensors of files.
//
// The bytes are dense, row-major, little-endian. Copies share them; writing through mutable_* on a shared
// or borrowed buffer copies first. A Literal over a mapped file borrows the mapping and keeps it alive.
#pragma once

#include <complex>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/base/error.h"
#include "rlx/base/shape.h"

namespace rlx {

/// The DType of a C++ element type. f16, bf16 and f8 have none: they are stored as bits.
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<bool>() {
  return DType::bool_;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<complex64>() {
  return DType::c64;
}

class Literal {
 public:
  Literal() : Literal(zeros(Shape())) {}
  /// Zeros of a static shape.
  static Literal zeros(const Shape&);
  /// A view of bytes owned by someone else; `owner` keeps them alive. Sizes must agree.
  static Literal borrow(const Shape&, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  /// Bytes that are copied. Sizes must agree.
  static Literal copy_of(const Shape&, std::span<const std::byte> bytes);

  /// Converts each value to the dtype of the shape, rounding half to even.
  static Literal reals(const Shape&, std::span<const double>);
  /// As reals, from whole numbers.
  static Literal integers(const Shape&, std::span<const int64_t>);
  /// As reals, from complex numbers.
  static Literal complexes(const Shape&, std::span<const std::complex<double>>);
  static Literal full(const Shape&, double value);
  /// One number.
  static Literal scalar(DType dtype, double value) { return full(Shape::scalar(dtype), value); }

  /// Elements of the type they have in C++: Literal::of<float>({2}, {1, 2}).
  template <class T>
  static Literal of(Dims dims, const std::vector<T>& values) {
    Literal out = zeros(Shape(dtype_of<T>(), std::move(dims)));
    auto to = out.template mutable_data<T>();
    if (to.size() != values.size()) throw invalid("literal: ", values.size(), " values for ", out.shape());
    for (size_t i = 0; i < values.size(); ++i) to[i] = values[i];
    return out;
  }

  const Shape& shape() const { return shape_; }
  DType dtype() const { return shape_.dtype(); }
  int64_t elements() const { return elements_; }
  /// The elements as they are stored.
  std::span<const std::byte> bytes() const { return {data_, size_t(elements_) * dtype_size(dtype())}; }
  /// The same to write to; shared or borrowed bytes are copied first.
  std::span<std::byte> mutable_bytes();

  /// The elements as they are stored; another element type than the literal's is a user error.
  template <class T>
  std::span<const T> data() const {
    require_dtype(dtype_of<T>());
    return {reinterpret_cast<const T*>(data_), size_t(elements_)};
  }
  /// As data(), to write to.
  template <class T>
  std::span<T> mutable_data() {
    require_dtype(dtype_of<T>());
    return {reinterpret_cast<T*>(mutable_bytes().data()), size_t(elements_)};
  }

  /// Element i in row-major order, as a number. Complex values have no real form; use complex_at.
  double real_at(int64_t i) const;
  int64_t integer_at(int64_t i) const;  // floats truncate
  /// As real_at, of any number.
  std::complex<double> complex_at(int64_t i) const;
  // All elements, in row-major order.
  std::vector<double> to_reals() const;
  std::vector<int64_t> to_integers() const;
  std::vector<std::complex<double>> to_complexes() const;

  /// Converted by the rules of the `cast` operator.
  Literal cast(DType) const;
  /// The same bytes under other extents.
  Literal reshaped(Dims) const;

  /// Same shape and the same bytes.
  friend bool operator==(const Literal&, const Literal&);

 private:
  Literal(const Shape& shape, std::shared_ptr<const void> owner, const std::byte* data, bool writable);
  void require_dtype(DType asked) const;
  void require_index(int64_t i) const;

  Shape shape_;
  int64_t elements_ = 0;
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  bool writable_ = false;
};

using Literals = std::vector<Literal>;

/// `f32[2]{1.0, 2.0}`, `f32[100]{0.0 ...}` for equal elements, `f32[99]"base64"` for many.
void append_text(std::string& out, const Literal&);
/// Reads one at `pos` and moves `pos` behind it.
Literal parse_literal(std::string_view text, size_t& pos);

/// Conversion of one value as `cast` defines it: to an integer truncates and saturates (NaN is 0), to bool
/// is != 0, to a narrower float rounds half to even.
int64_t saturate_to(DType, double value);

}  // namespace rlx
