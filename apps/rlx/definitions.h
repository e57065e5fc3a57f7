// What the commands are called and take, read back from their declarations: help, completion and the manual
// page are made from it, so that none of them can differ from what is parsed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/rlx/arguments.h"

namespace rlx::cli {

struct OptionDefinition {
  std::vector<std::string> names;  // "--type", "-t"; for an argument by position its one word: "FILE"
  std::string summary;
  bool positional = false, required = false;
  bool takes_value = false;          // not a flag
  std::vector<std::string> choices;  // where only some words are allowed
};

struct CommandDefinition {
  std::string name, summary;
  std::vector<OptionDefinition> options;
};

std::vector<CommandDefinition> command_definitions(Command app);

/// The command of that name, if there is one.
std::optional<Command> find_command(Command app, const std::string& name);

/// "unknown command 'inspec'; did you mean 'inspect'; see 'rlx help'"
std::string unknown_command(Command app, const std::string& name);

}  // namespace rlx::cli
