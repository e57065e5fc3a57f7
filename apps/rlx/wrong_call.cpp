#include "apps/rlx/wrong_call.h"

#include <CLI/CLI.hpp>

#include "rlx/base/text.h"

namespace rlx::cli {
namespace {

// The first word that no option or position took.
std::string unexpected(const CLI::App& command) {
  const std::vector<std::string> rest = command.remaining(true);
  if (rest.empty()) return "too many arguments";
  if (!rest[0].starts_with('-')) return cat("'", rest[0], "' is one argument too many");
  const std::string word = rest[0].substr(0, rest[0].find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string near = nearest_name(word, names);
  return cat("there is no option '", word, "'", near.empty() ? "" : cat("; did you mean '", near, "'"));
}

// CLI11 says "Could not convert: --temp = x".
std::string not_converted(const CLI::App& command, const std::string& said) {
  const size_t colon = said.find(": "), sign = said.rfind(" = ");
  if (colon == std::string::npos || sign == std::string::npos || sign < colon) return said;
  const std::string name = said.substr(colon + 2, sign - colon - 2);
  const CLI::Option* option = command.get_option_no_throw(name);
  const bool real = option != nullptr && option->get_type_name().find("FLOAT") != std::string::npos;
  return cat(name, ": '", said.substr(sign + 3), "' is not a ", real ? "number" : "whole number");
}

// CLI11 says "--prompt: 1 required TEXT missing".
std::string not_given(const std::string& said) {
  const bool one = said.ends_with(" missing") && said.find(": 1 required ") != std::string::npos;
  return one ? cat(said.substr(0, said.find(": ")), ": its value is missing") : said;
}

std::string what_is_wrong(const CLI::App& command, const CLI::ParseError& e) {
  const std::string said = e.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) return unexpected(command);
  if (dynamic_cast<const CLI::ConversionError*>(&e) != nullptr) return not_converted(command, said);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) != nullptr) return not_given(said);
  return said;
}

}  // namespace

std::string wrong_call(const CLI::App& app, const CLI::ParseError& e) {
  const auto chosen = app.get_subcommands();
  return cat(what_is_wrong(chosen.empty() ? app : *chosen[0], e), "; see 'rlx help",
             chosen.empty() ? "" : " " + chosen[0]->get_name(), "'");
}

}  // namespace rlx::cli
