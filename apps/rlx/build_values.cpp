#include "apps/rlx/build_values.h"

#include <charconv>
#include <cmath>

#include "rlx/base/output_file.h"

namespace rlx::cli {
namespace {

constexpr int64_t kMostNumbers = 16;  // of a literal that is written as such
constexpr uint64_t kAlignment = 64;

std::string cpp_real(double v) {
  if (std::isnan(v)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(v))
    return v > 0 ? "std::numeric_limits<double>::infinity()" : "-std::numeric_limits<double>::infinity()";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  std::string out(text, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string cpp_integer(int64_t v) {
  return v == INT64_MIN ? "INT64_MIN" : v > INT32_MAX || v < -INT32_MAX ? cat("int64_t{", v, "}") : cat(v);
}

std::string dtype_word(DType t) { return t == DType::bool_ ? "bool_" : std::string(dtype_name(t)); }

template <class Values, class Write>
std::string listed(const Values& values, Write write) {
  std::vector<std::string> words;
  for (const auto& v : values) words.push_back(write(v));
  return cat("{", join(words), "}");
}

std::string cpp_dims(const Dims& dims) {
  std::vector<int64_t> sizes;
  for (const Dim d : dims) sizes.push_back(d.value());
  return cpp_integers(sizes);
}

}  // namespace

std::string cpp_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += cat('\\', c);
    } else if (static_cast<unsigned char>(c) < 32) {
      char octal[8];
      std::snprintf(octal, sizeof octal, "\\%03o", c);
      out += octal;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string cpp_comment(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  if (out.ends_with('\\')) out += '.';  // or the next line would belong to it
  return out;
}

std::string cpp_name(std::string_view prefix, std::string_view name) {
  std::string out(prefix);
  bool gap = true;
  for (const char c : name.substr(0, 40)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain && gap) out += '_';
    if (plain) out += c;
    gap = !plain;
  }
  return out;
}

std::string cpp_integers(std::span<const int64_t> values) { return listed(values, cpp_integer); }

std::string cpp_type(const Shape& s) { return cat(dtype_word(s.dtype()), ", ", cpp_dims(s.dims())); }

std::string DataFile::add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  uint64_t at = end_;
  for (const Piece& p : pieces_) {
    if (p.bytes.data() == bytes.data() && p.bytes.size() == bytes.size()) at = p.offset;
  }
  if (at == end_ && !bytes.empty()) {
    pieces_.push_back({end_, bytes, std::move(owner)});
    end_ = (end_ + bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  return at == 0 || bytes.empty() ? expression_ : cat(expression_, " + ", at);
}

std::string DataFile::add(const Literal& value) {
  const auto held = std::make_shared<const Literal>(value);
  return add(held->bytes(), held);
}

void DataFile::write(const std::string& path) const {
  OutputFile file(path);
  for (const Piece& p : pieces_) {
    file.write_zeros(p.offset - file.written());
    file.write(p.bytes);
  }
  file.finish();
}

std::string cpp_literal(const Literal& value, DataFile& data) {
  const Shape& shape = value.shape();
  if (value.elements() <= kMostNumbers && !is_complex(shape.dtype())) {
    if (is_float(shape.dtype())) {
      const auto numbers = value.to_reals();
      if (Literal::reals(shape, numbers) == value)
        return cat("reals(", cpp_type(shape), ", ", listed(numbers, cpp_real), ")");
    } else {
      const auto numbers = value.to_integers();
      if (Literal::integers(shape, numbers) == value)
        return cat("integers(", cpp_type(shape), ", ", cpp_integers(numbers), ")");
    }
  }
  return cat("data(", cpp_type(shape), ", ", data.add(value), ")");
}

std::string cpp_set(const ir::FieldInfo& f, const ir::AttrValue& value, DataFile& data,
                    const std::function<std::string(const ir::GraphRef&)>& body) {
  const auto call = [&](std::string_view method, const std::string& text) {
    return cat(".", method, "(", cpp_text(f.name), ", ", text, ")");
  };
  return std::visit(
      [&]<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, std::monostate>) return call("set", "std::monostate()");
        if constexpr (std::is_same_v<T, bool>) return call("set", v ? "true" : "false");
        if constexpr (std::is_same_v<T, int64_t>) return call("set", cpp_integer(v));
        if constexpr (std::is_same_v<T, double>) return call("set", cpp_real(v));
        if constexpr (std::is_same_v<T, std::string>) return call("set", cpp_text(v));
        if constexpr (std::is_same_v<T, DType>) return call("set", dtype_word(v));
        if constexpr (std::is_same_v<T, std::vector<int64_t>>) return call("set_integers", cpp_integers(v));
        if constexpr (std::is_same_v<T, std::vector<double>>) return call("set_reals", listed(v, cpp_real));
        if constexpr (std::is_same_v<T, Dim>) return call("set", cpp_integer(v.value()));
        if constexpr (std::is_same_v<T, Dims>) return call("set_integers", cpp_dims(v));
        if constexpr (std::is_same_v<T, Shape>) return call("set", cat("shape_of(", cpp_type(v), ")"));
        if constexpr (std::is_same_v<T, Literal>) return call("set", cpp_literal(v, data));
        if constexpr (std::is_same_v<T, ir::GraphRef>) return call("set", body(v));
      },
      value);
}

}  // namespace rlx::cli
