// rlx quantize: a GGUF model in fewer bits.
#include "apps/rlx/command.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "apps/rlx/progress.h"
#include "rlx/llm/quantize_model.h"

namespace rlx::cli {

void add_quantize(CLI::App& app) {
  struct Arguments {
    std::string in, out, type, progress = "auto";
  };
  const auto a = std::make_shared<Arguments>();
  std::string names;
  for (const llm::QuantMix& m : llm::quant_mixes())
    names += (names.empty() ? "" : ", ") + std::string(m.name);
  CLI::App* command = app.add_subcommand("quantize", "store a GGUF model in fewer bits");
  command->add_option("in", a->in, "GGUF file in f32, f16 or bf16")->required();
  command->add_option("out", a->out, "GGUF file to write")->required();
  command->add_option("type", a->type, names)->required();
  command->add_option("--progress", a->progress, "how far it is, on standard error")
      ->check(CLI::IsMember({"auto", "bar", "lines", "none"}));
  command->callback([a] {
    const llm::QuantMix& mix = llm::quant_mix_named(a->type);
    Progress progress("quantize", a->progress);
    const llm::QuantizeReport r = llm::quantize_model(
        model_path(a->in), a->out, mix, [&](int64_t done, int64_t total) { progress.show(done, total); });
    print(cat(r.tensors, " tensors, ", r.changed, " stored as ", mix.name, ", ", readable_bytes(r.bytes_in),
              " to ", readable_bytes(r.bytes_out), ", relative error ", r.error, "\n"));
  });
}

}  // namespace rlx::cli
