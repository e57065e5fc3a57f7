// rlx help, rlx version: what there is.
#include "apps/rlx/command.h"
#include "apps/rlx/definitions.h"
#include "apps/rlx/output.h"
#include "apps/rlx/usage_error.h"

namespace rlx::cli {

void add_help(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("help", "show what a command does and takes");
  command->add_option("COMMAND", *name, "one of the commands; without it, all of them are listed");
  command->callback([&app, name] {
    // App::help would describe this command, which was chosen.
    if (name->empty())
      return print(app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
    const CLI::App* about = find_command(app, *name);
    if (about == nullptr) throw UsageError(unknown_command(app, *name));
    print(about->help("rlx"));
  });
}

void add_version(CLI::App& app) {
  app.add_subcommand("version", "show the version")->callback([] { print(version_line()); });
}

}  // namespace rlx::cli
