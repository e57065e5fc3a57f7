// rlx options: every environment variable the library reads.
#include <cstdio>

#include "apps/rlx/command.h"
#include "rlx/base/options.h"

namespace rlx::cli {

void add_options(CLI::App& app) {
  CLI::App* command = app.add_subcommand("options", "list the environment variables that change behaviour");
  command->callback([] {
    for (const OptionInfo& row : option_table()) {
      std::printf("%-12s %s (default: %s)\n", std::string(row.name).c_str(), std::string(row.meaning).c_str(),
                  row.default_value.empty() ? "none" : std::string(row.default_value).c_str());
    }
  });
}

}  // namespace rlx::cli
