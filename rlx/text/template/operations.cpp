#include "rlx/text/template/operations.h"

#include <utf8proc.h>

#include <cmath>

#include "rlx/text/python_float.h"
#include "rlx/text/template/lexer.h"
#include "rlx/text/template/object.h"
#include "rlx/text/template/string_format.h"
#include "rlx/text/template/text_functions.h"
#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

[[noreturn]] void no_operation(Place place, std::string_view what, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (v->is_undefined()) throw error_at(place, cat("'", v->undefined_name(), "' is undefined"));
  throw error_at(place, cat(what, " is not possible between ", a.kind_name(), " and ", b.kind_name()));
}

bool is_numeric(const Value& v) { return v.is_number() || v.is_bool(); }
double as_double(const Value& v) { return v.is_bool() ? v.as_bool() : v.as_double(); }
bool is_integral(const Value& v) { return v.is_int() || v.is_bool(); }
int64_t as_int(const Value& v) { return v.is_bool() ? v.as_bool() : v.as_int(); }

}  // namespace

void Budget::step(Place place, uint64_t cost) {
  spent_ += cost;
  if (spent_ > kSteps) throw error_at(place, cat("rendering takes more than ", kSteps, " steps"));
}
void Budget::text(Place place, size_t bytes) {
  if (bytes > kMaxText) throw error_at(place, cat("a string of ", bytes, " bytes; at most ", kMaxText));
  step(place, 1 + bytes / 64);
}
void Budget::items(Place place, size_t count) {
  if (count > kMaxItems) throw error_at(place, cat("a list of ", count, " items; at most ", kMaxItems));
  step(place, 1 + count);
}

bool truth(const Value& v) {
  if (v.is_bool()) return v.as_bool();
  if (v.is_int()) return v.as_int() != 0;
  if (v.is_double()) return v.as_double() != 0;
  if (v.is_string()) return !v.as_string().empty();
  if (v.is_list()) return !v.as_list().empty();
  if (v.is_dict()) return !v.as_dict().empty();
  if (const Sequence* s = sequence_of(v)) return s->kind() == Sequence::Kind::generator || !s->list().empty();
  return v.is_object();
}

bool equal(const Value& a, const Value& b, Place place, Budget& budget) {
  budget.step(place);
  if (is_integral(a) && is_integral(b)) return as_int(a) == as_int(b);
  if (is_numeric(a) && is_numeric(b)) return as_double(a) == as_double(b);
  if (a.is_string() && b.is_string()) return a.as_string() == b.as_string();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  const auto same_items = [&](const List& x, const List& y) {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (!equal(x[i], y[i], place, budget)) return false;
    return true;
  };
  if (a.is_list() && b.is_list()) return a.is_tuple() == b.is_tuple() && same_items(a.as_list(), b.as_list());
  const Sequence *x = sequence_of(a), *y = sequence_of(b);
  if (x && y && x->kind() == y->kind() && x->kind() != Sequence::Kind::generator)
    return same_items(x->list(), y->list());
  if (a.is_dict() && b.is_dict()) {
    if (a.as_dict().size() != b.as_dict().size()) return false;
    for (const auto& [key, value] : a.as_dict()) {
      const Value* other = b.as_dict().find_key(key);
      if (!other || !equal(value, *other, place, budget)) return false;
    }
    return true;
  }
  return a.is_object() && b.is_object() && a.as_object() == b.as_object();
}

int order(const Value& a, const Value& b, Place place, Budget& budget) {
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  if (is_integral(a) && is_integral(b)) return sign(as_int(a), as_int(b));
  if (is_numeric(a) && is_numeric(b)) return sign(as_double(a), as_double(b));
  if (a.is_string() && b.is_string()) return sign(a.as_string().compare(b.as_string()), 0);
  if (a.is_list() && b.is_list()) {
    const List &x = a.as_list(), &y = b.as_list();
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i], place, budget)) return order(x[i], y[i], place, budget);
    }
    return sign(x.size(), y.size());
  }
  no_operation(place, "comparing by order", a, b);
}

bool contains(const Value& container, const Value& item, Place place, Budget& budget) {
  if (container.is_string()) {
    if (!item.is_string()) no_operation(place, "'in'", item, container);
    return container.as_string().find(item.as_string()) != std::string::npos;
  }
  if (container.is_list()) {
    for (const Value& v : container.as_list())
      if (equal(v, item, place, budget)) return true;
    return false;
  }
  if (container.is_dict()) return Dict::is_key(item) && container.as_dict().find_key(item);
  if (container.is_undefined()) return false;
  if (Sequence* s = sequence_of(container)) {
    List& list = s->left();
    for (size_t i = 0; i < list.size(); ++i) {
      if (!equal(list[i], item, place, budget)) continue;
      if (s->kind() == Sequence::Kind::generator) list.erase(list.begin(), list.begin() + long(i) + 1);
      return true;
    }
    if (s->kind() == Sequence::Kind::generator) list.clear();
    return false;
  }
  no_operation(place, "'in'", item, container);
}

