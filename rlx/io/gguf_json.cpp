#include "rlx/io/gguf_json.h"

#include <cmath>
#include <limits>

#include "rlx/base/error.h"
#include "rlx/io/gguf_layout.h"
#include "rlx/io/utf8.h"

namespace rlx::io {
namespace {

JsonDocument real_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

JsonDocument scalar_json(const GgufValue& v) {
  if (v.is_real()) return real_json(v.real());
  if (v.type() == GgufType::bool_) return v.boolean();
  if (v.type() == GgufType::string) return std::string(v.string());
  if (v.type() == GgufType::u64) {
    uint64_t value = 0;
    std::memcpy(&value, v.raw().data(), sizeof value);
    return value;
  }
  return v.integer();
}

std::string type_word(const GgufValue& v) {
  if (v.type() != GgufType::array) return std::string(gguf_type_name(v.type()));
  return cat(gguf_type_name(v.element_type()), "[]");
}

JsonDocument typed_pair(const GgufValue& v);

JsonDocument typed_value(const GgufValue& v) {
  if (v.type() == GgufType::string && !valid_utf8(v.string())) {
    throw invalid("gguf: a metadata string is not valid UTF-8 and cannot be kept as JSON");
  }
  if (v.type() != GgufType::array) return scalar_json(v);
  JsonDocument items = JsonDocument::array();
  const bool nested = v.element_type() == GgufType::array;
  for (const GgufValue& element : v.elements())
    items.push_back(nested ? typed_pair(element) : typed_value(element));
  return items;
}

JsonDocument typed_pair(const GgufValue& v) { return JsonDocument::array({type_word(v), typed_value(v)}); }

// Encodes JSON back to the bytes of a value.
class Encoder {
 public:
  Encoder(std::string source, std::string key) : source_(std::move(source)), key_(std::move(key)) {}

  GgufType pair(const JsonDocument& pair, std::string& out, int nesting) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) throw fail("[type, value] expected");
    std::string word = pair[0].get<std::string>();
    if (!word.ends_with("[]")) {
      const GgufType type = type_of(word);
      if (type == GgufType::array) throw fail("array without element type");
      scalar(type, pair[1], out);
      return type;
    }
    if (nesting >= detail::kGgufMaxNesting) throw fail("arrays nest too deep");
    word.resize(word.size() - 2);
    const GgufType element = type_of(word);
    if (!pair[1].is_array()) throw fail("a list expected");
    put(out, uint32_t(element));
    put(out, uint64_t(pair[1].size()));
    for (const JsonDocument& item : pair[1]) {
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
  void integer(const JsonDocument& v, std::string& out) const {
    if (!v.is_number_integer()) throw fail("an integer expected");
    const bool fits =
        v.is_number_unsigned() ? std::in_range<T>(v.get<uint64_t>()) : std::in_range<T>(v.get<int64_t>());
    if (!fits) throw fail("an integer does not fit its type");
    put(out, v.is_number_unsigned() ? T(v.get<uint64_t>()) : T(v.get<int64_t>()));
  }
  double real(const JsonDocument& v) const {
    if (v.is_number()) return v.get<double>();
    if (v == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (v == "inf") return std::numeric_limits<double>::infinity();
    if (v == "-inf") return -std::numeric_limits<double>::infinity();
    throw fail("a number expected");
  }
  void scalar(GgufType type, const JsonDocument& v, std::string& out) const {
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
        if (!v.is_boolean()) throw fail("a boolean expected");
        return put(out, uint8_t(v.get<bool>()));
      case GgufType::string: {
        if (!v.is_string()) throw fail("a string expected");
        const auto& text = v.get_ref<const std::string&>();
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

JsonDocument plain_json(const GgufValue& v, size_t max_array) {
  if (v.type() != GgufType::array) return scalar_json(v);
  if (v.size() > max_array) return {{"array", gguf_type_name(v.element_type())}, {"size", v.size()}};
  JsonDocument items = JsonDocument::array();
  for (const GgufValue& element : v.elements()) items.push_back(plain_json(element, max_array));
  return items;
}

std::string typed_json(std::span<const GgufEntry> entries) {
  JsonDocument out = JsonDocument::object();
  for (const GgufEntry& entry : entries) out[std::string(entry.key)] = typed_pair(entry.value);
  return out.dump();
}

void add_typed_json(GgufWriter& writer, std::string_view text, const std::string& source) {
  const JsonDocument document = parse_json_document(text, source);
  if (!document.is_object()) throw invalid(source, ": gguf metadata must be an object");
  for (const auto& [key, pair] : document.items()) {
    std::string raw;
    const GgufType type = Encoder(source, key).pair(pair, raw, 0);
    writer.add(key, GgufValue(type, std::as_bytes(std::span(raw)), true));
  }
}

}  // namespace rlx::io
