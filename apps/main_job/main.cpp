// ./dev run: a small transformer learns the documents of this project and writes a few lines like them.
//
//   main_job [--seconds N] [--seed N]
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "apps/main_job/corpus.h"
#include "apps/main_job/language_model.h"
#include "bench/bench.h"
#include "rlx/backend/plan.h"
#include "rlx/base/philox.h"
#include "rlx/train/trainer.h"

namespace rlx::main_job {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kBatch = 4;  // twice the steps of 8, at nearly the same rate
constexpr double kPeakRate = 2e-3;
constexpr int64_t kWarmUp = 20;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Rows of consecutive characters from random places; the last part of the text is kept for the judge.
class Sampler {
 public:
  Sampler(const std::vector<int32_t>& ids, int64_t begin, int64_t end, int64_t length, uint64_t seed)
      : ids_(ids), begin_(begin), span_(end - begin - length), length_(length), seed_(seed) {
    rows_.resize(size_t(kBatch * length));
  }
  TensorView next() {
    for (int64_t r = 0; r < kBatch; ++r) {
      const PhiloxBlock draw = philox_block(seed_, 1, count_++);
      const int64_t at = begin_ + int64_t(draw[0] % uint64_t(span_));
      std::memcpy(&rows_[size_t(r * length_)], &ids_[size_t(at)], size_t(length_) * sizeof(int32_t));
    }
    return view(rows_.data(), {kBatch, length_});
  }

 private:
  const std::vector<int32_t>& ids_;
  int64_t begin_, span_, length_;
  uint64_t seed_, count_ = 0;
  std::vector<int32_t> rows_;
};

// A bar on a terminal, a line every two seconds elsewhere.
class TrainingBar {
 public:
  explicit TrainingBar(double seconds) : seconds_(seconds), terminal_(::isatty(STDOUT_FILENO)) {}
  void show(double elapsed, int64_t step, double loss) {
    if (elapsed < next_ && elapsed < seconds_) return;
    next_ = elapsed + (terminal_ ? 0.1 : 2);
    const double share = std::min(1.0, elapsed / seconds_);
    char bar[31] = "..............................";
    std::memset(bar, '#', size_t(share * 30));
    std::printf("%straining   [%s] step %4lld  loss %.3f%s", terminal_ ? "\r" : "", bar,
                static_cast<long long>(step), loss, terminal_ ? "\033[K" : "\n");
    std::fflush(stdout);
  }
  void end() const {
    if (terminal_) std::printf("\n");
  }

 private:
  double seconds_, next_ = 0;
  bool terminal_;
};

struct Training {
  int64_t steps = 0;
  double seconds = 0, first = 0, last = 0;  // last: the mean of the last steps
};

Training train_for(double seconds, train::Trainer& trainer, Sampler& sampler, Clock::time_point& start) {
  TrainingBar bar(seconds);
  Training out;
  start = Clock::now();
  double smooth = 0;
  while (out.seconds < seconds) {
    const double loss = trainer.step({{"ids", sampler.next()}}).loss;
    if (out.steps == 0) out.first = smooth = loss;
    smooth += 0.05 * (loss - smooth);
    ++out.steps;
    out.seconds = since(start);
    bar.show(out.seconds, out.steps, smooth);
  }
  bar.end();
  out.last = smooth;
  return out;
}

// The mean loss on text that was kept away from training.
double judged(const Graph& loss, const NamedLiterals& weights, Sampler& sampler) {
  CompiledGraph f = compile(loss, weights);
  constexpr int kRounds = 8;
  double sum = 0;
  for (int i = 0; i < kRounds; ++i) sum += f.run({{"ids", sampler.next()}})[0].as<float>()[0];
  return sum / kRounds;
}

// One character after the other, drawn from softmax(logits / temperature).
std::string written(const ModelSize& m, const Corpus& corpus, const NamedLiterals& weights,
                    const std::string& begin, int64_t length, uint64_t seed) {
  constexpr double kTemperature = 0.6;
  CompiledGraph f = compile(logits_graph(m), weights);
  std::vector<int32_t> ids, window(size_t(m.context), 0);
  for (const char c : begin) ids.push_back(int32_t(corpus.id_of(c)));
  for (int64_t n = 0; n < length; ++n) {
    const size_t seen = std::min(ids.size(), size_t(m.context));
    std::copy(ids.end() - long(seen), ids.end(), window.begin());
    const Outputs out = f.run({{"ids", view(window.data(), {1, m.context})}});
    const auto row = out[0].as<float>().subspan((seen - 1) * size_t(m.characters), size_t(m.characters));
    std::vector<double> share(row.size());
    double top = row[0], sum = 0;
    for (const float v : row) top = std::max(top, double(v));
    for (size_t i = 0; i < row.size(); ++i) sum += share[i] = std::exp((row[i] - top) / kTemperature);
    double left = sum * uniform_from_bits(philox_block(seed, 2, uint64_t(n))[0]);
    size_t chosen = 0;
    while (chosen + 1 < share.size() && (left -= share[chosen]) >= 0) ++chosen;
    ids.push_back(int32_t(chosen));
  }
  return corpus.text_of(ids);
}

// Memory that this process has written to, in bytes, without pages of its program; 0 where the system does not tell.
int64_t own_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::atoll(line.c_str() + 8) * 1024;
  }
  return 0;
}

