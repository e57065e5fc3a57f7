// rlx completion: words that a shell offers, from the declarations of the commands.
#include "apps/rlx/command.h"
#include "apps/rlx/definitions.h"
#include "apps/rlx/output.h"
#include "rlx/base/error.h"

namespace rlx::cli {
namespace {

// In single quotes; a quote inside ends them, is written, and begins them again.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? (void)(out += "'\\''") : (void)(out += c);
  return out += "'";
}

std::vector<std::string> option_words(const CommandDefinition& command) {
  std::vector<std::string> out;
  for (const OptionDefinition& o : command.options) {
    if (!o.positional) out.insert(out.end(), o.names.begin(), o.names.end());
  }
  return out;
}

// Words for arguments by position, where only some are allowed; otherwise they are files.
std::vector<std::string> argument_words(const CommandDefinition& command,
                                        const std::vector<CommandDefinition>& all) {
  std::vector<std::string> out;
  for (const OptionDefinition& o : command.options) {
    if (!o.positional) continue;
    out.insert(out.end(), o.choices.begin(), o.choices.end());
    if (o.names[0] == "COMMAND") {
      for (const CommandDefinition& c : all) out.push_back(c.name);
    }
  }
  return out;
}

bool takes_files(const CommandDefinition& command, const std::vector<CommandDefinition>& all) {
  bool positional = false;
  for (const OptionDefinition& o : command.options) positional = positional || o.positional || o.takes_value;
  return positional && argument_words(command, all).empty();
}

std::string bash(const std::vector<CommandDefinition>& commands) {
  std::vector<std::string> names;
  std::string cases;
  for (const CommandDefinition& c : commands) {
    names.push_back(c.name);
    const auto words = argument_words(c, commands);
    cases += cat("    ", c.name, ")\n      options=", shell_quoted(join(option_words(c), " ")), "\n");
    if (!words.empty()) cases += cat("      words=", shell_quoted(join(words, " ")), "\n");
    if (takes_files(c, commands)) cases += "      files=yes\n";
    cases += "      ;;\n";
  }
  return cat(
      "# bash completion of rlx; made by `rlx completion bash`\n_rlx() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} options='--help --version' words='' files=''\n"
      "  COMPREPLY=()\n  case ${COMP_CWORD}:${COMP_WORDS[1]} in\n    1:*)\n      words=",
      shell_quoted(join(names, " ")), "\n      ;;\n    *)\n      case ${COMP_WORDS[1]} in\n", cases,
      "      esac\n      ;;\n  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n    return\n  fi\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "  if [[ $files ]]; then\n    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$current\")\n  fi\n}\n"
      "complete -F _rlx rlx\n");
}

// In a description zsh gives a meaning to brackets and colons.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh(const std::vector<CommandDefinition>& commands) {
  std::string list, cases;
  for (const CommandDefinition& c : commands) {
    list += cat("    ", shell_quoted(cat(zsh_text(c.name), ":", zsh_text(c.summary))), "\n");
    cases += cat("        ", c.name, ")\n          _arguments -s \\\n");
    for (const OptionDefinition& o : c.options) {
      if (o.positional) continue;
      for (const std::string& name : o.names) {
        const std::string value = !o.takes_value      ? ""
                                  : o.choices.empty() ? ":value:_files"
                                                      : cat(":value:(", join(o.choices, " "), ")");
        cases += cat("            ", shell_quoted(cat(name, "[", zsh_text(o.summary), "]", value)), " \\\n");
      }
    }
    const auto words = argument_words(c, commands);
    cases += cat("            ",
                 shell_quoted(!words.empty()             ? cat("*:word:(", join(words, " "), ")")
                              : takes_files(c, commands) ? std::string("*:file:_files")
                                                         : std::string("*::")),
                 "\n          ;;\n");
  }
  return cat(
      "#compdef rlx\n# zsh completion of rlx; made by `rlx completion zsh`\n_rlx() {\n  local -a commands\n"
      "  commands=(\n",
      list,
      "  )\n  _arguments -C '(- *)--help[show help]' '(- *)--version[show the version]' "
      "'1:command:->command' '*::argument:->argument'\n"
      "  case $state in\n    command)\n      _describe -t commands 'rlx command' commands\n      ;;\n"
      "    argument)\n      case $words[1] in\n",
      cases, "      esac\n      ;;\n  esac\n}\n_rlx \"$@\"\n");
}

std::string fish(const std::vector<CommandDefinition>& commands) {
  std::string out = "# fish completion of rlx; made by `rlx completion fish`\n";
  out += "complete -c rlx -n __fish_use_subcommand -f -l help -d 'show help'\n";
  out += "complete -c rlx -n __fish_use_subcommand -f -l version -d 'show the version'\n";
  for (const CommandDefinition& c : commands) {
    out +=
        cat("complete -c rlx -n __fish_use_subcommand -f -a ", c.name, " -d ", shell_quoted(c.summary), "\n");
    const std::string here = cat("complete -c rlx -n '__fish_seen_subcommand_from ", c.name, "'");
    for (const OptionDefinition& o : c.options) {
      if (o.positional) continue;
      std::string names;
      for (const std::string& name : o.names)
        names += name.starts_with("--") ? cat(" -l ", name.substr(2)) : cat(" -s ", name.substr(1));
      out += cat(here, names, o.takes_value ? " -r" : "",
                 o.choices.empty() ? "" : cat(" -f -a ", shell_quoted(join(o.choices, " "))), " -d ",
                 shell_quoted(o.summary), "\n");
    }
    if (const auto words = argument_words(c, commands); !words.empty())
      out += cat(here, " -f -a ", shell_quoted(join(words, " ")), "\n");
  }
  return out;
}

}  // namespace

void add_completion(Command app) {
  const auto shell = std::make_shared<std::string>();
  Command command = app.add_subcommand("completion", "write the completion of a shell to standard output");
  command.add_option("SHELL", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  command.callback([app, shell] {
    const auto commands = command_definitions(app);
    print(*shell == "bash" ? bash(commands) : *shell == "zsh" ? zsh(commands) : fish(commands));
  });
}

}  // namespace rlx::cli