void spend(const Value& v, Place place, Budget& budget) {
  budget.step(place, 1 + (v.is_string() ? v.as_string().size() / 64 : 0));
  if (v.is_list())
    for (const Value& x : v.as_list()) spend(x, place, budget);
  if (v.is_dict())
    for (const auto& [key, x] : v.as_dict()) spend(x, place, budget);
}

namespace {

// What Python's repr() shows as it is: no controls, no private or unknown characters, and of the spaces the plain one.
bool is_printable(char32_t code) {
  if (code < 0x7F) return code >= 0x20;
  switch (utf8proc_category(utf8proc_int32_t(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

void append_repr_string(std::string& out, std::string_view s) {
  constexpr char kHex[] = "0123456789abcdef";
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  out.push_back(quote);
  for (size_t i = 0; i < s.size();) {
    const Decoded c = decode_utf8(s, i);
    if (c.code == char32_t(quote) || c.code == '\\') {
      out.append({'\\', char(c.code)});
    } else if (c.code == '\n') {
      out.append("\\n");
    } else if (c.code == '\r') {
      out.append("\\r");
    } else if (c.code == '\t') {
      out.append("\\t");
    } else if (c.code == kBadByte || is_printable(c.code)) {
      out.append(s.substr(i, c.length));
    } else {
      const int digits = c.code < 0x100 ? 2 : c.code < 0x10000 ? 4 : 8;
      out.append(digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U");
      for (int d = digits - 1; d >= 0; --d) out.push_back(kHex[c.code >> (4 * d) & 15]);
    }
    i += c.length;
  }
  out.push_back(quote);
}

void append_number(std::string& out, double d) {
  if (std::isinf(d)) return (void)out.append(d < 0 ? "-inf" : "inf");
  if (std::isnan(d)) return (void)out.append("nan");
  append_python_float(out, d);
}

void append_items(std::string& out, const List& list, Place place, Budget& budget);

void append_repr(std::string& out, const Value& v, Place place, Budget& budget) {
  budget.step(place, 1 + (v.is_string() ? v.as_string().size() / 64 : 0));
  if (out.size() > Budget::kMaxText) budget.text(place, out.size());
  if (v.is_none()) {
    out.append("None");
  } else if (v.is_bool()) {
    out.append(v.as_bool() ? "True" : "False");
  } else if (v.is_int()) {
    append_text(out, v.as_int());
  } else if (v.is_double()) {
    append_number(out, v.as_double());
  } else if (v.is_string()) {
    if (v.is_markup()) out.append("Markup(");
    append_repr_string(out, v.as_string());
    if (v.is_markup()) out.push_back(')');
  } else if (const Sequence* s = sequence_of(v)) {
    const bool view = s->kind() != Sequence::Kind::range && s->kind() != Sequence::Kind::generator;
    out.append(s->text());
    if (view) append_items(out.append("(["), s->list(), place, budget);
    if (view) out.append("])");
  } else if (v.is_list()) {
    out.push_back(v.is_tuple() ? '(' : '[');
    append_items(out, v.as_list(), place, budget);
    if (v.is_tuple() && v.as_list().size() == 1) out.push_back(',');
    out.push_back(v.is_tuple() ? ')' : ']');
  } else if (v.is_dict()) {
    out.push_back('{');
    bool first = true;
    for (const auto& [key, x] : v.as_dict()) {
      if (!first) out.append(", ");
      first = false;
      append_repr(out, key, place, budget);
      out.append(": ");
      append_repr(out, x, place, budget);
    }
    out.push_back('}');
  } else if (v.is_undefined()) {
    out.append("Undefined");
  } else {
    out.append(v.as_object()->shown());
  }
}

void append_items(std::string& out, const List& list, Place place, Budget& budget) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out.append(", ");
    append_repr(out, list[i], place, budget);
  }
}

}  // namespace

std::string to_text(const Value& v, Place place, Budget& budget) {
  if (v.is_string()) return v.as_string();
  if (v.is_undefined()) return {};
  return to_repr(v, place, budget);
}

std::string to_repr(const Value& v, Place place, Budget& budget) {
  std::string out;
  append_repr(out, v, place, budget);
  return out;
}

namespace {

Value integer_arithmetic(std::string_view op, int64_t a, int64_t b, Place place) {
  int64_t r = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &r);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &r);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &r);
  } else if (op == "**") {
    if (b < 0) return Value(std::pow(double(a), double(b)));
    r = 1;
    for (int64_t base = a, left = b; left > 0 && !overflow; left >>= 1) {
      if (left & 1) overflow |= __builtin_mul_overflow(r, base, &r);
      if (left > 1) overflow |= __builtin_mul_overflow(base, base, &base);
    }
  } else {  // "//" and "%": rounded towards minus infinity
    if (b == 0) throw error_at(place, "division by zero");
    if (b == -1) {
      overflow = op == "//" && __builtin_sub_overflow(int64_t(0), a, &r);
    } else {
      const int64_t quotient = a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
      r = op == "//" ? quotient : a - quotient * b;
    }
  }
  if (overflow) throw error_at(place, cat("the result of ", a, " ", op, " ", b, " does not fit in 64 bits"));
  return Value(r);
}

