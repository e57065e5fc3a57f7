#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <new>

#include "apps/rlx/command.h"
#include "apps/rlx/definitions.h"
#include "apps/rlx/output.h"
#include "apps/rlx/usage_error.h"
#include "apps/rlx/wrong_call.h"
#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/base/output_file.h"
#include "rlx/base/version.h"

namespace rlx::cli {

std::string version_line() { return "rlx " RLX_VERSION "\n"; }

namespace {

constexpr int kDone = 0, kWrongInput = 1, kWrongUsage = 2, kInternalError = 3;

// A closed stream would give its number to the next file that is opened, and what is printed would go there.
// In its place stands a descriptor on which the wrong direction fails.
void keep_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void on_end(int number) {
  remove_unfinished_files();
  std::signal(number, SIG_DFL);
  ::raise(number);
}

// Output that is not complete is removed when the user or the system ends the command. A file too large for
// the limit of the process is an error of the write.
void handle_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (std::signal(number, on_end) == SIG_IGN) std::signal(number, SIG_IGN);
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

void parse_and_run(CLI::App& app, int argc, char** argv) {
  if (argc < 2) throw UsageError("a command is required; see 'rlx help'");
  const std::string first = argv[1];
  if (!first.starts_with('-') && !find_command(Command(&app), first))
    throw UsageError(unknown_command(Command(&app), first));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    print(version_line());
  } catch (const CLI::Success&) {  // help was asked for
    const auto chosen = app.get_subcommands();
    print(chosen.empty() ? app.help() : chosen[0]->help("rlx"));
  } catch (const CLI::ParseError& e) {
    throw UsageError(wrong_call(app, e));
  }
  check_mapped_files();
  flush_output();
}

int run(int argc, char** argv) {
  CLI::App app("rlx: build, inspect, transform and run tensor programs", "rlx");
  app.set_version_flag("--version,-V", version_line());
  app.require_subcommand(1);
  for (const AddCommand add : kCommands) add(Command(&app));
  const auto fail = [](int code, const char* message) {
    std::fflush(stdout);
    std::fprintf(stderr, "rlx: %s\n", message);
    return code;
  };
  try {
    parse_and_run(app, argc, argv);
    return kDone;
  } catch (const UsageError& e) {
    return fail(kWrongUsage, e.what());
  } catch (const Error& e) {
    return fail(e.kind() == ErrorKind::internal ? kInternalError : kWrongInput, e.what());
  } catch (const std::bad_alloc&) {
    return fail(kWrongInput, "not enough memory");
  } catch (const std::exception& e) {
    return fail(kInternalError, cat("internal error, please report: ", e.what()).c_str());
  }
}

}  // namespace
}  // namespace rlx::cli

int main(int argc, char** argv) {
  rlx::cli::keep_standard_streams();
  rlx::cli::handle_signals();
  return rlx::cli::run(argc, argv);
}
