#include "rlx/io/tensor_view.h"

#include <cstring>

#include "rlx/base/float16.h"

namespace rlx::io {
namespace {

template <class T>
void widen(std::span<const std::byte> in, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, in.data() + i * sizeof(T), sizeof(T));
    out[i] = float(value);
  }
}

}  // namespace

StorageType StorageType::of(DType dtype) {
  return {dtype_name(dtype), 1, int(dtype_size(dtype)), dtype, quant::format_of(dtype)};
}

StorageType StorageType::of(const quant::BlockFormat& f) {
  return {f.name, f.elements, f.bytes, f.dtype, &f};
}

int64_t TensorView::elements() const {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

int64_t TensorView::stored_bytes() const {
  return unpack ? checked_bytes(type, dims).value_or(0) : int64_t(bytes.size());
}

TensorView unpacked(const TensorView& t) {
  TensorView out = t;
  if (!t.unpack) return out;
  OwnedBytes made = t.unpack();
  out.bytes = made.bytes;
  out.owner = std::move(made.owner);
  out.unpack = nullptr;
  return out;
}

std::optional<int64_t> checked_elements(std::span<const int64_t> dims) {
  // A zero anywhere makes the product zero, but only after every extent was looked at.
  int64_t count = 1;
  bool zero = false;
  for (const int64_t d : dims) {
    if (d < 0) return std::nullopt;
    zero |= d == 0;
    if (d != 0 && __builtin_mul_overflow(count, d, &count)) return std::nullopt;
  }
  return zero ? 0 : count;
}

std::optional<int64_t> checked_bytes(const StorageType& type, std::span<const int64_t> dims) {
  const auto count = checked_elements(dims);
  if (!count) return std::nullopt;
  // Blocks of GGUF formats run along a row; the sub-byte types of safetensors are packed over the whole.
  const int64_t run = type.format && !dims.empty() ? dims.back() : *count;
  int64_t bytes = 0;
  if (run % type.elements != 0 || *count % type.elements != 0 ||
      __builtin_mul_overflow(*count / type.elements, int64_t(type.bytes), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

int64_t written_bytes(const TensorView& t, bool loaded_later, std::string_view where) {
  const auto bytes = checked_bytes(t.type, t.dims);
  if (!bytes) throw invalid(where, ": tensor '", t.name, "' ", t, " has no whole size");
  if (!loaded_later && uint64_t(*bytes) != t.bytes.size()) {
    throw invalid(where, ": tensor '", t.name, "' ", t, " does not fit its ", t.bytes.size(), " bytes");
  }
  return *bytes;
}

std::span<const std::byte> bytes_to_write(std::span<const TensorView> tensors, size_t index,
                                          const LoadTensor& load) {
  const auto bytes = load ? load(index) : tensors[index].bytes;
  const int64_t size = written_bytes(tensors[index], true, "io");
  RLX_CHECK(int64_t(bytes.size()) == size, "tensor '", tensors[index].name, "' loaded ", bytes.size(),
            " bytes, not ", size);
  return bytes;
}

std::vector<float> to_f32(const TensorView& t) {
  if (t.unpack) return to_f32(unpacked(t));
  std::vector<float> out(static_cast<size_t>(t.elements()));
  if (t.type.format && t.type.format->decode) {
    quant::decode(*t.type.format, t.bytes, out);
    return out;
  }
  if (!t.type.dtype || *t.type.dtype == DType::c64) {
    throw invalid("io: tensor '", t.name, "' has type ", t.type.name,
                  ", which has no f32 form; decodable: ", quant::decodable_names(),
                  ", f64, f8e4m3, f8e5m2, bool, integers");
  }
  switch (*t.type.dtype) {
    case DType::bool_:
    case DType::u8:
      widen<uint8_t>(t.bytes, out);
      break;
    case DType::i8:
      widen<int8_t>(t.bytes, out);
      break;
    case DType::i16:
      widen<int16_t>(t.bytes, out);
      break;
    case DType::i32:
      widen<int32_t>(t.bytes, out);
      break;
    case DType::i64:
      widen<int64_t>(t.bytes, out);
      break;
    case DType::u32:
      widen<uint32_t>(t.bytes, out);
      break;
    case DType::f64:
      widen<double>(t.bytes, out);
      break;
    case DType::f8e4m3:
      for (size_t i = 0; i < out.size(); ++i) out[i] = f8e4m3_to_f32(uint8_t(t.bytes[i]));
      break;
    case DType::f8e5m2:
      for (size_t i = 0; i < out.size(); ++i) out[i] = f8e5m2_to_f32(uint8_t(t.bytes[i]));
      break;
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::c64:
      RLX_CHECK(false, "handled above");
      break;
  }
  return out;
}

Error missing_tensor(std::string_view source, std::string_view name, std::span<const TensorView> present) {
  std::vector<std::string> names;
  for (const TensorView& t : present) names.push_back(t.name);
  const std::string near = nearest_name(name, names);
  return invalid(source, ": has no tensor '", name, "'",
                 near.empty() ? "" : cat("; did you mean '", near, "'"));
}

void append_text(std::string& out, const TensorView& t) { out += cat(t.type.name, t.dims); }

}  // namespace rlx::io
