// The sub-commands of `rlx`, one source file each. A command declares its arguments on the CLI11 app and
// sets a callback; the callback writes to stdout and throws rlx::Error when the input is wrong.
//
// Exit codes: 0 done, 1 the input was wrong, 2 wrong usage, 3 internal error.
#pragma once

#include <CLI/CLI.hpp>

namespace rlx::cli {

using AddCommand = void (*)(CLI::App& app);

// Alphabetical, as `rlx --help` lists them.
void add_convert(CLI::App& app);
void add_fmt(CLI::App& app);
void add_grad(CLI::App& app);
void add_inspect(CLI::App& app);
void add_ops(CLI::App& app);
void add_options(CLI::App& app);
void add_run(CLI::App& app);
void add_template(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_verify(CLI::App& app);

inline constexpr AddCommand kCommands[] = {
    add_convert, add_fmt, add_grad,     add_inspect,  add_ops,
    add_options, add_run, add_template, add_tokenize, add_verify,
};

}  // namespace rlx::cli
