#include "rlx/io/gguf_json.h"

#include <cmath>
#include <limits>
#include <utility>

#include "rlx/base/error.h"
#include "rlx/base/utf8.h"
#include "rlx/io/gguf_layout.h"

namespace rlx::io {
namespace {

void write_scalar(JsonWriter& out, const GgufValue& v) {
  if (v.is_real()) return out.value(v.real());
  if (v.type() == GgufType::bool_) return out.value(v.boolean());
  if (v.type() == GgufType::string) return out.value(v.string());
  if (v.type() == GgufType::u64) {
    uint64_t value = 0;
    std::memcpy(&value, v.raw().data(), sizeof value);
    return out.value(value);
  }
  out.value(v.integer());
}

std::string type_word(const GgufValue& v) {
  if (v.type() != GgufType::array) return std::string(gguf_type_name(v.type()));
  return cat(gguf_type_name(v.element_type()), "[]");
}

void write_typed_pair(JsonWriter&, const GgufValue&);

void write_typed_value(JsonWriter& out, const GgufValue& v) {
  if (v.type() == GgufType::string && !valid_utf8(v.string())) {
    throw invalid("gguf: a metadata string is not valid UTF-8 and cannot be kept as JSON");
  }
  if (v.type() != GgufType::array) return write_scalar(out, v);
  out.begin_array();
  for (const GgufValue& element : v.elements())
    element.type() == GgufType::array ? write_typed_pair(out, element) : write_typed_value(out, element);
  out.end_array();
}

void write_typed_pair(JsonWriter& out, const GgufValue& v) {
  out.begin_array();
  out.value(type_word(v));
  write_typed_value(out, v);
  out.end_array();
}

// Encodes JSON back to the bytes of a value.
class Encoder {
 public:
  Encoder(std::string source, std::string key) : source_(std::move(source)), key_(std::move(key)) {}

  GgufType pair(JsonView pair, std::string& out, int nesting) {
    if (!pair.is_array() || pair.size() != 2 || !pair.at(size_t(0)).is_string())
      throw fail("[type, value] expected");
    std::string word(pair.at(size_t(0)).string());
    const JsonView value = pair.at(1);
    if (!word.ends_with("[]")) {
      const GgufType type = type_of(word);
      if (type == GgufType::array) throw fail("array without element type");
      scalar(type, value, out);
      return type;
    }
    if (nesting >= detail::kGgufMaxNesting) throw fail("arrays nest too deep");
    word.resize(word.size() - 2);
    const GgufType element = type_of(word);
    if (!value.is_array()) throw fail("a list expected");
    put(out, uint32_t(element));
    put(out, uint64_t(value.size()));
    for (const JsonView item : value.items()) {
      if (element == GgufType::array) {
        // An element of an array of arrays carries its own element type, so only its body is written.
        if (this->pair(item, out, nesting + 1) != GgufType::array) throw fail("an array expected");
      } else {
        scalar(element, item, out);
      }
    }
    return GgufType::array;
  }

 private:
  template <class T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  Error fail(std::string_view what) const { return invalid(source_, ": gguf metadata '", key_, "': ", what); }

  GgufType type_of(std::string_view word) const {
    for (uint32_t t = 0; t < detail::kGgufTypeCount; ++t) {
      if (gguf_type_name(GgufType(t)) == word) return GgufType(t);
    }
    throw fail(cat("unknown type '", word, "'"));
  }
  template <class T>
  void integer(JsonView v, std::string& out) const {
    if (v.kind() != JsonKind::integer) throw fail("an integer expected");
    // Only what is beyond i64 is read without sign.
    const bool huge = v.real() >= 0x1p63;
    const bool fits = huge ? std::in_range<T>(v.unsigned_integer()) : std::in_range<T>(v.integer());
    if (!fits) throw fail("an integer does not fit its type");
    put(out, huge ? T(v.unsigned_integer()) : T(v.integer()));
  }
  double real(JsonView v) const {
    if (v.is_number()) return v.real();
    const std::string_view word = v.is_string() ? v.string() : std::string_view();
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (word == "inf") return std::numeric_limits<double>::infinity();
    if (word == "-inf") return -std::numeric_limits<double>::infinity();
    throw fail("a number expected");
  }
  void scalar(GgufType type, JsonView v, std::string& out) const {
    switch (type) {
      case GgufType::u8:
        return integer<uint8_t>(v, out);
      case GgufType::i8:
        return integer<int8_t>(v, out);
      case GgufType::u16:
        return integer<uint16_t>(v, out);
      case GgufType::i16:
        return integer<int16_t>(v, out);
      case GgufType::u32:
        return integer<uint32_t>(v, out);
      case GgufType::i32:
        return integer<int32_t>(v, out);
      case GgufType::u64:
        return integer<uint64_t>(v, out);
      case GgufType::i64:
        return integer<int64_t>(v, out);
      case GgufType::f32:
        return put(out, float(real(v)));
      case GgufType::f64:
        return put(out, real(v));
      case GgufType::bool_:
        if (v.kind() != JsonKind::boolean) throw fail("a boolean expected");
        return put(out, uint8_t(v.boolean()));
      case GgufType::string: {
        if (!v.is_string()) throw fail("a string expected");
        const std::string_view text = v.string();
        put(out, uint64_t(text.size()));
        out.append(text);
        return;
      }
      case GgufType::array:
        throw fail("a scalar expected");
    }
  }

  std::string source_, key_;
};

}  // namespace

void write_plain_json(JsonWriter& out, const GgufValue& v, size_t max_array) {
  if (v.type() != GgufType::array) return write_scalar(out, v);
  if (v.size() > max_array) {
    out.begin_object();
    out.member("array", gguf_type_name(v.element_type()));
    out.member("size", v.size());
    return out.end_object();
  }
  out.begin_array();
  for (const GgufValue& element : v.elements()) write_plain_json(out, element, max_array);
  out.end_array();
}

std::string typed_json(std::span<const GgufEntry> entries) {
  JsonWriter out;
  out.begin_object();
  for (const GgufEntry& entry : entries) {
    out.key(entry.key);
    write_typed_pair(out, entry.value);
  }
  out.end_object();
  return out.take();
}

void add_typed_json(GgufWriter& writer, std::string_view text, const std::string& source) {
  const Json document = Json::parse_in_place(text, source);
  if (!document.is_object()) throw invalid(source, ": gguf metadata must be an object");
  for (const auto [key, pair] : document.members()) {
    std::string raw;
    const GgufType type = Encoder(source, std::string(key)).pair(pair, raw, 0);
    writer.add(key, GgufValue(type, std::as_bytes(std::span(raw)), true));
  }
}

}  // namespace rlx::io
