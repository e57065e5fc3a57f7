#include <limits>

#include "rlx/base/error.h"
#include "rlx/io/byte_reader.h"
#include "rlx/io/gguf.h"
#include "rlx/io/gguf_layout.h"

namespace rlx::io {
namespace {

constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                       "bool", "string", "array", "u64", "i64", "f64"};

template <class T>
T load(std::span<const std::byte> raw) {
  T value;
  std::memcpy(&value, raw.data(), sizeof(T));
  return value;
}

}  // namespace

std::string_view gguf_type_name(GgufType type) { return kNames[size_t(type)]; }

namespace detail {

size_t gguf_scalar_size(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::bool_:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return 0;
}

uint64_t read_gguf_size(ByteReader& in, bool wide, std::string_view field) {
  return wide ? in.read<uint64_t>(field) : in.read<uint32_t>(field);
}

}  // namespace detail

Error GgufValue::wrong_kind(std::string_view wanted) const {
  return invalid("gguf value: asked for ", wanted, ", the value is ", gguf_type_name(type_));
}

bool GgufValue::is_integer() const {
  return detail::gguf_scalar_size(type_) != 0 && !is_real() && type_ != GgufType::bool_;
}

int64_t GgufValue::integer() const {
  switch (type_) {
    case GgufType::u8:
      return load<uint8_t>(raw_);
    case GgufType::i8:
      return load<int8_t>(raw_);
    case GgufType::u16:
      return load<uint16_t>(raw_);
    case GgufType::i16:
      return load<int16_t>(raw_);
    case GgufType::u32:
      return load<uint32_t>(raw_);
    case GgufType::i32:
      return load<int32_t>(raw_);
    case GgufType::i64:
      return load<int64_t>(raw_);
    case GgufType::u64: {
      const uint64_t value = load<uint64_t>(raw_);
      if (value > uint64_t(std::numeric_limits<int64_t>::max())) {
        throw invalid("gguf value: ", value, " does not fit a signed 64-bit integer");
      }
      return int64_t(value);
    }
    default:
      throw wrong_kind("an integer");
  }
}

double GgufValue::real() const {
  if (type_ == GgufType::f32) return load<float>(raw_);
  if (type_ == GgufType::f64) return load<double>(raw_);
  if (type_ == GgufType::u64) return double(load<uint64_t>(raw_));
  if (is_integer()) return double(integer());
  throw wrong_kind("a number");
}

bool GgufValue::boolean() const {
  if (type_ != GgufType::bool_) throw wrong_kind("a bool");
  return load<uint8_t>(raw_) != 0;
}

std::string_view GgufValue::string() const {
  if (type_ != GgufType::string) throw wrong_kind("a string");
  return as_text(raw_.subspan(wide_ ? 8 : 4));
}

GgufType GgufValue::element_type() const {
  if (type_ != GgufType::array) throw wrong_kind("an array");
  return GgufType(load<uint32_t>(raw_));
}

uint64_t GgufValue::size() const {
  if (type_ != GgufType::array) throw wrong_kind("an array");
  return wide_ ? load<uint64_t>(raw_.subspan(4)) : load<uint32_t>(raw_.subspan(4));
}

std::span<const std::byte> GgufValue::payload() const { return raw_.subspan(wide_ ? 12 : 8); }

std::vector<GgufValue> GgufValue::elements() const {
  const GgufType type = element_type();
  std::vector<GgufValue> out;
  out.reserve(size_t(size()));
  ByteReader in(payload(), "gguf value");
  for (uint64_t i = 0; i < size(); ++i) {
    out.emplace_back(type, detail::take_gguf_value(in, type, wide_, 0), wide_);
  }
  return out;
}

std::vector<int64_t> GgufValue::integers() const {
  std::vector<int64_t> out;
  for (const GgufValue& v : elements()) out.push_back(v.integer());
  return out;
}

std::vector<double> GgufValue::reals() const {
  std::vector<double> out;
  for (const GgufValue& v : elements()) out.push_back(v.real());
  return out;
}

std::vector<std::string_view> GgufValue::strings() const {
  std::vector<std::string_view> out;
  for (const GgufValue& v : elements()) out.push_back(v.string());
  return out;
}

}  // namespace rlx::io
