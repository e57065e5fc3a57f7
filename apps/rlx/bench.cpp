// rlx bench: how fast a language model reads and writes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "apps/rlx/command.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "rlx/base/json_write.h"

namespace rlx::cli {

namespace {

struct BenchArguments {
  RunArguments run;
  int64_t prompt = 128, tokens = 64, batch = 1, repeats = 3;
  bool json = false;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

void run(const BenchArguments& a) {
  llm::ModelOptions options = a.run.options();
  options.context = a.prompt + a.tokens;
  const auto model = std::make_shared<const models::Model>(models::open_model(model_path(a.run.model)));
  std::unique_ptr<llm::Decoder> d;
  const double load = seconds_of([&] {
    d = std::make_unique<llm::Decoder>(*model,
                                       llm::DecoderOptions{.capacity = options.context,
                                                           .batch = a.batch,
                                                           .cache_type = options.cache_type,
                                                           .round_activations = options.round_activations,
                                                           .compile = options.compile});
  });
  std::vector<llm::TokenId> ids(size_t(a.prompt * a.batch)), next(size_t(a.batch), 1);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = llm::TokenId((i * 7919 + 13) % size_t(d->vocab()));
  std::vector<double> reading, writing;
  for (int64_t r = 0; r <= a.repeats; ++r) {  // the first makes the plans and does not count
    d->truncate(0);
    const double read = seconds_of([&] { d->feed(ids); });
    const double write = seconds_of([&] {
      for (int64_t i = 0; i < a.tokens; ++i) d->feed(next);
    });
    if (r > 0) reading.push_back(read), writing.push_back(write);
  }
  const double read_rate = double(a.prompt * a.batch) / median(reading),
               write_rate = double(a.tokens * a.batch) / median(writing);
  if (a.json) {
    JsonWriter out;
    out.begin_object();
    out.member("prompt", a.prompt);
    out.member("tokens", a.tokens);
    out.member("batch", a.batch);
    out.member("load_seconds", load);
    out.member("prompt_tokens_per_second", read_rate);
    out.member("tokens_per_second", write_rate);
    out.end_object();
    return print(out.take() + "\n");
  }
  char line[200];
  std::snprintf(line, sizeof line,
                "prompt %lld x %lld: %.1f tokens a second\nwriting %lld x %lld: %.1f tokens a second\n",
                (long long)a.batch, (long long)a.prompt, read_rate, (long long)a.batch, (long long)a.tokens,
                write_rate);
  print(line);
}

}  // namespace

void add_bench(Command app) {
  const auto a = std::make_shared<BenchArguments>();
  Command command = app.add_subcommand("bench", "measure how fast a language model reads and writes");
  a->run.add(command);
  command.add_option("-p,--prompt", a->prompt, "tokens of the prompt").positive();
  command.add_option("-n,--tokens", a->tokens, "tokens written").positive();
  command.add_option("-b,--batch", a->batch, "texts together").positive();
  command.add_option("-r,--repeats", a->repeats, "runs, of which the median counts").positive();
  command.add_flag("--json", a->json, "as JSON");
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
