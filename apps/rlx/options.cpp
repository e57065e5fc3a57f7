// rlx options: every environment variable the library reads.
#include <algorithm>

#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/options.h"
#include "rlx/base/text.h"

namespace rlx::cli {

void add_options(Command app) {
  Command command = app.add_subcommand("options", "list the environment variables that change behaviour");
  command.callback([] {
    size_t widest = 0;
    for (const OptionInfo& row : option_table()) widest = std::max(widest, row.name.size());
    for (const OptionInfo& row : option_table()) {
      std::string name(row.name);
      name.resize(widest, ' ');
      print(cat(name, " ", row.meaning, " (default: ", row.default_value.empty() ? "none" : row.default_value,
                ")\n"));
    }
  });
}

}  // namespace rlx::cli
