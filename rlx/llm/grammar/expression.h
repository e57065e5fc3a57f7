// What every notation of grammars becomes: rules whose bodies are expressions over characters.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rlx/llm/grammar/characters.h"

namespace rlx::llm {

struct Expression;
using ExpressionPtr = std::shared_ptr<const Expression>;

/// Tokens named by a grammar instead of by their text. A name is the spelling in the vocabulary.
struct TokenReference {
  int64_t id = -1;
  std::string name;      // when id is -1
  bool negated = false;  // every token but this one
};

struct Expression {
  enum class Kind : uint8_t { text, characters, sequence, choice, repeat, rule, token } kind = Kind::text;
  std::string text;                  // the bytes that stand there
  CharacterSet characters;           // one of them
  std::vector<ExpressionPtr> parts;  // of a sequence, a choice (of none: matches nothing), a repeat (one)
  int64_t least = 0, most = 0;       // of a repeat; most below 0: no limit
  int rule = -1;
  TokenReference token;
};

ExpressionPtr text_of(std::string text);
ExpressionPtr one_of(CharacterSet characters);
ExpressionPtr in_sequence(std::vector<ExpressionPtr> parts);
ExpressionPtr any_of(std::vector<ExpressionPtr> parts);
ExpressionPtr repeated(ExpressionPtr part, int64_t least, int64_t most = -1);
ExpressionPtr optional(ExpressionPtr part);
ExpressionPtr call_rule(int rule);
ExpressionPtr one_token(TokenReference);

/// Rules by number; a body may be filled in after others refer to it.
struct RuleSet {
  struct Rule {
    std::string name;
    ExpressionPtr body;
  };
  std::vector<Rule> rules;
  int root = 0;

  int add(std::string name, ExpressionPtr body = {}) {
    rules.push_back({std::move(name), std::move(body)});
    return int(rules.size()) - 1;
  }
};

}  // namespace rlx::llm
