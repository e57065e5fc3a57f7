#include "rlx/io/literal.h"

#include "rlx/base/error.h"

namespace rlx::io {

Literal to_literal(const TensorView& t) {
  if (t.unpack) return to_literal(unpacked(t));
  const Dims dims(t.dims.begin(), t.dims.end());
  if (t.type.format && !t.type.format->is_plain()) {
    const std::vector<float> values = to_f32(t);
    return Literal::copy_of(Shape(DType::f32, dims), std::as_bytes(std::span(values)));
  }
  if (!t.type.dtype) {
    throw invalid("io: tensor '", t.name, "' has type ", t.type.name,
                  ", which no tensor of a graph can have");
  }
  const Shape shape(*t.type.dtype, dims);
  if (*t.type.dtype == DType::bool_) {
    for (size_t i = 0; i < t.bytes.size(); ++i) {
      if (uint8_t(t.bytes[i]) > 1) {
        throw invalid("io: bool tensor '", t.name, "' has the byte ", uint8_t(t.bytes[i]), " at element ", i,
                      "; 0 or 1 expected");
      }
    }
  }
  const size_t alignment = *t.type.dtype == DType::c64 ? sizeof(float) : dtype_size(*t.type.dtype);
  const bool aligned = reinterpret_cast<uintptr_t>(t.bytes.data()) % alignment == 0;
  if (!aligned || !t.owner) return Literal::copy_of(shape, t.bytes);
  return Literal::borrow(shape, t.bytes, t.owner);
}

TensorView to_view(std::string name, const Literal& literal) {
  // The literal itself is the owner: its copies share the bytes.
  const auto owner = std::make_shared<const Literal>(literal);
  TensorView out{std::move(name), StorageType::of(literal.dtype()), {}, owner->bytes(), owner};
  for (const Dim& d : literal.shape().dims()) out.dims.push_back(d.value());
  return out;
}

}  // namespace rlx::io
