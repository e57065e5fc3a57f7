#include "rlx/llm/grammar/expression.h"

namespace rlx::llm {

namespace {
ExpressionPtr make(Expression e) { return std::make_shared<const Expression>(std::move(e)); }
}  // namespace

ExpressionPtr text_of(std::string text) {
  return make({.kind = Expression::Kind::text, .text = std::move(text)});
}

ExpressionPtr one_of(CharacterSet characters) {
  return make({.kind = Expression::Kind::characters, .characters = std::move(characters)});
}

ExpressionPtr in_sequence(std::vector<ExpressionPtr> parts) {
  if (parts.size() == 1) return parts[0];
  return make({.kind = Expression::Kind::sequence, .parts = std::move(parts)});
}

ExpressionPtr any_of(std::vector<ExpressionPtr> parts) {
  if (parts.size() == 1) return parts[0];
  return make({.kind = Expression::Kind::choice, .parts = std::move(parts)});
}

ExpressionPtr repeated(ExpressionPtr part, int64_t least, int64_t most) {
  return make({.kind = Expression::Kind::repeat, .parts = {std::move(part)}, .least = least, .most = most});
}

ExpressionPtr optional(ExpressionPtr part) { return repeated(std::move(part), 0, 1); }

ExpressionPtr call_rule(int rule) { return make({.kind = Expression::Kind::rule, .rule = rule}); }

ExpressionPtr one_token(TokenReference token) {
  return make({.kind = Expression::Kind::token, .token = std::move(token)});
}

}  // namespace rlx::llm
