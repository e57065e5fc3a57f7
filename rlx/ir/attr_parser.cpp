// Values of attributes in graph texts.
#include <algorithm>
#include <charconv>

#include "rlx/ir/graph_parser.h"
#include "rlx/ir/real_text.h"

namespace rlx::ir {

std::optional<AttrValue> GraphParser::value(const FieldInfo& f) {
  const bool none_is_a_choice =
      !f.optional && std::find(f.choices.begin(), f.choices.end(), "none") != f.choices.end();
  if (!none_is_a_choice && in_.accept_word("none")) {
    if (f.optional) return AttrValue();
    if (f.kind == AttrKind::graph) return AttrValue(GraphRef());
    in_.fail(cat("attribute '", f.name, "' cannot be none"));
  }
  return f.kind == AttrKind::graph ? body() : std::optional(plain_value(f));
}

AttrValue GraphParser::plain_value(const FieldInfo& f) {
  switch (f.kind) {
    case AttrKind::boolean:
      if (in_.accept_word("true")) return true;
      if (in_.accept_word("false")) return false;
      in_.fail(cat("expected true or false, found ", in_.found()));
    case AttrKind::integer:
      return integer();
    case AttrKind::real:
      return real();
    case AttrKind::string:
      return in_.quoted();
    case AttrKind::choice:
      return choice(f);
    case AttrKind::dtype:
      return dtype();
    case AttrKind::integers:
      return list(f, "[", "]", [&] { return integer(); });
    case AttrKind::reals:
      return list(f, "[", "]", [&] { return real(); });
    case AttrKind::dim:
      return dim();
    case AttrKind::dims:
      return Dims(list(f, "(", ")", [&] { return dim(); }));
    case AttrKind::shape:
      return in_.read([](auto t, auto& p) { return parse_shape(t, p); });
    case AttrKind::literal:
      return literal();
    case AttrKind::graph:
      break;
  }
  in_.fail("unknown kind of attribute");
}

AttrValue GraphParser::choice(const FieldInfo& f) {
  const size_t start = in_.pos();
  std::string word = in_.name("a choice");
  for (const std::string_view c : f.choices) {
    if (c == word) return word;
  }
  in_.fail_at(start, cat("'", word, "' is not a choice for '", f.name, "'; known: ", join(f.choices)));
}

DType GraphParser::dtype() {
  const size_t start = in_.pos();
  const std::string word = in_.name("a dtype");
  if (const auto t = dtype_from_name(word)) return *t;
  in_.fail_at(start, cat("'", word, "' is not a dtype; expected one like f32 or i64"));
}

std::optional<AttrValue> GraphParser::body() {
  GraphParser inner(reading_, depth_ + 1);
  auto graph = std::make_shared<const Graph>(inner.parse());
  if (!inner.is_complete()) return std::nullopt;
  return AttrValue(GraphRef(std::move(graph)));
}

// The contents, or the name under which they are kept elsewhere.
Literal GraphParser::literal() {
  in_.skip();
  const size_t start = in_.pos();
  const Shape shape = in_.read([](auto t, auto& p) { return parse_shape(t, p); });
  if (!in_.accept("@")) {
    in_.rewind(start);
    return in_.read([](auto t, auto& p) { return parse_literal(t, p); });
  }
  const std::string name = in_.name("the name of a stored constant");
  if (reading_.fetch == nullptr)
    in_.fail_at(start, cat("'", name, "' is kept outside of this text; load its file"));
  Literal value;
  guarded(start, [&] { value = (*reading_.fetch)(name); });
  if (value.shape() != shape) in_.fail_at(start, cat("'", name, "' is ", value.shape(), ", not ", shape));
  return value;
}

Dim GraphParser::dim() {
  return in_.read([](auto t, auto& p) { return parse_dim(t, p); });
}

int64_t GraphParser::integer() {
  return in_.read([](std::string_view t, size_t& p) {
    int64_t v = 0;
    const auto [end, error] = std::from_chars(t.data() + p, t.data() + t.size(), v);
    if (error != std::errc()) throw invalid("expected a whole number that fits 64 bits");
    p = size_t(end - t.data());
    return v;
  });
}

double GraphParser::real() {
  return in_.read([](auto t, auto& p) { return parse_real(t, p); });
}

}  // namespace rlx::ir
