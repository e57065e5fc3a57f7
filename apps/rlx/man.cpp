// rlx man: the manual page, from the declarations of the commands.
#include "apps/rlx/command.h"
#include "apps/rlx/definitions.h"
#include "apps/rlx/output.h"
#include "rlx/base/options.h"
#include "rlx/base/text.h"
#include "rlx/io/file_format.h"

namespace rlx::cli {
namespace {

// troff takes a backslash as the start of an escape, a hyphen as a typographic one, and a dot or apostrophe at
// the start of a line as a request.
std::string troff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string synopsis(const CommandDefinition& command) {
  std::string out = cat("\\fBrlx ", troff(command.name), "\\fR");
  for (const OptionDefinition& o : command.options) {
    if (o.positional)
      out += o.required ? cat(" \\fI", o.names[0], "\\fR") : cat(" [\\fI", o.names[0], "\\fR]");
  }
  return out + " [\\fIoptions\\fR]";
}

std::string option_entry(const OptionDefinition& o) {
  std::string names;
  for (const std::string& name : o.names)
    names += cat(names.empty() ? "" : ", ", o.positional ? "\\fI" : "\\fB", troff(name), "\\fR");
  return cat(".TP\n", names, o.takes_value && !o.positional ? " \\fIvalue\\fR" : "", "\n", troff(o.summary),
             o.required ? " (required)" : "", "\n");
}

std::string page(const Command& app) {
  std::string out = cat(".TH RLX 1 \"\" \"", version_line().substr(0, version_line().size() - 1),
                        "\" \"User Commands\"\n.SH NAME\nrlx \\- ",
                        troff("build, inspect, transform and run tensor programs"),
                        "\n.SH SYNOPSIS\n.B rlx\n.I command\n[\\fIarguments\\fR]\n.SH COMMANDS\n");
  for (const CommandDefinition& command : command_definitions(app)) {
    out += cat(".SS ", synopsis(command), "\n", troff(command.summary), "\n");
    for (const OptionDefinition& o : command.options) {
      if (o.names[0] != "--help") out += option_entry(o);
    }
  }
  out += ".SH FILES\nModel files are recognised by their content:\n";
  for (const io::FileFormat* f : io::FormatTable::standard().formats())
    out += cat(".TP\n\\fB", troff(f->name), "\\fR (", troff(f->ending), ")\n", troff(f->summary),
               f->write ? "" : "; read only", "\n");
  out += ".SH ENVIRONMENT\n";
  for (const OptionInfo& row : option_table())
    out += cat(".TP\n\\fB", troff(row.name), "\\fR\n", troff(row.meaning), "\n");
  return out +
         ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nthe input was wrong, or could not be read or written\n.TP\n2\n"
         "wrong usage\n.TP\n3\ninternal error; please report it\n";
}

}  // namespace

void add_man(Command app) {
  app.add_subcommand("man", "write the manual page to standard output").callback([app] { print(page(app)); });
}

}  // namespace rlx::cli
