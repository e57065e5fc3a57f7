#include "rlx/io/onnx/contents.h"

#include <cstring>
#include <filesystem>

#include "rlx/io/tensor_view.h"

namespace rlx::io::onnx {
namespace {

template <class... Args>
[[noreturn]] void refuse(const Tensor& t, const Args&... what) {
  throw invalid("onnx tensor '", t.name, "': ", cat(what...));
}

int64_t bit_field(std::span<const std::byte> bytes, int64_t i, int bits) {
  const int64_t per_byte = 8 / bits;
  const int64_t shift = (i % per_byte) * bits;
  return (int64_t(bytes[size_t(i / per_byte)]) >> shift) & ((int64_t(1) << bits) - 1);
}

// A code of `bits` bits as the number it stands for.
int64_t signed_code(int64_t code, int bits) {
  return code >= int64_t(1) << (bits - 1) ? code - (int64_t(1) << bits) : code;
}

// Element types that are stored narrower than any of ours, or in another way.
Literal widened(const Tensor& t, const ElementInfo& info, const Shape& shape,
                std::span<const std::byte> raw) {
  const int64_t count = shape.elements();
  const std::span<const float> values = code_values(info.type);
  if (!values.empty()) {
    std::vector<double> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(values[size_t(bit_field(raw, i, info.bits))]);
    return Literal::reals(shape, out);
  }
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) {
    if (info.type == ElementType::u16) {
      uint16_t v;
      std::memcpy(&v, raw.data() + 2 * i, 2);
      out.push_back(v);
    } else {
      const int64_t code = bit_field(raw, i, info.bits);
      const bool is_signed = info.type == ElementType::i4 || info.type == ElementType::i2;
      out.push_back(is_signed ? signed_code(code, info.bits) : code);
    }
  }
  if (t.type == 0) refuse(t, "it has no element type");
  return Literal::integers(shape, out);
}

bool is_aligned(std::span<const std::byte> raw, const Shape& shape) {
  return reinterpret_cast<uintptr_t>(raw.data()) % dtype_size(shape.dtype()) == 0;
}

Literal from_raw(const Tensor& t, const ElementInfo& info, const Shape& shape, std::span<const std::byte> raw,
                 const std::shared_ptr<const void>& owner) {
  if (!info.exact && info.type != ElementType::u64) return widened(t, info, shape, raw);
  if (info.type == ElementType::bool_) {
    for (const std::byte b : raw) {
      if (uint8_t(b) > 1) refuse(t, "a bool is stored as ", int(b), "; it must be 0 or 1");
    }
  }
  return is_aligned(raw, shape) && owner ? Literal::borrow(shape, raw, owner) : Literal::copy_of(shape, raw);
}

// Contents in the typed lists. Narrow floats and packed integers come as their bits, one or several to an entry.
Literal from_lists(const Tensor& t, const ElementInfo& info, const Shape& shape) {
  const int64_t count = shape.elements();
  const auto require = [&](size_t have, int64_t need) {
    if (int64_t(have) != need) refuse(t, have, " values for ", shape);
  };
  switch (info.type) {
    case ElementType::f32:
      require(t.floats.size(), count);
      return Literal::copy_of(shape, std::as_bytes(std::span(t.floats)));
    case ElementType::f64:
      require(t.doubles.size(), count);
      return Literal::copy_of(shape, std::as_bytes(std::span(t.doubles)));
    case ElementType::c64:
      require(t.floats.size(), 2 * count);
      return Literal::copy_of(shape, std::as_bytes(std::span(t.floats)));
    default:
      break;
  }
  if (info.bits < 8 || !code_values(info.type).empty() || is_float(shape.dtype())) {
    // The bits of the elements, packed as in raw contents but one byte or two to an entry.
    const int64_t per_entry = info.bits < 8 ? 8 / info.bits : 1, width = info.bits <= 8 ? 1 : info.bits / 8;
    require(t.ints.size(), (count + per_entry - 1) / per_entry);
    std::vector<std::byte> raw(t.ints.size() * size_t(width));
    for (size_t i = 0; i < t.ints.size(); ++i)
      std::memcpy(raw.data() + i * size_t(width), &t.ints[i], size_t(width));
    return from_raw(t, info, shape, raw, nullptr);
  }
  require(t.ints.size(), count);
  return Literal::integers(shape, t.ints);
}

}  // namespace

