// rlx generate: text that goes on from a prompt.
#include <cstdio>
#include <memory>
#include <optional>

#include "apps/rlx/command.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/base/json_write.h"
#include "rlx/text/value.h"

namespace rlx::cli {

namespace {

struct GenerateArguments {
  RunArguments run;
  SamplingArguments sampling{0};
  GrammarArguments grammar;
  std::string prompt, file, adapter, system, draft;
  std::vector<std::string> stop;
  int64_t tokens = 128, lookup = 0, mtp = 0, draft_tokens = 4, beams = 1;
  bool json = false, chat = false, ignore_end = false, quiet = false;
};

std::string prompt_text(const GenerateArguments& a) {
  if (!a.file.empty()) return a.file == "-" ? read_input() : read_file(a.file);
  return a.prompt;
}

std::vector<llm::TokenId> prompt_ids(const llm::LanguageModel& model, const GenerateArguments& a) {
  if (!a.chat) return model.encode(prompt_text(a));
  text::List messages;
  const auto add = [&](const char* role, const std::string& content) {
    text::Dict d;
    d.set("role", text::Value(std::string(role)));
    d.set("content", text::Value(content));
    messages.emplace_back(std::move(d));
  };
  if (!a.system.empty()) add("system", a.system);
  add("user", prompt_text(a));
  return model.tokenizer()
      .encode(model.chat_prompt(text::Value(std::move(messages))), {.add_special = false})
      .ids;
}

void print_json(const llm::Generation& g) {
  JsonWriter out({.replace_invalid = true});
  out.begin_object();
  out.member("text", g.text);
  out.member("tokens", g.tokens);
  out.key("log_probabilities");
  out.begin_array();
  for (const float x : g.log_probabilities) out.value(double(x));
  out.end_array();
  out.member("finish", llm::finish_name(g.finish));
  out.member("prompt_tokens", g.prompt_tokens);
  out.member("runs", g.runs);
  out.member("first_token_seconds", g.first_token_seconds);
  out.member("seconds", g.seconds);
  out.member("tokens_per_second", g.tokens_per_second());
  out.end_object();
  print(out.take() + "\n");
}

void run(const GenerateArguments& a) {
  if (a.prompt.empty() == a.file.empty()) throw invalid("generate: give the prompt with -p TEXT or -f FILE");
  llm::LanguageModel model = llm::LanguageModel::open(model_path(a.run.model), a.run.options());
  llm::GenerateOptions options{.max_tokens = a.tokens,
                               .sampling = a.sampling.read(),
                               .stop = a.stop,
                               .ignore_end = a.ignore_end,
                               .grammar = a.grammar.read(),
                               .lookup = a.lookup,
                               .mtp = a.mtp};
  if (!a.adapter.empty())
    options.adapter = std::make_shared<const llm::Adapter>(llm::Adapter::open(a.adapter));
  std::optional<llm::LanguageModel> draft;
  if (!a.draft.empty()) {
    draft.emplace(llm::LanguageModel::open(model_path(a.draft), a.run.options()));
    const size_t own = model.tokenizer().vocab_size(), drafted = draft->tokenizer().vocab_size();
    if (own != drafted)
      throw invalid("generate: the draft '", a.draft, "' has a vocabulary of ", drafted, " tokens and '",
                    a.run.model, "' one of ", own, "; the same one expected");
    options.guesser = std::make_shared<llm::DraftModel>(*draft, a.draft_tokens);
  }
  const std::vector<llm::TokenId> ids = prompt_ids(model, a);
  const bool stream = !a.json && a.beams == 1;
  const llm::OnToken show = [](const llm::GeneratedToken& t) {
    print(t.text);
    flush_output();
    return true;
  };
  const llm::Generation g = a.beams > 1 ? model.beam_search(ids, a.beams, options)
                                        : model.generate_ids(ids, options, stream ? show : llm::OnToken());
  if (a.json) return print_json(g);
  if (!stream) print(g.text);
  print("\n");
  flush_output();
  if (!a.quiet) std::fprintf(stderr, "rlx: %s\n", speed_line(g).c_str());
}

}  // namespace

void add_generate(Command app) {
  const auto a = std::make_shared<GenerateArguments>();
  Command command = app.add_subcommand("generate", "write on from a prompt with a language model");
  a->run.add(command);
  command.add_option("-p,--prompt", a->prompt, "the text to go on from");
  command.add_option("-f,--file", a->file, "file with that text; - for standard input").excludes("--prompt");
  command.add_option("-n,--tokens", a->tokens, "at most so many new tokens").not_negative();
  command.add_flag("--chat", a->chat, "the prompt is a message; the model's chat template goes around it");
  command.add_option("--system", a->system, "system message before it").needs("--chat");
  a->sampling.add(command);
  a->grammar.add(command);
  command.add_option("--stop", a->stop, "text that ends the answer; may be repeated");
  command.add_flag("--ignore-end", a->ignore_end, "go on behind tokens that end a text");
  command.add_option("--adapter,--lora", a->adapter, "LoRA adapter: a PEFT folder or a GGUF file");
  command
      .add_option("--lookup", a->lookup,
                  "guess so many tokens from the text and check them at once; the answer stays the same")
      .not_negative();
  command.add_option("--mtp", a->mtp, "the same with so many guesses of the model's own draft head")
      .not_negative();
  command.add_option("--draft", a->draft, "the same with guesses of a smaller model with the same vocabulary")
      .excludes("--lookup")
      .excludes("--mtp");
  command.add_option("--draft-tokens", a->draft_tokens, "how many of them at a time")
      .positive()
      .needs("--draft");
  command.add_option("--beams", a->beams, "beam search over so many texts").positive();
  command.add_flag("--json", a->json, "text, tokens and times as one JSON object");
  command.add_flag("-q,--quiet", a->quiet, "no line about speed");
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
