// rlx quantize: a GGUF model in fewer bits.
#include "apps/rlx/command.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "apps/rlx/progress.h"
#include "rlx/llm/quantize_model.h"

namespace rlx::cli {
namespace {

struct Arguments {
  std::string in, out, type, importance, progress = "auto";
};

void run(const Arguments& a) {
  const llm::QuantMix& mix = llm::quant_mix_named(a.type);
  Progress progress("quantize", a.progress);
  llm::ImportanceMatrix importance;
  llm::QuantizeOptions options{.progress = [&](int64_t done, int64_t total) { progress.show(done, total); }};
  if (!a.importance.empty()) {
    importance = llm::ImportanceMatrix::open(a.importance);
    options.importance = &importance;
    options.importance_name = a.importance;
  }
  const llm::QuantizeReport r = llm::quantize_model(model_path(a.in), a.out, mix, options);
  std::string line =
      cat(r.tensors, " tensors, ", r.changed, " stored as ", mix.name, ", ", readable_bytes(r.bytes_in),
          " to ", readable_bytes(r.bytes_out), ", relative error ", r.error);
  if (options.importance) line += cat(", ", r.weighed, " weighed by importance, error ", r.weighed_error);
  print(line + "\n");
}

}  // namespace

void add_quantize(Command app) {
  const auto a = std::make_shared<Arguments>();
  std::string names;
  for (const llm::QuantMix& m : llm::quant_mixes())
    names += (names.empty() ? "" : ", ") + std::string(m.name);
  Command command = app.add_subcommand("quantize", "store a GGUF model in fewer bits");
  command.add_option("IN", a->in, "GGUF file in f32, f16 or bf16").required();
  command.add_option("OUT", a->out, "GGUF file to write").required();
  command.add_option("TYPE", a->type, names).required();
  command.add_option("--imatrix", a->importance,
                     "file of 'rlx imatrix' or llama.cpp: errors count by the activations they meet");
  command.add_option("--progress", a->progress, "how far it is, on standard error")
      .one_of({"auto", "bar", "lines", "none"});
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
