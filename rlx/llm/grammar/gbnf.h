// Grammars in GBNF, the notation of llama.cpp.
//
//   root  ::= item ("," item)*        # a comment
//   item  ::= "text" | [a-z0-9]{2,8} | [^"\n]+ | . | other-rule | <|token|> | <[1234]> | !<[1234]>
//
// Escapes in texts and classes: \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH. A rule ends with its line, but not inside
// parentheses, behind ::= or around |.
#pragma once

#include <string_view>

#include "rlx/llm/grammar/expression.h"

namespace rlx::llm {

/// The rule `root` is where texts start. Mistakes are user errors with line and column.
RuleSet parse_gbnf(std::string_view source, std::string_view root = "root");

}  // namespace rlx::llm