Value float_arithmetic(std::string_view op, double a, double b, Place place) {
  if (op == "+") return Value(a + b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "**") return Value(std::pow(a, b));
  if (b == 0) throw error_at(place, "division by zero");
  if (op == "/") return Value(a / b);
  const double quotient = std::floor(a / b);
  return Value(op == "//" ? quotient : a - quotient * b);
}

Value repeated(const Value& v, int64_t times, Place place, Budget& budget) {
  const size_t count = size_t(std::max<int64_t>(0, times));
  const size_t size = v.is_string() ? v.as_string().size() : v.as_list().size();
  size_t total = 0;
  if (__builtin_mul_overflow(size, count, &total)) total = ~size_t(0);
  if (v.is_string()) {
    budget.text(place, total);
    std::string out;
    out.reserve(total);
    for (size_t i = 0; i < count && size; ++i) out.append(v.as_string());
    return v.is_markup() ? Value::markup(std::move(out)) : Value(std::move(out));
  }
  budget.items(place, total);
  List out;
  for (size_t i = 0; i < count && size; ++i) out.insert(out.end(), v.as_list().begin(), v.as_list().end());
  return v.is_tuple() ? Value::tuple(std::move(out)) : Value(std::move(out));
}

// Plain text is escaped where it joins markup.
Value joined_strings(const Value& a, const Value& b, Place place, Budget& budget) {
  const bool markup = a.is_markup() || b.is_markup();
  const auto part = [&](const Value& v) {
    return markup && !v.is_markup() ? escape_markup(v.as_string()) : v.as_string();
  };
  budget.text(place, a.as_string().size() + b.as_string().size());
  std::string out = part(a) + part(b);
  return markup ? Value::markup(std::move(out)) : Value(std::move(out));
}

}  // namespace

Value arithmetic(std::string_view op, const Value& a, const Value& b, Place place, Budget& budget) {
  if (op == "~") {
    std::string out = to_text(a, place, budget);
    out.append(to_text(b, place, budget));
    budget.text(place, out.size());
    return Value(std::move(out));
  }
  if (is_integral(a) && is_integral(b) && op != "/")
    return integer_arithmetic(op, as_int(a), as_int(b), place);
  if (is_numeric(a) && is_numeric(b)) return float_arithmetic(op, as_double(a), as_double(b), place);
  if (op == "+" && a.is_string() && b.is_string()) return joined_strings(a, b, place, budget);
  if (op == "%" && a.is_string()) {
    std::string out = format_percent(a.as_string(), b, {place, budget, a.is_markup()});
    return a.is_markup() ? Value::markup(std::move(out)) : Value(std::move(out));
  }
  if (op == "+" && a.is_list() && b.is_list() && a.is_tuple() == b.is_tuple()) {
    budget.items(place, a.as_list().size() + b.as_list().size());
    List out = a.as_list();
    out.insert(out.end(), b.as_list().begin(), b.as_list().end());
    return a.is_tuple() ? Value::tuple(std::move(out)) : Value(std::move(out));
  }
  const auto repeatable = [](const Value& v) { return v.is_string() || v.is_list(); };
  if (op == "*" && repeatable(a) && is_integral(b)) return repeated(a, as_int(b), place, budget);
  if (op == "*" && is_integral(a) && repeatable(b)) return repeated(b, as_int(a), place, budget);
  no_operation(place, cat("'", op, "'"), a, b);
}

Value negated(const Value& v, Place place) {
  if (is_integral(v)) return integer_arithmetic("-", 0, as_int(v), place);
  if (v.is_double()) return Value(-v.as_double());
  no_operation(place, "'-'", Value(0), v);
}

