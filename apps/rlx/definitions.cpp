#include "apps/rlx/definitions.h"

#include <CLI/CLI.hpp>

#include "rlx/base/text.h"

namespace rlx::cli {
namespace {

// CLI11 keeps the words of CLI::IsMember in the name of the type: "TEXT:{bash,zsh,fish}".
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> out;
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return out;
  for (size_t at = open + 1; at < close;) {
    const size_t comma = std::min(type.find(',', at), close);
    out.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

OptionDefinition definition_of(const CLI::Option& option) {
  OptionDefinition out;
  out.summary = option.get_description();
  out.positional = option.get_positional();
  out.required = option.get_required();
  out.takes_value = option.get_items_expected_max() > 0;
  out.choices = choices_of(option.get_type_name());
  if (out.positional) {
    out.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
    for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  }
  return out;
}

}  // namespace

std::vector<CommandDefinition> command_definitions(Command app) {
  std::vector<CommandDefinition> out;
  for (const CLI::App* command :
       std::as_const(app.parser()).get_subcommands([](const CLI::App*) { return true; })) {
    CommandDefinition& d = out.emplace_back();
    d.name = command->get_name();
    d.summary = command->get_description();
    for (const CLI::Option* option : command->get_options()) d.options.push_back(definition_of(*option));
  }
  return out;
}

std::optional<Command> find_command(Command app, const std::string& name) {
  const auto found =
      app.parser().get_subcommands([&](CLI::App* command) { return command->get_name() == name; });
  if (found.empty()) return std::nullopt;
  return Command(found[0]);
}

std::string unknown_command(Command app, const std::string& name) {
  std::vector<std::string> names;
  for (const CommandDefinition& command : command_definitions(app)) names.push_back(command.name);
  const std::string near = nearest_name(name, names);
  return cat("unknown command '", name, "'", near.empty() ? "" : cat("; did you mean '", near, "'"),
             "; see 'rlx help'");
}

}  // namespace rlx::cli
