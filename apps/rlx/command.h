// The sub-commands of `rlx`, one source file each. A command declares its arguments on the CLI11 app and
// sets a callback; the callback prints (apps/rlx/output.h) and throws rlx::Error when the input is wrong.
//
// Exit codes: 0 done, 1 the input was wrong, 2 wrong usage, 3 internal error.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace rlx::cli {

using AddCommand = void (*)(CLI::App& app);

// Alphabetical, as `rlx --help` lists them.
void add_completion(CLI::App& app);
void add_convert(CLI::App& app);
void add_fmt(CLI::App& app);
void add_grad(CLI::App& app);
void add_help(CLI::App& app);
void add_inspect(CLI::App& app);
void add_man(CLI::App& app);
void add_ops(CLI::App& app);
void add_options(CLI::App& app);
void add_run(CLI::App& app);
void add_template(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_verify(CLI::App& app);
void add_version(CLI::App& app);

inline constexpr AddCommand kCommands[] = {
    add_completion, add_convert, add_fmt, add_grad,     add_help,     add_inspect, add_man,
    add_ops,        add_options, add_run, add_template, add_tokenize, add_verify,  add_version,
};

/// "rlx 0.1.0"
std::string version_line();

}  // namespace rlx::cli