std::string Contents::resolve(const Tensor& t) const {
  namespace fs = std::filesystem;
  const fs::path location = t.external->location;
  if (location.empty()) refuse(t, "its external data names no file");
  if (location.is_absolute())
    refuse(t, "external data '", location.string(), "' is an absolute path; it must lie beside the model");
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(fs::absolute(fs::path(path_)).parent_path(), error);
  const fs::path file = fs::weakly_canonical(folder / location, error);
  if (error) refuse(t, "external data '", location.string(), "' cannot be found");
  const auto inside = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (inside.first != folder.end())
    refuse(t, "external data '", location.string(), "' lies outside of the model's folder '", folder.string(),
           "'");
  return file.string();
}

std::span<const std::byte> Contents::external_bytes(const Tensor& t, int64_t needed) {
  const std::string path = resolve(t);
  auto at = files_.find(path);
  if (at == files_.end()) at = files_.emplace(path, MappedFile::open(path)).first;
  const auto bytes = at->second.bytes();
  const ExternalData& e = *t.external;
  const int64_t length = e.length.value_or(needed);
  if (e.offset > int64_t(bytes.size()) || length > int64_t(bytes.size()) - e.offset)
    refuse(t, "external data of ", length, " bytes at offset ", e.offset, " is outside of '", path, "' of ",
           bytes.size(), " bytes");
  return bytes.subspan(size_t(e.offset), size_t(length));
}

Literal Contents::literal(const Tensor& t) {
  const ElementInfo* info = find_element(t.type);
  if (info == nullptr) refuse(t, "element type ", t.type, " is not one of ONNX");
  if (!info->dtype) refuse(t, "its elements are ", info->name, ", which tensors here cannot hold");
  const auto count = checked_elements(t.dims);
  if (!count) refuse(t, "its extents are negative or too large");
  const Shape shape(*info->dtype, Dims(t.dims.begin(), t.dims.end()));
  if (!t.raw && !t.external) return from_lists(t, *info, shape);
  if (*count > int64_t(1) << 56) refuse(t, "it has ", *count, " elements");
  const int64_t needed = (*count * info->bits + 7) / 8;
  const auto raw = t.external ? external_bytes(t, needed) : *t.raw;
  if (int64_t(raw.size()) != needed) refuse(t, raw.size(), " bytes for ", shape, ", which takes ", needed);
  if (!is_aligned(raw, shape)) copied_bytes_ += needed;
  const auto owner = t.external ? files_.at(resolve(t)).owner() : owner_;
  return from_raw(t, *info, shape, raw, owner);
}

Literal Contents::literal(const SparseTensor& s) {
  const Literal values = literal(s.values), indices = literal(s.indices);
  const auto count = checked_elements(s.dims);
  if (!count || *count > int64_t(1) << 31) refuse(s.values, "the extents of the dense tensor are too large");
  Literal out = Literal::zeros(Shape(values.dtype(), Dims(s.dims.begin(), s.dims.end())));
  const int64_t rank = int64_t(s.dims.size()), n = values.elements();
  const bool linear = indices.shape().rank() == 1;
  if (indices.elements() != (linear ? n : n * rank))
    refuse(s.values, n, " values and indices ", indices.shape());
  const size_t width = dtype_size(values.dtype());
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = linear ? indices.integer_at(i) : 0;
    for (int64_t axis = 0; !linear && axis < rank; ++axis) {
      const int64_t k = indices.integer_at(i * rank + axis);
      if (k < 0 || k >= s.dims[size_t(axis)])
        refuse(s.values, "index ", k, " on axis ", axis, " of size ", s.dims[size_t(axis)]);
      at = at * s.dims[size_t(axis)] + k;
    }
    if (at < 0 || at >= *count) refuse(s.values, "index ", at, " of ", *count);
    std::memcpy(out.mutable_bytes().data() + size_t(at) * width, values.bytes().data() + size_t(i) * width,
                width);
  }
  return out;
}

}  // namespace rlx::io::onnx