List elements(const Value& v, Place place, Budget& budget) {
  if (v.is_list()) {
    budget.items(place, v.as_list().size());
    return v.as_list();
  }
  List out;
  if (v.is_string()) {
    const std::string& s = v.as_string();
    budget.items(place, s.size());
    for (size_t i = 0; i < s.size();) {
      const size_t n = decode_utf8(s, i).length;
      out.emplace_back(std::string_view(s).substr(i, n));
      i += n;
    }
  } else if (v.is_dict()) {
    budget.items(place, v.as_dict().size());
    for (const auto& [key, value] : v.as_dict()) out.push_back(key);
  } else if (Sequence* s = sequence_of(v)) {
    budget.items(place, s->list().size());
    return s->kind() == Sequence::Kind::generator ? s->take_rest() : s->list();
  } else if (!v.is_undefined()) {
    throw error_at(place, cat("cannot iterate over ", v.kind_name()));
  }
  return out;
}

int64_t length(const Value& v, Place place) {
  if (v.is_string()) return int64_t(count_characters(v.as_string()));
  if (v.is_list()) return int64_t(v.as_list().size());
  if (v.is_dict()) return int64_t(v.as_dict().size());
  if (v.is_undefined()) return 0;
  if (const Sequence* s = sequence_of(v); s && s->kind() != Sequence::Kind::generator)
    return int64_t(s->list().size());
  throw error_at(place, cat(v.kind_name(), " has no length"));
}

Value item(const Value& object, const Value& key, Place place) {
  if (object.is_undefined()) throw error_at(place, cat("'", object.undefined_name(), "' is undefined"));
  const std::string name = key.is_string() ? key.as_string() : key.is_int() ? cat(key.as_int()) : "";
  if (object.is_dict()) {
    const Value* found = Dict::is_key(key) ? object.as_dict().find_key(key) : nullptr;
    return found ? *found : Value::undefined(name);
  }
  if (const Sequence* s = sequence_of(object); s && s->kind() == Sequence::Kind::range && is_integral(key)) {
    const auto n = int64_t(s->list().size());
    const int64_t i = as_int(key) < 0 ? as_int(key) + n : as_int(key);
    return i >= 0 && i < n ? s->list()[size_t(i)] : Value::undefined(name);
  }
  if (object.is_object() && key.is_string()) return object.as_object()->get(key.as_string());
  if (is_integral(key) && (object.is_list() || object.is_string())) {
    const int64_t n = length(object, place);
    int64_t i = as_int(key);
    if (i < 0) i += n;
    if (i < 0 || i >= n) return Value::undefined(name);
    if (object.is_list()) return object.as_list()[size_t(i)];
    const std::string& s = object.as_string();
    size_t at = 0;
    for (; i > 0; --i) at += decode_utf8(s, at).length;
    const std::string_view character = std::string_view(s).substr(at, decode_utf8(s, at).length);
    return object.is_markup() ? Value::markup(std::string(character)) : Value(character);
  }
  return Value::undefined(name);
}

Value slice(const Value& object, const Value& start, const Value& stop, const Value& step_value, Place place,
            Budget& budget) {
  const Sequence* range = sequence_of(object);
  if (range && range->kind() != Sequence::Kind::range) range = nullptr;
  if (!object.is_list() && !object.is_string() && !range) {
    if (object.is_undefined()) throw error_at(place, cat("'", object.undefined_name(), "' is undefined"));
    throw error_at(place, cat(object.kind_name(), " cannot be sliced"));
  }
  const List all = elements(object, place, budget);
  const auto n = int64_t(all.size());
  for (const Value* v : {&start, &stop, &step_value})
    if (!v->is_none() && !v->is_int())
      throw error_at(place, cat("a slice needs integers, got ", v->kind_name()));
  const int64_t step = step_value.is_none() ? 1 : step_value.as_int();
  if (step == 0) throw error_at(place, "a slice cannot have step 0");
  const auto bound = [&](const Value& v, int64_t otherwise) {
    if (v.is_none()) return otherwise;
    int64_t i = v.as_int();
    if (i < 0) i = i < -n ? -1 : i + n;
    return step > 0 ? std::clamp<int64_t>(i, 0, n) : std::clamp<int64_t>(i, -1, n - 1);
  };
  const int64_t from = bound(start, step > 0 ? 0 : n - 1), to = bound(stop, step > 0 ? n : -1);
  List picked;
  // Written with a count, because adding a huge step to an index could overflow.
  const int64_t distance = step > 0 ? to - from : from - to;
  const uint64_t stride = step > 0 ? uint64_t(step) : uint64_t(0) - uint64_t(step);
  const int64_t count = distance <= 0 ? 0 : int64_t((uint64_t(distance) - 1) / stride) + 1;
  for (int64_t k = 0; k < count; ++k) picked.push_back(all[size_t(from + k * step)]);
  if (object.is_list() || range)
    return object.is_tuple() ? Value::tuple(std::move(picked)) : Value(std::move(picked));
  std::string text;
  for (const Value& v : picked) text.append(v.as_string());
  return object.is_markup() ? Value::markup(std::move(text)) : Value(std::move(text));
}

}  // namespace rlx::text::jinja
