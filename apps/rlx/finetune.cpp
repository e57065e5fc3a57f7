// rlx finetune: a low-rank adapter for a language model, trained on texts.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "apps/rlx/command.h"
#include "apps/rlx/device.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "apps/rlx/progress.h"
#include "apps/rlx/schedule_arguments.h"
#include "rlx/base/json_write.h"
#include "rlx/llm/finetune.h"

namespace rlx::cli {
namespace {

struct Arguments {
  std::string model, data, out, device = "cpu", progress = "auto";
  llm::FinetuneOptions options;
  ScheduleArguments schedule;
  int64_t context = 512, save_every = 50, budget_mib = 256;
  double clip = 1;
  int threads = 0;
  bool resume = false, json = false;
};

struct Course {
  std::vector<double> losses;
  double seconds = 0;
  int64_t first = 0, tokens = 0;
  std::optional<double> held_back_before, held_back_after;

  double tokens_per_second() const { return seconds > 0 ? double(tokens) / seconds : 0; }
};

double rounded(double v) { return std::round(v * 1e4) / 1e4; }

void save(llm::Finetuning& run, const Arguments& a) {
  run.adapter().write(a.out, a.model);
  run.save_checkpoint(a.out + "/checkpoint.safetensors");
}

Course train_steps(llm::Finetuning& run, const Arguments& a) {
  using Clock = std::chrono::steady_clock;
  Course out{.first = run.steps()};
  if (run.held_back_texts() > 0) out.held_back_before = run.held_back_loss();
  Progress progress("finetune", a.progress);
  while (run.steps() < run.total_steps()) {
    const auto start = Clock::now();
    const llm::FinetuneStep s = run.step();
    out.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    out.tokens += s.tokens;
    out.losses.push_back(s.loss);
    progress.show(s.step + 1, run.total_steps(),
                  cat("step ", s.step + 1, " of ", run.total_steps(), ", loss ", rounded(s.loss), ", ",
                      int64_t(out.tokens_per_second()), " tokens/s"));
    if (a.save_every > 0 && run.steps() % a.save_every == 0 && run.steps() < run.total_steps()) save(run, a);
  }
  if (run.held_back_texts() > 0) out.held_back_after = run.held_back_loss();
  return out;
}

void print_json(const llm::Finetuning& run, const Course& c) {
  JsonWriter out({.indent = 2});
  out.begin_object();
  out.member("trained", run.trained_numbers());
  out.member("first_step", c.first);
  out.member("steps", run.steps());
  out.member("loss", c.losses);
  if (c.held_back_before) out.member("held_back_before", *c.held_back_before);
  if (c.held_back_after) out.member("held_back_after", *c.held_back_after);
  out.member("tokens", c.tokens);
  out.member("seconds", c.seconds);
  out.member("tokens_per_second", c.tokens_per_second());
  out.end_object();
  print(out.take() + "\n");
}

void print_text(const llm::Finetuning& run, const Course& c, const Arguments& a) {
  if (c.losses.empty()) return print(cat("nothing to do: ", run.steps(), " steps are done\n"));
  std::string line = cat("loss ", rounded(c.losses.front()), " at step ", c.first + 1, ", ",
                         rounded(c.losses.back()), " at step ", run.steps());
  if (c.held_back_after)
    line +=
        cat("; held back ", rounded(*c.held_back_before), " before, ", rounded(*c.held_back_after), " after");
  print(cat(line, "; ", int64_t(c.tokens_per_second()), " tokens/s; adapter in ", a.out, "\n"));
}

void run(Arguments a) {
  a.schedule.check();
  const models::Model model = models::open_model(model_path(a.model));
  llm::TrainingTexts texts = llm::read_training_texts(a.data, model, a.context);
  if (texts.cut > 0 && a.progress != "none")
    std::fprintf(stderr, "rlx: finetune: %lld texts are longer than %lld tokens and lose their end\n",
                 (long long)texts.cut, (long long)a.context);
  a.options.adapter.seed = a.options.seed;
  a.options.activation_budget = a.budget_mib << 20;
  a.options.clip_norm = a.clip > 0 ? std::optional(a.clip) : std::nullopt;
  a.options.compile.device = a.device;
  a.options.compile.threads = a.threads;
  llm::Finetuning finetuning(model, std::move(texts), a.options);
  const std::string checkpoint = a.out + "/checkpoint.safetensors";
  if (a.resume && std::filesystem::exists(checkpoint)) finetuning.load_checkpoint(checkpoint);
  const Course course = train_steps(finetuning, a);
  save(finetuning, a);
  a.json ? print_json(finetuning, course) : print_text(finetuning, course, a);
}

void add_method(Command command, const std::shared_ptr<Arguments>& a) {
  llm::FinetuneOptions& o = a->options;
  command.add_option("--rank", o.adapter.rank, "rank of the adapter").positive();
  command.add_option("--alpha", o.adapter.alpha, "its scale is alpha / rank").positive();
  command
      .add_option("--target", o.adapter.targets,
                  "modules to change, as q_proj,v_proj (default: all of the layers)")
      .separated_by_commas();
  command.add_option("-b,--batch", o.batch, "texts in a step").positive().with_default_shown();
  command.add_option("--steps", o.steps, "steps in all (default: by --epochs)").not_negative();
  command.add_option("--epochs", o.epochs, "times through the texts").positive();
  a->schedule.add(command, "finetune", o.schedule, false);
  command.add_option("--weight-decay", o.weight_decay, "of the adapter");
  command.add_option("--clip-norm", a->clip, "largest norm of all gradients together; 0: none")
      .with_default_shown();
  command.add_option("--held-back", o.held_back, "part of the texts that is only used to judge, as 0.1");
  command.add_option("--seed", o.seed, "of the start and of the order of the texts")
      .not_negative()
      .with_default_shown();
}

}  // namespace

void add_finetune(Command app) {
  const auto a = std::make_shared<Arguments>();
  Command command = app.add_subcommand("finetune", "train a LoRA adapter for a language model");
  command.add_option("MODEL", a->model, "GGUF file, folder, or a name that 'rlx models' lists").required();
  command
      .add_option(
          "data", a->data,
          ".jsonl with messages, prompt and completion, or text in each line; any other file is one text")
      .required();
  command.add_option("-o,--output", a->out, "folder for the adapter (PEFT form) and the checkpoint")
      .required();
  command.add_option("-c,--context", a->context, "most tokens of a text").between(2, 1 << 24);
  add_method(command, a);
  command.add_option("--save-every", a->save_every, "steps between checkpoints; 0: only at the end")
      .not_negative()
      .with_default_shown();
  command.add_flag("--resume", a->resume, "go on from the checkpoint in the folder, if there is one");
  command
      .add_option("--keep", a->budget_mib,
                  "MiB of activations kept for the gradient; the rest is computed again")
      .not_negative()
      .with_default_shown();
  command.add_option("-t,--threads", a->threads, "threads; 0: all cores").not_negative();
  add_device(command, a->device);
  command.add_option("--progress", a->progress, "how far it is, on standard error")
      .one_of({"auto", "bar", "lines", "none"});
  command.add_flag("--json", a->json, "losses of all steps as JSON");
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
