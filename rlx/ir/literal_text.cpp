// Text of literals. Few elements print as numbers; many, or NaNs with a payload, as base64 of the bytes, so
// that every bit pattern survives.
#include <charconv>
#include <cmath>
#include <cstring>

#include "rlx/base/base64.h"
#include "rlx/ir/literal.h"
#include "rlx/ir/real_text.h"

namespace rlx {
namespace {

constexpr int64_t kMaxInline = 32;

void append_float(std::string& out, float value) {
  if (!std::isfinite(value)) return append_text(out, double(value));
  char buffer[32];
  const std::string_view digits(buffer,
                                size_t(std::to_chars(buffer, buffer + sizeof buffer, value).ptr - buffer));
  out.append(digits);
  if (digits.find_first_of(".e") == std::string_view::npos) out.append(".0");
}

void append_element(std::string& out, const Literal& l, int64_t i) {
  const DType t = l.dtype();
  if (t == DType::bool_) {
    append_text(out, l.real_at(i) != 0);
  } else if (is_integer(t)) {
    append_text(out, l.integer_at(i));
  } else if (t == DType::f64) {
    append_text(out, l.real_at(i));
  } else if (t == DType::c64) {
    const auto z = l.complex_at(i);
    out.push_back('(');
    append_float(out, float(z.real()));
    out.append(", ");
    append_float(out, float(z.imag()));
    out.push_back(')');
  } else {
    append_float(out, float(l.real_at(i)));
  }
}

bool same_element(const Literal& l, int64_t i, int64_t j) {
  const size_t size = dtype_size(l.dtype());
  return std::memcmp(l.bytes().data() + size_t(i) * size, l.bytes().data() + size_t(j) * size, size) == 0;
}

bool has_nan(const Literal& l, int64_t count) {
  if (is_integer(l.dtype()) || l.dtype() == DType::bool_) return false;
  for (int64_t i = 0; i < count; ++i) {
    const auto z = l.complex_at(i);
    if (std::isnan(z.real()) || std::isnan(z.imag())) return true;
  }
  return false;
}

bool is_splat(const Literal& l) {
  for (int64_t i = 1; i < l.elements(); ++i) {
    if (!same_element(l, 0, i)) return false;
  }
  return l.elements() > 1;
}

class Reader {
 public:
  Reader(std::string_view text, size_t& pos) : text_(text), pos_(pos) {}

  Literal read() {
    const Shape shape = parse_shape(text_, pos_);
    if (!shape.is_static()) throw invalid("literal: ", shape, " is not a static shape");
    skip();
    if (accept('"')) return read_base64(shape);
    expect('{');
    return read_elements(shape);
  }

 private:
  Literal read_base64(const Shape& shape) {
    const size_t end = text_.find('"', pos_);
    if (end == std::string_view::npos) throw invalid("literal: the base64 text has no closing '\"'");
    const auto bytes = decode_base64(text_.substr(pos_, end - pos_));
    pos_ = end + 1;
    return Literal::copy_of(shape, bytes);
  }

  // Memory follows the text: a splat of a huge shape is refused, other forms need an element each.
  Literal read_elements(const Shape& shape) {
    constexpr int64_t kMaxSplatBytes = int64_t(1) << 32;
    std::vector<std::complex<double>> values;
    std::vector<int64_t> integers;
    const bool whole = is_integer(shape.dtype()) || shape.dtype() == DType::bool_;
    bool splat = false;
    skip();
    while (!accept('}')) {
      if (!values.empty() || !integers.empty()) {
        if (text_.substr(pos_, 3) == "...") {
          pos_ += 3;
          splat = true;
          skip();
          expect('}');
          break;
        }
        expect(',');
      }
      if (whole) {
        integers.push_back(integer());
      } else {
        values.push_back(element(shape.dtype()));
      }
      skip();
    }
    const int64_t wanted = shape.elements();
    const auto given = int64_t(whole ? integers.size() : values.size());
    if (splat) {
      if (given != 1 || shape.size_bytes() > kMaxSplatBytes)
        throw invalid("literal: cannot repeat to fill ", shape);
      integers.resize(whole ? size_t(wanted) : 0, whole ? integers[0] : 0);
      values.resize(whole ? 0 : size_t(wanted), whole ? 0 : values[0]);
    } else if (given != wanted) {
      throw invalid("literal: ", given, " values for ", shape, "; it has ", wanted);
    }
    if (whole) {
      Literal out = Literal::integers(shape, integers);
      for (int64_t i = 0; i < wanted; ++i) {
        if (out.integer_at(i) != integers[size_t(i)])
          throw invalid("literal: ", integers[size_t(i)], " does not fit into ", shape.dtype());
      }
      return out;
    }
    if (shape.dtype() == DType::c64) return Literal::complexes(shape, values);
    std::vector<double> reals(values.size());
    for (size_t i = 0; i < values.size(); ++i) reals[i] = values[i].real();
    return Literal::reals(shape, reals);
  }

  std::complex<double> element(DType t) {
    if (t != DType::c64) return number();
    expect('(');
    const double re = number();
    expect(',');
    const double im = number();
    expect(')');
    return {re, im};
  }

  int64_t integer() {
    skip();
    if (text_.substr(pos_, 4) == "true") return pos_ += 4, 1;
    if (text_.substr(pos_, 5) == "false") return pos_ += 5, 0;
    int64_t value = 0;
    const char* begin = text_.data() + pos_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) throw invalid("literal: expected a whole number");
    pos_ += size_t(end - begin);
    return value;
  }

  double number() {
    skip();
    try {
      return parse_real(text_, pos_);
    } catch (const Error& e) {
      throw invalid("literal: ", e.message());
    }
  }

  void skip() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n')) ++pos_;
  }
  bool accept(char c) {
    skip();
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw invalid("literal: expected '", c, "'");
  }

  std::string_view text_;
  size_t& pos_;
};

}  // namespace

void append_text(std::string& out, const Literal& l) {
  append_text(out, l.shape());
  const bool splat = l.elements() > 4 && is_splat(l);
  const int64_t shown = splat ? 1 : l.elements();
  if (shown > kMaxInline || has_nan(l, shown)) {
    out.push_back('"');
    out += encode_base64(l.bytes());
    out.push_back('"');
    return;
  }
  out.push_back('{');
  for (int64_t i = 0; i < shown; ++i) {
    if (i) out.append(", ");
    append_element(out, l, i);
  }
  if (splat) out.append(" ...");
  out.push_back('}');
}

Literal parse_literal(std::string_view text, size_t& pos) { return Reader(text, pos).read(); }

}  // namespace rlx
