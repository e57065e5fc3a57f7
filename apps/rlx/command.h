// The sub-commands of `rlx`, one source file each. A command declares its arguments
// (apps/rlx/arguments.h) and sets a callback; the callback prints (apps/rlx/output.h) and throws rlx::Error when the input is wrong.
//
// Exit codes: 0 done, 1 the input was wrong, 2 wrong usage, 3 internal error.
#pragma once

#include <memory>
#include <string>

#include "apps/rlx/arguments.h"

namespace rlx::cli {

using AddCommand = void (*)(Command app);

// Alphabetical, as `rlx --help` lists them.
void add_bench(Command app);
void add_build(Command app);
void add_chat(Command app);
void add_completion(Command app);
void add_convert(Command app);
void add_devices(Command app);
void add_diff(Command app);
void add_dot(Command app);
void add_embed(Command app);
void add_finetune(Command app);
void add_fmt(Command app);
void add_generate(Command app);
void add_grad(Command app);
void add_help(Command app);
void add_imatrix(Command app);
void add_inspect(Command app);
void add_logits(Command app);
void add_man(Command app);
void add_models(Command app);
void add_onnx(Command app);
void add_ops(Command app);
void add_opt(Command app);
void add_options(Command app);
void add_perplexity(Command app);
void add_quantize(Command app);
void add_reduce(Command app);
void add_run(Command app);
void add_template(Command app);
void add_tokenize(Command app);
void add_train(Command app);
void add_verify(Command app);
void add_version(Command app);

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
