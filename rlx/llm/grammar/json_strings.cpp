#include <algorithm>

#include "rlx/base/error.h"
#include "rlx/llm/grammar/json_keywords.h"
#include "rlx/llm/grammar/regular_expression.h"
#include "rlx/text/unicode.h"

namespace rlx::llm {

namespace {

struct Lengths {
  int64_t least = 0, most = 0;  // most below 0: no limit
};

int64_t sum_of(int64_t a, int64_t b) { return a < 0 || b < 0 ? -1 : a + b; }

Lengths lengths_of(const Expression& e) {
  using Kind = Expression::Kind;
  switch (e.kind) {
    case Kind::characters:
      return {1, 1};
    case Kind::text: {
      const auto n = int64_t(text::count_characters(e.text));
      return {n, n};
    }
    case Kind::sequence: {
      Lengths all;
      for (const ExpressionPtr& part : e.parts) {
        const Lengths l = lengths_of(*part);
        all = {all.least + l.least, sum_of(all.most, l.most)};
      }
      return all;
    }
    case Kind::choice: {
      Lengths all{INT64_MAX, 0};
      for (const ExpressionPtr& part : e.parts) {
        const Lengths l = lengths_of(*part);
        all = {std::min(all.least, l.least), all.most < 0 || l.most < 0 ? -1 : std::max(all.most, l.most)};
      }
      return all;
    }
    case Kind::repeat: {
      const Lengths l = lengths_of(*e.parts[0]);
      const int64_t most = l.most == 0 ? 0 : e.most < 0 || l.most < 0 ? -1 : l.most * e.most;
      return {l.least * e.least, most};
    }
    case Kind::rule:
    case Kind::token:
      break;
  }
  return {0, -1};
}

bool within(const Lengths& l, int64_t least, std::optional<int64_t> most) {
  return l.least >= least && (!most || (l.most >= 0 && l.most <= *most));
}

// A pattern whose texts have `least` to `most` characters, where this can be had by repeating one part of its sequence less or
// more often; null where it cannot.
ExpressionPtr limited(const ExpressionPtr& pattern, int64_t least, std::optional<int64_t> most) {
  if (within(lengths_of(*pattern), least, most)) return pattern;
  std::vector<ExpressionPtr> parts =
      pattern->kind == Expression::Kind::sequence ? pattern->parts : std::vector{pattern};
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expression& e = *parts[i];
    if (e.kind != Expression::Kind::repeat) continue;
    const Lengths one = lengths_of(*e.parts[0]);
    if (one.least != 1 || one.most != 1) continue;
    Lengths others;
    for (size_t j = 0; j < parts.size(); ++j)
      if (j != i) {
        const Lengths l = lengths_of(*parts[j]);
        others = {others.least + l.least, sum_of(others.most, l.most)};
      }
    int64_t from = std::max(e.least, least - others.least), to = e.most;
    if (most) {
      if (others.most < 0) continue;
      to = to < 0 ? *most - others.most : std::min(to, *most - others.most);
      if (to < from) continue;
    } else if (to >= 0 && to < from) {
      continue;
    }
    std::vector<ExpressionPtr> changed = parts;
    changed[i] = repeated(e.parts[0], from, to);
    return in_sequence(std::move(changed));
  }
  return {};
}

// Each character as JSON writes it.
ExpressionPtr spelled(const ExpressionPtr& e) {
  if (e->kind == Expression::Kind::characters) return json_character(e->characters);
  if (e->parts.empty()) return e;
  Expression changed = *e;
  for (ExpressionPtr& part : changed.parts) part = spelled(part);
  return std::make_shared<const Expression>(std::move(changed));
}

}  // namespace

ExpressionPtr string_inside(const Keywords& k) {
  const auto most = k.most_length.value_or(-1);
  if (k.most_length && *k.most_length < k.least_length) return any_of({});
  ExpressionPtr pattern;
  if (k.pattern) pattern = parse_regular_expression(k.pattern->string(), RegexScope::part);
  if (const ExpressionPtr format = k.format ? json_format(k.format->string()) : nullptr) {
    if (pattern)
      throw k.format->error("and a pattern at once are more than a grammar can join; leave one out");
    pattern = format;
  }
  if (!pattern) return repeated(json_any_character(), k.least_length, most);
  const ExpressionPtr fitting = limited(pattern, k.least_length, k.most_length);
  if (!fitting)
    throw(k.pattern ? *k.pattern : *k.format)
        .error("does not keep to minLength ", k.least_length,
               k.most_length ? cat(" and maxLength ", most) : std::string(),
               " by itself; write the lengths into the pattern");
  return spelled(fitting);
}

}  // namespace rlx::llm
