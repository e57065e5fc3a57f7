// What is wrong with a call, as the parser found it, in the form of all other messages.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace rlx::cli {

/// "--tokens: 'x' is not a whole number; see 'rlx help generate'"; `app` is rlx itself, after it has parsed.
std::string wrong_call(const CLI::App& app, const CLI::ParseError&);

}  // namespace rlx::cli
