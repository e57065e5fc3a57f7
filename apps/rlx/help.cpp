// rlx help, rlx version: what there is.
#include "apps/rlx/command.h"
#include "apps/rlx/definitions.h"
#include "apps/rlx/output.h"
#include "apps/rlx/usage_error.h"

namespace rlx::cli {

void add_help(Command app) {
  const auto name = std::make_shared<std::string>();
  Command command = app.add_subcommand("help", "show what a command does and takes");
  command.add_option("COMMAND", *name, "one of the commands; without it, all of them are listed");
  command.callback([app, name] {
    if (name->empty()) return print(app.help());
    const std::optional<Command> about = find_command(app, *name);
    if (!about) throw UsageError(unknown_command(app, *name));
    print(about->help());
  });
}

void add_version(Command app) {
  app.add_subcommand("version", "show the version").callback([] { print(version_line()); });
}

}  // namespace rlx::cli
