#include <cstdio>

#include "apps/rlx/command.h"
#include "rlx/base/error.h"

int main(int argc, char** argv) {
  CLI::App app("rlx: build, inspect, transform and run tensor programs", "rlx");
  app.require_subcommand(1);
  for (const rlx::cli::AddCommand add : rlx::cli::kCommands) add(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    app.exit(e);
    return 2;
  } catch (const rlx::Error& e) {
    std::fprintf(stderr, "rlx: %s\n", e.what());
    return e.kind() == rlx::ErrorKind::internal ? 3 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rlx: internal error, please report: %s\n", e.what());
    return 3;
  }
}
