// A program on the GPU with its operands there, and its time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/device.h"
#include "rlx/runtime/options.h"

namespace rlx::bench {

double now();

/// How a graph becomes a program.
struct ProgramOptions {
  CompileOptions compile;  // precision and states
  DimBinding sizes;
  std::map<std::string, Literal>
      inputs;  // leaves that are not given hold numbers between -1 and 1, or bytes below 60
};

class Program {
 public:
  explicit Program(const ir::Graph& g, const ProgramOptions& options = {});

  void run(backend::Observer* observer = nullptr);
  void wait() { queue_->wait(); }
  /// What became one kernel when the program was recorded (rlx/backend/cuda/chain.h), or why nothing did; empty where none was asked for.
  std::string chain() const;
  /// To compile and to run first, without the making of operands.
  double ready_seconds() const { return ready_seconds_; }
  size_t steps() const;
  int on_host() const { return on_host_; }
  double weight_bytes() const { return weight_bytes_; }
  std::string plan() const;
  /// Every step by itself, waited for: some 8 us of each are the waiting.
  void print_steps();

 private:
  void fill(const backend::Block&, const Shape&, const Literal* value);

  std::unique_ptr<backend::Queue> queue_;
  std::shared_ptr<const backend::Executable> program_;
  std::vector<backend::Block> leaves_, outputs_;
  std::map<DType, backend::Block> patterns_;
  backend::Block arena_;
  std::vector<std::byte*> in_, out_;
  double ready_seconds_ = 0, weight_bytes_ = 0;
  int on_host_ = 0;
};

/// Seconds a run: the median of 9 rounds of at least 50 ms; of 3 runs where one takes longer than a quarter of a second.
double seconds_of(Program& p);

/// A line: name, figure, steps, seconds to compile and run first.
void report(const std::string& name, const std::string& figure, const Program& p);
std::string rounded(double v, const char* unit);

/// What compiling, loading and measuring of kernels took since the last call, by the time it began (ms).
void print_timings();

struct Case {
  std::string name;
  std::function<void()> run;
};
/// Language models of the shapes of SmolLM2-135M, Llama-3.2-1B and Llama-3.1-8B with weights of no meaning (llama.cpp).
std::vector<Case> llama_cases();
/// Products with elements behind them, in every way (products.cpp).
std::vector<Case> product_cases();
/// Layers of ResNet and their gradients (conv.cpp).
std::vector<Case> conv_cases();
/// A training step of the shape of GPT-2 (train.cpp).
std::vector<Case> training_cases();
/// Fourier transforms and linear algebra (numeric.cpp).
std::vector<Case> numeric_cases();
/// Encoded blocks, codes, gradients of pools, lists of splats (width.cpp).
std::vector<Case> width_cases();
/// Products with weights whose scales lie beside their codes (schemes.cpp).
std::vector<Case> scheme_cases();
/// Products of fp8 with fp8, in every way (fp8.cpp).
std::vector<Case> fp8_cases();

/// Products of 32 rows with weights of language models, cut in every way (rows.cpp).
std::vector<Case> rows_cases();

extern bool show_steps;  // --steps
extern bool
    show_times;  // --times: of compiling, loading and measuring kernels; with --plan they are compiled for that
extern bool only_plans;  // --plan: nothing is run, plans are printed; needs no GPU

}  // namespace rlx::bench
