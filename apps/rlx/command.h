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
void add_bench(CLI::App& app);
void add_build(CLI::App& app);
void add_chat(CLI::App& app);
void add_completion(CLI::App& app);
void add_convert(CLI::App& app);
void add_devices(CLI::App& app);
void add_diff(CLI::App& app);
void add_dot(CLI::App& app);
void add_embed(CLI::App& app);
void add_finetune(CLI::App& app);
void add_fmt(CLI::App& app);
void add_generate(CLI::App& app);
void add_grad(CLI::App& app);
void add_help(CLI::App& app);
void add_imatrix(CLI::App& app);
void add_inspect(CLI::App& app);
void add_logits(CLI::App& app);
void add_man(CLI::App& app);
void add_models(CLI::App& app);
void add_onnx(CLI::App& app);
void add_ops(CLI::App& app);
void add_opt(CLI::App& app);
void add_options(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_quantize(CLI::App& app);
void add_reduce(CLI::App& app);
void add_run(CLI::App& app);
void add_template(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_train(CLI::App& app);
void add_verify(CLI::App& app);
void add_version(CLI::App& app);

inline constexpr AddCommand kCommands[] = {
    add_bench,    add_build,   add_chat,       add_completion, add_convert,  add_devices, add_diff,
    add_dot,      add_embed,   add_finetune,   add_fmt,        add_generate, add_grad,    add_help,
    add_imatrix,  add_inspect, add_logits,     add_man,        add_models,   add_onnx,    add_ops,
    add_opt,      add_options, add_perplexity, add_quantize,   add_reduce,   add_run,     add_template,
    add_tokenize, add_train,   add_verify,     add_version,
};

/// "rlx 0.1.0"
std::string version_line();

}  // namespace rlx::cli