int64_t state_bytes(const CompiledGraph& f) {
  int64_t bytes = 0;
  for (const Port& p : f.states()) bytes += p.shape.size_bytes();
  return bytes;
}

double mib(int64_t bytes) { return double(bytes) / (1 << 20); }

void run(double seconds, uint64_t seed) {
  const Corpus corpus = read_corpus(RLX_SOURCE_DIR);
  const ModelSize m{.characters = int64_t(corpus.characters.size())};
  const Graph loss = loss_graph(m, kBatch);
  const NamedLiterals start_weights = starting_weights(loss, seed);
  int64_t numbers = 0;
  for (const auto& [name, value] : start_weights) numbers += value.elements();
  std::printf("A small transformer learns the documents of this project (docs/training.md).\n\n");
  std::printf("text       %zu documents, %.0f kB, %zu different characters\n", corpus.documents,
              double(corpus.ids.size()) / 1e3, corpus.characters.size());
  std::printf("model      %lld layers, width %lld, context %lld: %lld numbers, traced to %zu nodes\n",
              static_cast<long long>(m.layers), static_cast<long long>(m.width),
              static_cast<long long>(m.context), static_cast<long long>(numbers), loss.len());

  const int64_t before = own_memory();
  auto begin = Clock::now();
  const auto rate = [&begin, seconds](int64_t step) {
    const double share = std::min(1.0, since(begin) / seconds);
    return train::warm_up(kWarmUp, train::constant(kPeakRate))(step) *
           (0.05 + 0.95 * (1 + std::cos(M_PI * share)) / 2);
  };
  train::Trainer trainer(loss, start_weights,
                         {.optimizer = train::adamw({.beta2 = 0.95, .weight_decay = 0.1}),
                          .rate = rate,
                          .rules = {{"*.b", 1, 0.0}, {"*.g", 1, 0.0}},
                          .clip_norm = 1.0});
  const backend::Plan& plan = trainer.program().plan();
  std::printf("compiled   gradient, AdamW and clipping: %zu nodes in %zu steps, %.2f s\n",
              trainer.program().graph().len(), plan.steps.size(), since(begin));

  const auto text = int64_t(corpus.ids.size()), kept = text / 20;
  Sampler sampler(corpus.ids, 0, text - kept, m.context + 1, seed);
  Sampler judge(corpus.ids, text - kept, text, m.context + 1, seed + 1);
  const Training t = train_for(seconds, trainer, sampler, begin);
  const int64_t after = own_memory();
  const NamedLiterals weights = trainer.weights();
  const double kept_loss = judged(loss, weights, judge);
  const double tokens = double(t.steps * kBatch * m.context);
  const double rate_reached = operations_of_step(m, kBatch) * double(t.steps) / t.seconds / 1e9;
  const double peak = bench::limits().fma_gflops;
  std::printf("loss       %.3f -> %.3f nats a character; %.3f on text it has not seen\n", t.first, t.last,
              kept_loss);
  std::printf("speed      %.0f tokens/s in %lld steps; %.0f GFLOP/s", tokens / t.seconds,
              static_cast<long long>(t.steps), rate_reached);
  if (peak > 0) std::printf(", %.0f %% of the %.0f this machine can do", 100 * rate_reached / peak, peak);
  std::printf("\nmemory     planned: %.1f MiB of weights and state, %.1f MiB in between",
              mib(state_bytes(trainer.program())), mib(plan.arena_bytes));
  if (after > 0)
    std::printf("; measured: %.1f MiB more than before, the graph and its plan among them",
                mib(after - before));
  std::printf("\n\nIt writes:\n\n%s\n\n", written(m, corpus, weights, "## ", 400, seed).c_str());
  std::printf(
      "Read on: docs/tour.md (the commands, to type along), docs/architecture.md (the house in one picture),\n"
      "docs/training.md (this job with your data), apps/main_job (the program that ran).\n");
  if (!(t.last < t.first)) throw Error(ErrorKind::internal, "the loss did not fall");
}

}  // namespace
}  // namespace rlx::main_job

int main(int argc, char** argv) {
  double seconds = 20;
  uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = uint64_t(std::atoll(argv[i + 1]));
  }
  try {
    rlx::main_job::run(seconds, seed);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "main_job: %s\n", e.what());
    return 1;
  }
  return 0;
}
