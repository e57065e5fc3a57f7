#include "rlx/llm/grammar/matches.h"

#include "rlx/llm/grammar/matcher.h"
#include "rlx/llm/grammar/regular_expression.h"

namespace rlx::llm {

bool matches(const ExpressionPtr& expression, std::string_view text) {
  RuleSet rules;
  rules.add("root", expression);
  MatchStates states(std::make_shared<const Automaton>(rules, "expression"));
  int32_t state = states.start();
  for (const char c : text) {
    state = states.after_byte(state, static_cast<unsigned char>(c));
    if (state == MatchStates::kDead) return false;
  }
  return states.complete(state);
}

bool matches_part(std::string_view pattern, std::string_view text) {
  return matches(parse_regular_expression(pattern, RegexScope::part), text);
}

}  // namespace rlx::llm
