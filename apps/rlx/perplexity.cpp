// rlx perplexity: how well a model predicts a text.
#include "apps/rlx/command.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "apps/rlx/progress.h"
#include "rlx/base/file.h"
#include "rlx/base/json_write.h"

namespace rlx::cli {

namespace {

struct PerplexityArguments {
  RunArguments run;
  std::string file, progress = "auto";
  int64_t window = 0;
  bool json = false;
};

void run(const PerplexityArguments& a) {
  llm::ModelOptions options = a.run.options();
  constexpr int64_t kUsual = 512;  // models made for less are read in windows of what they were made for
  options.context = std::max({options.context, a.window, kUsual});
  llm::LanguageModel model = llm::LanguageModel::open(model_path(a.run.model), options);
  const int64_t window = a.window > 0 ? a.window : std::min(kUsual, model.decoder(true).capacity());
  const std::vector<llm::TokenId> ids = model.encode(a.file == "-" ? read_input() : read_file(a.file));
  Progress progress("perplexity", a.progress);
  const auto result = model.perplexity(ids, window, [&](const llm::LanguageModel::Perplexity& p) {
    progress.show(p.tokens, int64_t(ids.size()) - 1, cat(p.tokens, " tokens, perplexity ", p.value()));
  });
  if (!a.json) return print(cat("perplexity ", result.value(), " over ", result.tokens, " tokens\n"));
  JsonWriter out;
  out.begin_object();
  out.member("perplexity", result.value());
  out.member("negative_log_likelihood", result.nll);
  out.member("tokens", result.tokens);
  out.member("window", window);
  out.end_object();
  print(out.take() + "\n");
}

}  // namespace

void add_perplexity(Command app) {
  const auto a = std::make_shared<PerplexityArguments>();
  Command command = app.add_subcommand("perplexity", "how well a language model predicts a text");
  a->run.add(command);
  command.add_option("FILE", a->file, "the text; - for standard input").required();
  command
      .add_option("-w,--window", a->window,
                  "tokens read together, 512 or what the model was made for; windows overlap by half")
      .between(2, 1 << 24);
  command.add_flag("--json", a->json, "as JSON");
  command.add_option("--progress", a->progress, "how far it is, on standard error")
      .one_of({"auto", "bar", "lines", "none"});
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
